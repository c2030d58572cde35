"""Random numbers: repeatable from a seed, distributed as they should be, no part of the compiled program."""

import math

import pytest
import torch
import torch.nn.functional as F

import ltc
from comparing import LTC, output_of

N = 200_000

DRAWS = {
    "rand": lambda **k: torch.rand(50, device=LTC, **k),
    "randn": lambda **k: torch.randn(50, device=LTC, **k),
    "randn_double": lambda **k: torch.randn(50, device=LTC, dtype=torch.float64, **k),
    "randint": lambda **k: torch.randint(0, 1000, (50,), device=LTC, **k),
    "randperm": lambda **k: torch.randperm(50, device=LTC, **k),
    "uniform_": lambda **k: torch.empty(50, device=LTC).uniform_(-1, 1, **k),
    "normal_": lambda **k: torch.empty(50, device=LTC).normal_(1, 2, **k),
    "exponential_": lambda **k: torch.empty(50, device=LTC).exponential_(2, **k),
    "bernoulli": lambda **k: torch.bernoulli(torch.full((50,), 0.5, device=LTC), **k),
    "bernoulli_": lambda **k: torch.empty(50, device=LTC).bernoulli_(0.5, **k),
    "multinomial": lambda **k: torch.multinomial(torch.ones(1000, device=LTC), 50, **k),
    "normal": lambda **k: torch.normal(torch.zeros(50, device=LTC), 1.0, **k),
    "random_": lambda **k: torch.empty(50, device=LTC, dtype=torch.int64).random_(1000, **k),
    "geometric_": lambda **k: torch.empty(50, device=LTC).geometric_(0.1, **k),
    "cauchy_": lambda **k: torch.empty(50, device=LTC).cauchy_(**k),
    "log_normal_": lambda **k: torch.empty(50, device=LTC).log_normal_(**k),
}
TAKES_NO_GENERATOR = {
    "dropout": lambda: F.dropout(torch.ones(50, device=LTC)),
    "rand_like": lambda: torch.rand_like(torch.ones(50, device=LTC)),
    "randn_like": lambda: torch.randn_like(torch.ones(50, device=LTC)),
    "feature_dropout": lambda: F.dropout2d(torch.ones(50, 20, 2, 2, device=LTC)),
    "alpha_dropout": lambda: F.alpha_dropout(torch.ones(50, device=LTC), training=True),
    "rrelu": lambda: F.rrelu(-torch.ones(50, device=LTC), training=True),
    "gumbel_softmax": lambda: F.gumbel_softmax(torch.ones(50, device=LTC)),
    "kaiming": lambda: torch.nn.init.kaiming_uniform_(torch.empty(5, 10, device=LTC)),
}


