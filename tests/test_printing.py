"""Printing a tensor reads it once: nothing runs on the CPU instead of the plugin."""

import pytest
import torch

from comparing import LTC, run_program


@pytest.mark.patch("printing")
@pytest.mark.parametrize("make", [
    lambda: torch.randn(3, 4), lambda: torch.tensor(3), lambda: torch.tensor([True, False]), lambda: torch.zeros(2000), lambda: torch.empty(0, 3),
    lambda: torch.tensor([[1e10, float("nan")], [1e-9, float("inf")]]), lambda: torch.tensor([1 + 2j]).conj(), lambda: torch.randn(2, 3).t(),
    lambda: torch.ones(2, dtype=torch.float8_e4m3fn), lambda: torch.nn.Parameter(torch.ones(2)), lambda: torch.ones(2, requires_grad=True) * 2,
])  # fmt: skip
def test_text(make, metrics):
    torch.manual_seed(0)
    cpu = make()
    lazy = cpu.detach().to(LTC)
    text = repr(cpu.detach()).removesuffix(")").removeprefix("tensor(").split(", dtype")[0].split(", size")[0]
    assert text in repr(lazy) and "device='ltc:0'" in repr(lazy)
    assert metrics.fallbacks() == []
    assert metrics.counter_value("ReadBarrier") <= 1


def test_what_surrounds_it_is_kept():
    x = torch.ones(2, device=LTC, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], device='ltc:0', requires_grad=True)"
    assert "grad_fn=<MulBackward0>" in repr(x * 2)
    assert repr(torch.nn.Parameter(torch.ones(2, device=LTC))).startswith("Parameter containing:\ntensor([1., 1.], device='ltc:0'")


@pytest.mark.patch("printing")
def test_no_warning_at_exit():
    run = run_program("import torch, ltc; print(torch.randn(3, device='ltc') * 1e6)")
    assert run.returncode == 0 and run.stdout.startswith("tensor([") and run.stderr == ""
