"""Python decides by values, shapes change, errors happen: the program goes on as on the CPU."""

import random

import pytest
import torch

import ltc
from comparing import LTC, assert_both, assert_same, to_device


def test_if_on_item():
    def results(x):
        for _ in range(5):
            if x.sum().item() > 10:
                x = x / 2
            else:
                x = x * 3 + 1
        return x

    assert_both(results, torch.ones(4))


def test_if_on_tensor():
    def results(x):
        return [row * 2 if row.sum() > 0 else -row for row in x]

    assert_both(results, torch.randn(6, 3))


def test_while_on_tensor():
    def results(x):
        steps = 0
        while (x < 100).any():
            x = x * 1.7
            steps += 1
        return x, steps

    assert_both(results, torch.rand(5) + 0.5)


def test_range_over_item_and_index_by_tensor():
    def results(n, x):
        total = x.clone()
        for k in range(n.max().item()):
            total[k % 3] += x[n[k % 2]]
        return total

    assert_both(results, torch.tensor([2, 1, 4]), torch.randn(3, 2))


def test_newton_until_converged():
    def results(x):
        root = x.clone()
        while True:
            update = (root * root - x) / (2 * root)
            root = root - update
            if update.abs().max() < 1e-5:
                return root

    assert_both(results, torch.rand(4) + 1)


def test_sizes_that_depend_on_values():
    def results(x):
        positive = x[x > 0]
        places = (x > 0.5).nonzero()
        values, counts = torch.unique(x.round(), return_counts=True)
        kept = torch.masked_select(x, x < 0)
        rows = x[x.sum(1) > 0]
        return positive, positive.sum() * 2, places, places + 1, values, counts, kept.sort().values, rows @ x.t(), torch.where(x > 0)

    assert_both(results, torch.randn(5, 4))


def test_gradient_through_boolean_mask():
    def results(x):
        (x[x > 0] ** 2).sum().backward()
        return x.grad

    assert_both(results, torch.randn(5, 4, requires_grad=True))


def test_data_dependent_ops_are_counted(metrics):
    x = torch.tensor([1.0, 0, 2], device=LTC)
    assert (x * 2).nonzero().tolist() == [[0], [2]]
    assert metrics.counter_value("aten::nonzero") == 1
    assert metrics.counter_value("FallbackBarrier") == 1


def grow(tree):
    """One step of a program whose state is nested and changes its shapes and its keys."""
    hidden = tree["layers"]["hidden"]
    return {
        "layers": {"hidden": torch.cat([hidden, hidden[-1:] * 2]), "all": [hidden.mean(0), *tree["layers"]["all"]]},
        "count": tree["count"] + 1,
        "best": torch.maximum(tree["best"], hidden.max()),
        **({"extra": hidden[::2] - 1} if len(hidden) % 2 else {}),
    }


@pytest.mark.parametrize("barrier", [True, False])
def test_nested_dicts_of_changing_shapes(barrier):
    def results(tree):
        for _ in range(6):
            tree = grow(tree)
            if barrier:
                ltc.mark_step()
        return tree

    start = {"layers": {"hidden": torch.randn(2, 3), "all": []}, "count": torch.tensor(0), "best": torch.tensor(-1.0)}
    assert_both(results, start)


def test_batches_of_changing_size():
    def results(x):
        linear = torch.nn.Linear(4, 2)
        with torch.no_grad():
            for parameter in linear.parameters():
                parameter.fill_(0.1)
        linear.to(x.device)
        outputs = []
        for size in (5, 3, 7, 5, 1, 0, 3):
            outputs.append(linear(x[:size]).relu().sum(0))
            ltc.mark_step()
        return [out.detach() for out in outputs]

    assert_both(results, torch.randn(7, 4))


def test_list_that_grows_within_a_step():
    def results(x):
        history = []
        for k in range(20):
            x = torch.tanh(x + k)
            history.append(x)
            if k % 5 == 4:
                x = torch.stack(history).mean(0)
        return torch.stack(history)

    assert_both(results, torch.randn(3))