@pytest.mark.parametrize("name", DRAWS | TAKES_NO_GENERATOR)
def test_seed_repeats(name):
    draw = (DRAWS | TAKES_NO_GENERATOR)[name]
    torch.manual_seed(7)
    first, second = draw(), draw()
    torch.manual_seed(7)
    assert torch.equal(draw(), first) and torch.equal(draw(), second)
    torch.manual_seed(8)
    assert not torch.equal(draw(), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", DRAWS)
def test_generator(name):
    draw = DRAWS[name]
    generator = torch.Generator(device="ltc").manual_seed(3)
    assert generator.device == LTC and generator.initial_seed() == 3
    first = draw(generator=generator)
    torch.manual_seed(0)  # of no consequence
    assert torch.equal(draw(generator=torch.Generator(device="ltc").manual_seed(3)), first)
    assert not torch.equal(draw(generator=generator), first)


@pytest.mark.parametrize("name", DRAWS)
def test_cpu_generator_is_an_error(name):
    with pytest.raises(RuntimeError, match="Expected a 'ltc' device type for generator but found 'cpu'"):
        DRAWS[name](generator=torch.Generator())


def test_seeds_of_the_device_module():
    torch.ltc.manual_seed(5)
    first = torch.rand(5, device=LTC)
    torch.ltc.manual_seed_all(5)
    assert torch.equal(torch.rand(5, device=LTC), first)
    assert torch.ltc.initial_seed() == 5
    torch.ltc.seed()
    assert not torch.equal(torch.rand(5, device=LTC), first)


def test_state_of_the_default_generator():
    torch.rand(10, device=LTC)
    state = torch.ltc.get_rng_state()
    first = torch.randn(10, device=LTC)
    torch.rand(3, device=LTC)
    torch.ltc.set_rng_state(state)
    assert torch.equal(torch.randn(10, device=LTC), first)
    with torch.random.fork_rng(devices=[0], device_type="ltc"):
        torch.rand(10, device=LTC)
    after = torch.rand(10, device=LTC)
    torch.ltc.set_rng_state(state)
    torch.randn(10, device=LTC)
    assert torch.equal(torch.rand(10, device=LTC), after)


def test_state_of_a_generator():
    generator = torch.Generator(device="ltc").manual_seed(1)
    torch.rand(10, device=LTC, generator=generator)
    state = generator.get_state()
    first = torch.rand(10, device=LTC, generator=generator)
    other = torch.Generator(device="ltc")
    other.set_state(state)
    assert torch.equal(torch.rand(10, device=LTC, generator=other), first)
    with pytest.raises((RuntimeError, TypeError)):
        other.set_state(torch.zeros(3, dtype=torch.uint8))


def test_cpu_numbers_are_untouched():
    torch.manual_seed(0)
    expected = torch.rand(5)
    torch.manual_seed(0)
    torch.rand(100, device=LTC)
    torch.randperm(5, device=LTC)
    assert torch.equal(torch.rand(5), expected)


def test_default_seed_is_the_same_in_every_process():
    program = "import torch, ltc; print(torch.rand(3, device='ltc').tolist())"
    assert output_of(program) == output_of(program)


def test_draws_do_not_repeat_in_a_step_or_across_steps():
    draws = []
    for _ in range(3):
        draws += [torch.rand(1000, device=LTC) for _ in range(2)]
        ltc.mark_step()
    values = torch.cat(draws).cpu()
    assert values.unique().numel() > 5_900  # 24 bits: a few meet


# ---- distributions: bounds of six standard errors, and a fixed seed


def check_moments(x, mean, variance):
    x = x.double().cpu()
    n = x.numel()
    assert abs(x.mean() - mean) < 6 * math.sqrt(variance / n)
    fourth = ((x - x.mean()) ** 4).mean()
    assert abs(x.var() - variance) < 6 * math.sqrt((fourth - variance**2) / n)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_uniform(dtype):
    x = torch.rand(N, device=LTC, dtype=dtype)
    check_moments(x, 0.5, 1 / 12)
    assert 0 <= x.min() and x.max() < 1
    check_moments(torch.empty(N, device=LTC, dtype=dtype).uniform_(-2, 4), 1, 3)
    pairs = x.view(-1, 2).double()
    assert abs(((pairs[:, 0] - 0.5) * (pairs[:, 1] - 0.5)).mean().item()) < 6 / 12 / math.sqrt(N / 2)  # neighbours do not correlate


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_normal(dtype):
    x = torch.randn(N, device=LTC, dtype=dtype)
    check_moments(x, 0, 1)
    assert torch.isfinite(x).all() and x.abs().max() > 3.5
    check_moments(torch.empty(N, device=LTC, dtype=dtype).normal_(3, 0.5), 3, 0.25)
    assert abs((x.double() ** 3).mean().item()) < 6 * math.sqrt(15 / N)
    inside = (x.abs() < 1).double().mean().item()
    assert abs(inside - 0.6826895) < 6 * math.sqrt(0.6827 * 0.3173 / N)


def test_half_precisions_stay_in_range():
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.rand(N, device=LTC, dtype=dtype)
        assert x.dtype == dtype and abs(x.double().mean().item() - 0.5) < 0.01 and x.min() >= 0


def test_complex_normal():
    x = torch.randn(N, device=LTC, dtype=torch.complex64).cpu()
    check_moments(x.real, 0, 0.5)
    check_moments(x.imag, 0, 0.5)


def test_bernoulli():
    check_moments(torch.empty(N, device=LTC).bernoulli_(0.3), 0.3, 0.21)
    p = torch.tensor([0.0, 0.25, 1.0], device=LTC).expand(N, 3).contiguous()
    x = torch.bernoulli(p).cpu()
    assert x[:, 0].sum() == 0 and x[:, 2].sum() == N
    check_moments(x[:, 1], 0.25, 0.1875)


def test_randint():
    x = torch.randint(-3, 7, (N,), device=LTC)
    assert x.dtype == torch.int64 and x.min() == -3 and x.max() == 6
    check_moments(x, 1.5, 99 / 12)
    wide = torch.randint(0, 2**40, (N,), device=LTC).double() / 2**40
    check_moments(wide, 0.5, 1 / 12)


def test_exponential():
    x = torch.empty(N, device=LTC).exponential_(2.0)
    assert x.min() >= 0 and torch.isfinite(x).all()
    check_moments(x, 0.5, 0.25)


def test_geometric():
    x = torch.empty(N, device=LTC).geometric_(0.25)
    assert x.min() == 1
    check_moments(x, 4, 12)


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_randperm(n):
    x = torch.randperm(n, device=LTC)
    assert x.dtype == torch.int64 and x.sort().values.tolist() == list(range(n))


def test_randperm_moves_everything():
    first = torch.stack([torch.randperm(10, device=LTC)[0] for _ in range(400)]).bincount(minlength=10)
    assert first.min() > 10


def test_dropout():
    x = torch.ones(N, device=LTC, requires_grad=True)
    y = F.dropout(x, 0.3)
    y.sum().backward()
    kept = (y != 0).double().mean().item()
    assert abs(kept - 0.7) < 6 * math.sqrt(0.21 / N)
    assert torch.allclose(y[y != 0], torch.tensor(1 / 0.7, device=LTC))
    assert torch.equal(x.grad, y.detach())  # the same mask both ways


def test_drawing_compiles_once(metrics):
    for k in range(20):
        if k % 5 == 0:
            torch.manual_seed(k)
        x = torch.rand(8, device=LTC) + torch.randn(8, device=LTC) + F.dropout(torch.ones(8, device=LTC))
        ltc.mark_step()
    ltc.wait_device_ops()
    assert metrics.counter_value("UncachedCompile") == 1
    assert metrics.counter_value("CachedCompile") == 19
    assert [name for name in metrics.counter_names() if name.startswith("aten::")] == []
    assert x.shape == (8,)
