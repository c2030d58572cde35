"""Element-wise ops that a plugin may run as one: random programs over every layout, beside the CPU."""

import random

import pytest
import torch
from comparing import assert_close

import ltc

LTC = torch.device("ltc")
SIZES = [(), (1,), (5,), (3, 1025), (4, 3, 7, 5), (2, 1, 33, 16), (0, 4), (70, 70, 9)]

UNARY = [torch.neg, torch.abs, lambda x: (-x.abs()).exp(), torch.tanh, torch.sigmoid, torch.erf, torch.sin, torch.floor, torch.relu, lambda x: (x.abs() + 0.5).reciprocal(),
         lambda x: x.clamp(-0.5, 0.7), lambda x: x**2, lambda x: x**3, lambda x: x * 0.3, lambda x: 2 - x, lambda x: x.clone(),
         lambda x: torch.nn.functional.gelu(x), lambda x: torch.nn.functional.silu(x), lambda x: torch.nn.functional.leaky_relu(x),
         lambda x: x.abs().sqrt(), lambda x: (x.abs() + 1).log()]  # fmt: skip
BINARY = [torch.add, torch.sub, torch.mul, lambda x, y: x / (y.abs() + 0.5), torch.maximum, torch.minimum, lambda x, y: torch.add(x, y, alpha=0.7),
          lambda x, y: torch.lerp(x, y, 0.3), lambda x, y: torch.addcmul(x, y, y, value=0.2), lambda x, y: torch.where(x > y, x, y),
          lambda x, y: x * (y <= 0.1), lambda x, y: x.masked_fill(y != y.floor(), 0.25),
          lambda x, y: torch.where((x < y) & (y > 0), 1.0, x)]  # fmt: skip


def operand(sizes, rng):
    """A CPU tensor that has the sizes or is broadcast to them, lying in one of many ways."""
    sizes = list(sizes)
    if rng.random() < 0.25 and sizes:
        sizes = [1 if rng.random() < 0.5 else size for size in sizes][rng.randrange(len(sizes)) :]
    x = torch.randn(sizes, generator=torch.Generator().manual_seed(rng.randrange(1 << 30)))
    form = rng.choice(["plain", "plain", "transposed", "sliced", "expanded", "channels_last"])
    if form == "transposed" and x.dim() > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if form == "sliced" and x.dim() > 0:
        return torch.stack([x, -x], -1)[..., 0]
    if form == "expanded" and x.dim() > 1:
        return x[:1].expand(x.shape)
    if form == "channels_last" and x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x


def program(seed):
    """CPU operands and a function of them, which writes some values in place and returns some."""
    rng = random.Random(seed)
    sizes = rng.choice(SIZES)
    operands = [operand(sizes, rng) for _ in range(rng.randint(1, 4))]
    steps = [(rng.random() < 0.45, rng.choice(UNARY), rng.choice(BINARY), rng.random(), rng.random(), rng.random() < 0.15)
             for _ in range(rng.randint(1, 30))]  # fmt: skip
    kept = rng.random() * 0.5

    def run(*values):
        values, results = [value + 0 for value in values], []
        for is_unary, unary, binary, i, j, in_place in steps:
            x, y = values[-1 - int(i * min(4, len(values)))], values[int(j * len(values))]
            made = (unary(x) if is_unary else binary(x, y)).clamp(-3, 3)  # so that no rounding error grows
            if in_place and made.shape == x.shape:
                made = x.copy_(made)
            values.append(made)
            if i * j < kept:
                results.append(made + 0)
        return [values[-1], *results, *values[: len(operands)]]

    return operands, run


@pytest.mark.parametrize("seed", range(150))
def test_random_program(seed):
    operands, run = program(seed)
    expected = run(*operands)
    results = run(*[x.to(LTC) for x in operands])
    ltc.mark_step()
    for result, wanted in zip(results, expected):
        assert_close(result.cpu(), wanted, rtol=2e-5, atol=2e-5)


def test_special_values_as_on_the_cpu():
    special = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, -1e-39, 1.0, 3.4e38])
    x, y = (part.flatten() for part in torch.meshgrid(special, special, indexing="ij"))
    for function in [torch.relu, torch.neg, torch.abs, torch.tanh, torch.sigmoid, torch.erf, torch.exp, lambda x: x.clamp(-1, 1), lambda x: x**2]:
        check_bits(function(x.to(LTC)), function(x))
    for function in [torch.div, *BINARY[:6], *BINARY[9:]]:
        check_bits(function(x.to(LTC), y.to(LTC)), function(x, y))


def check_bits(result, wanted):
    assert_close(result.cpu(), wanted, rtol=1e-6, atol=0)
    zero = wanted == 0
    assert torch.equal(torch.signbit(result.cpu()[zero]), torch.signbit(wanted[zero]))


def test_a_parameter_is_updated_where_it_lies():
    """As an optimizer does: the old value is read by an op after the one whose result takes its place."""
    p, g = torch.randn(5000), torch.randn(5000)
    q, h = p.to(LTC), g.to(LTC)
    ltc.mark_step()
    for _ in range(3):
        old = p.clone()
        p.mul_(0.9).add_(g, alpha=-0.1)
        p.add_(old, alpha=0.5)
        before = q.clone()
        q.mul_(0.9).add_(h, alpha=-0.1)
        q.add_(before, alpha=0.5)
        del before
        ltc.mark_step()
    assert_close(q.cpu(), p)
    assert_close(h.cpu(), g)


def test_chains_that_need_each_other_are_no_one_loop():
    """A reduction between two element-wise ops of the same operand."""
    x = torch.randn(300, 40)

    def run(x):
        a = x * 2
        b = a - a.mean(0)
        c = b * x
        return a + c / c.abs().sum(), b.exp() * a.sum()

    for result, wanted in zip(run(x.to(LTC)), run(x)):
        assert_close(result.cpu(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel, stride, padding, dilation, ceil", [
    (2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 1, False), ((2, 3), (3, 2), (1, 0), 1, True), (3, 3, 1, 2, True), (2, 5, 0, 1, True),
])  # fmt: skip
@pytest.mark.parametrize("sizes", [(2, 3, 17, 23), (3, 8, 9), (1, 1, 6, 40)])
def test_max_pooling(sizes, kernel, stride, padding, dilation, ceil):
    x = torch.randn(sizes).mul(2).round()  # ties: the first wins
    x.view(-1)[5] = float("nan")
    args = (kernel, stride, padding, dilation, ceil)
    expected, where = torch.nn.functional.max_pool2d(x, *args, return_indices=True)
    result, index = torch.nn.functional.max_pool2d(x.to(LTC), *args, return_indices=True)
    assert_close(result.cpu(), expected, rtol=0, atol=0)
    assert torch.equal(index.cpu(), where)


@pytest.mark.parametrize("exponent", [0, 1, 2, 0.5, 3, -1, -0.5, -2, 2.5, -3, 4])
def test_powers_are_those_of_the_cpu(exponent):
    """Between other ops, with whole vectors and a rest, of zeros, infinities and NaN too."""
    x = torch.randn(1031, generator=torch.Generator().manual_seed(0))
    x[:6] = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0])
    expected = (x * 2) ** exponent + 1
    torch.testing.assert_close(((x.to(LTC) * 2) ** exponent + 1).cpu(), expected, equal_nan=True, rtol=1e-6, atol=0)