def test_loop_without_mark_step(metrics):
    """It ends every few hundred ops, and two programs are compiled for it."""
    x = torch.zeros(2, device=LTC)
    for _ in range(33_500):
        x = x + 1
    assert metrics.counter_value("RepetitionBarrier") >= 33_500 // 1024
    assert metrics.counter_value("UncachedCompile") == 2
    assert x.tolist() == [33_500, 33_500]


def test_a_trace_that_does_not_repeat_is_cut_too(metrics):
    """It is longer than a program should be."""
    x, sum_of_all, generator = torch.zeros(2, device=LTC), 0, random.Random(0)
    for _ in range(33_500):
        up = generator.random() < 0.5
        x = x + 1 if up else x - 1
        sum_of_all += 1 if up else -1
    assert x.tolist() == [sum_of_all] * 2
    assert metrics.counter_value("TraceLimitBarrier") >= 1


def test_in_place_loop_without_mark_step(metrics):
    x = torch.zeros(4, device=LTC)
    for _ in range(17_000):
        x[1:3] += 1
    assert x.tolist() == [0, 17_000, 17_000, 0]
    assert metrics.counter_value("RepetitionBarrier") >= 16


# ---- errors in the middle of a step


def step(x, weight):
    return (x @ weight).relu().sum()


@pytest.mark.parametrize("mistake", [
    lambda x: x @ x,  # shapes
    lambda x: x + torch.ones(99, device=x.device),
    lambda x: x[10],
    lambda x: x.view(7, 7),
    lambda x: torch.cat([x, x[0]]),
    lambda x: x + torch.ones(3, 4),  # a CPU tensor
    lambda x: 1 / 0,
    lambda x: torch.linalg.inv(torch.zeros(2, 2, device=x.device)).sum().item(),
])
def test_error_in_the_middle_of_a_step(mistake):
    cpu, cpu_weight = torch.randn(3, 4), torch.randn(4, 2)
    x, weight = cpu.to(LTC), cpu_weight.to(LTC)
    before = x * 2
    with pytest.raises((RuntimeError, IndexError, ZeroDivisionError)):
        after = before + 1
        mistake(x)
    assert_same(before, cpu * 2)
    assert_same(after, cpu * 2 + 1)
    for _ in range(3):
        assert_same(step(x, weight), step(cpu, cpu_weight))
        ltc.mark_step()


def test_error_in_backward_leaves_the_next_step_working():
    class Refuse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("refused")

    x = torch.ones(3, device=LTC, requires_grad=True)
    with pytest.raises(ValueError, match="refused"):
        Refuse.apply(x * 2).sum().backward()
    (x * 5).sum().backward()
    assert x.grad.tolist() == [5, 5, 5]


def test_error_of_the_run_leaves_the_next_step_working():
    """An index that only the run finds wrong: what one program computes fails as a whole, the next one is right."""
    cpu, cpu_weight = torch.randn(3, 4), torch.randn(4, 2)
    x, weight = cpu.to(LTC), cpu_weight.to(LTC)
    with pytest.raises(IndexError, match="index out of range"):
        torch.nn.functional.embedding(torch.tensor([99], device=LTC), x).sum().item()
    for _ in range(3):
        assert_same(step(x, weight), step(cpu, cpu_weight))
        ltc.mark_step()


def test_caught_error_of_the_run_leaves_values_made_elsewhere():
    """An op that only fails when it runs: another step, unless it reads its result, is right."""
    table, wrong = torch.randn(3, 2), torch.tensor([7])
    lazy, lazy_wrong = to_device((table, wrong))
    bad = torch.nn.functional.embedding(lazy_wrong, lazy)
    ltc.mark_step()
    good = lazy * 2
    ltc.mark_step()
    with pytest.raises(IndexError):
        bad.cpu()
    with pytest.raises(IndexError):
        (bad + 1).sum().item()
    assert_same(good, table * 2)
    assert_same(lazy + 1, table + 1)
