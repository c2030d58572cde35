"""ltc.metrics.misses() explains a compile if something like it was compiled before."""

import torch

from comparing import LTC, run_program


def step(x):
    return (x * 2 + 1).relu().sum().item()


def test_the_first_difference_and_its_line(metrics):
    step(torch.ones(11).to(LTC))
    metrics.reset()  # it may resemble what other tests have compiled
    step(torch.ones(12).to(LTC))
    (miss,) = metrics.misses()
    assert miss["difference"] == "a tensor from before is f32[12] instead of f32[11], now for further sizes too"
    assert "test_misses.py:9" in miss["where"]
    assert miss["count"] == 1
    assert "Miss: a tensor from before is f32[12]" in metrics.report()
    metrics.reset()
    assert metrics.misses() == []


def test_an_attribute(metrics):
    x = torch.ones(3, 5, 7).to(LTC)
    for dim in 0, 1:
        metrics.reset()
        x.exp().softmax(dim).neg().sum().item()
    assert "aten::_softmax has dim=1 instead of dim=0" in metrics.misses()[0]["difference"]


def test_new_numbers_are_no_misses(metrics):
    x = torch.ones(13).to(LTC)
    for number in range(2, 6):
        (x * number).exp().sum().item()
        if number == 2:
            metrics.reset()
    assert metrics.misses() == []


def test_repeated_ones_are_warned_of_once():
    run = run_program("""
        import torch, ltc
        for size in range(2, 20):
            x = torch.ones(size).to("ltc")
            for _ in range(70):  # more ops than one program for all sizes may have
                x = (x * 2 + 1).relu()
            x.sum().item()
    """)
    assert run.returncode == 0
    (line,) = [line for line in run.stderr.splitlines() if "compiled, unlike before" in line]
    assert "the 5th time: further ones are optimized when they repeat; every new size is a program of its own" in line
    assert "instead of f32[" in line
