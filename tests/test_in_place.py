"""Numbers that multiply in place, as optimizers do for each parameter, and results written into an operand."""

import pytest
import torch

import ltc
from comparing import LTC, assert_same

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool, torch.complex64]
NUMBERS = [2, 2.5, True, 1 + 2j, float("nan"), 3e38]
PARTS = {"all": lambda x: x, "columns first": lambda x: x.t(), "a column": lambda x: x[:, 1], "a row": lambda x: x[1]}


def outcome(call, tensor):
    """None, or how it failed."""
    try:
        call(tensor)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("number", NUMBERS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_number_multiplies_in_place(dtype, number):
    calls = [lambda x: torch.ops.aten.mul_.Scalar(x, number), lambda x: torch._foreach_mul_([x], number)]
    for part in PARTS.values():
        lazy, cpu = torch.ones(3, 4, dtype=dtype, device=LTC), torch.ones(3, 4, dtype=dtype)
        for call in calls:
            found, expected = outcome(call, part(lazy)), outcome(call, part(cpu))
            if "BComplex32" in (found or ""):  # since PyTorch 2.14; the device has no such tensors
                found, expected = "no such tensors", expected and "no such tensors"
            assert found == expected
        assert_same(lazy, cpu)


ALIASED = {
    "itself": lambda x: torch.mul(x, x, out=x),
    "a part of itself": lambda x: torch.mul(x[:3], 2, out=x[:3]),
    "a part that overlaps": lambda x: torch.add(x[:5], 1, out=x[1:]),
    "one element for all": lambda x: torch.ops.aten.mul_.Scalar(x[0].expand(3), 2.0),
    "what is no element-wise op's": lambda x: torch.cumsum(x, 0, out=x),
}


@pytest.mark.parametrize("call", ALIASED.values(), ids=ALIASED)
def test_results_written_into_an_operand(call):
    lazy, cpu = torch.arange(6.0).to(LTC), torch.arange(6.0)
    assert outcome(call, lazy) == outcome(call, cpu)
    assert_same(lazy, cpu)


def test_element_by_element_nothing_is_tried_on_the_cpu_first(metrics):
    x = torch.arange(6.0).to(LTC)
    torch._foreach_mul_([x], 0.9)
    torch.mul(x, x, out=x)
    assert ltc.metrics.counter_value("DryRuns") == 0
    torch.cumsum(x, 0, out=x)
    assert ltc.metrics.counter_value("DryRuns") == 1
