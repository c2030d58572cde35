"""Long runs must not grow, compile, or run ahead of the device without end."""

import ltc
import torch

ALLOWED_GROWTH = 4 << 20  # bytes that a C library's heap may move without anything leaking


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def trainer():
    """A training step so small that 100,000 of them take seconds, with a number that changes each time."""
    weight = torch.zeros(4, device="ltc", requires_grad=True)
    x = torch.arange(4.0).to("ltc")

    def step(number):
        loss = (weight * x - 1).square().sum()
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight.sub_(gradient, alpha=1e-3 / (1 + number % 7))
        ltc.mark_step()
        return loss

    return step


def test_memory_stays_flat_over_100_000_steps():
    step = trainer()
    for number in range(5_000):
        step(number)
    ltc.wait_device_ops()
    before, compiled = resident_bytes(), ltc.metrics.counter_value("UncachedCompile")
    for number in range(100_000):
        loss = step(number)
    assert loss.item() < 1.1
    assert resident_bytes() - before < ALLOWED_GROWTH
    assert ltc.metrics.counter_value("UncachedCompile") == compiled


def test_10_000_queued_steps_stay_in_the_window():
    step = trainer()
    step(0)
    ltc.wait_device_ops()
    start = ltc.metrics.counter_value("ProgramRuns")
    for number in range(1, 10_001):
        step(number)
        assert number - (ltc.metrics.counter_value("ProgramRuns") - start) <= 33  # 32 in the window, one being handed over
