"""A step that fails loses only what depends on the op that failed, and leaves all state as eager mode leaves it."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import ltc
from comparing import output_of

PROGRAM = Path(__file__).parent / "failing_steps.py"

# For plugins that take seconds to compile a step.
FEW = ["momentum, label, barrier", "AdamW, label, read", "AdamW, memory", "in_place", "accumulated", "copied", "failed_step", "unrelated",
       "memory_at", "many"]  # fmt: skip
CASES_OF = {
    "torchscript": [],
    "minimal": [],
    "minimal_async": [],
    "opencl": FEW,
    "pjrt": FEW,
}


@pytest.mark.parametrize("backend", CASES_OF)
def test_every_case_leaves_what_eager_mode_leaves(backend):
    if not (Path(ltc.__file__).parent / "plugins" / f"libltc_{backend}.so").exists():
        pytest.skip(f"the plugin {backend} was not built")
    program = f"import sys; sys.argv = {[str(PROGRAM), *CASES_OF[backend]]!r}\n{PROGRAM.read_text()}"
    assert output_of(program, LTC_BACKEND=backend).splitlines()[-1].endswith(" cases, 0 wrong")


def test_a_value_that_nobody_read_is_told_once():
    x = torch.zeros(3, device="ltc")
    x += 1
    x[torch.tensor([7], device="ltc")] = 5.0
    with pytest.raises(IndexError):
        x.cpu()
    assert x.tolist() == [1, 1, 1]


def test_the_error_is_told_to_who_reads_what_came_after():
    x = torch.ones(3, device="ltc")
    ltc.mark_step()
    x += torch.ones(3, device="ltc")[torch.tensor([9], device="ltc")]
    ltc.mark_step()
    y = x * 2
    with pytest.raises(IndexError):
        y.sum().item()
    assert y.tolist() == [2, 2, 2] and x.tolist() == [1, 1, 1]


def test_the_error_names_the_line_of_the_op():
    x = torch.ones(4, 3, device="ltc")
    loss = F.cross_entropy(x, torch.tensor([0, 1, 2, 3], device="ltc"))
    with pytest.raises(IndexError, match=r"test_failed_steps\.py:\d+: aten::nll_loss"):
        (loss * 2).item()


def test_more_dims_than_the_plugin_has_run_on_the_host():
    x = torch.ones([1] * 65, device="ltc") + 1
    assert x.sum().item() == 2
