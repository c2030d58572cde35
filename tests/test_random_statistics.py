"""The draws of each distribution: mean and variance, its shape where that has a closed form, and the ends of its range.

The seed is fixed, so a test that passes goes on passing; the bounds are those of a chance of 1e-6 and less."""

import math

import pytest
import torch
import torch.nn.functional as F

from comparing import LTC

N = 100_000
BOUND = 5.5  # standard errors

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
# The step of a dtype near 1: what rounding may move a distribution function by.
ROUNDING = {torch.float16: 2**-10, torch.bfloat16: 2**-7}


def empty(dtype=torch.float32, n=N):
    return torch.empty(n, device=LTC, dtype=dtype)


def check_moments(x, mean, variance, rounding=0.0):
    x = x.double().cpu().flatten()
    n = x.numel()
    assert abs(x.mean() - mean) < BOUND * math.sqrt(variance / n) + rounding
    fourth = ((x - x.mean()) ** 4).mean()
    assert abs(x.var() - variance) < BOUND * math.sqrt((fourth - variance**2).clamp_min(1e-12) / n) + rounding * (1 + variance)


def check_distribution(x, function, rounding=0.0):
    """Kolmogorov and Smirnov's test against a continuous distribution function."""
    x = x.double().cpu().flatten().sort().values
    expected, at = function(x), torch.arange(len(x) + 1, dtype=torch.float64) / len(x)
    distance = torch.maximum((at[1:] - expected).abs().max(), (at[:-1] - expected).abs().max())
    assert distance < 2.7 / math.sqrt(len(x)) + rounding


def check_counts(x, probabilities):
    """Pearson's test of values 0, 1, 2, ..."""
    counts = x.flatten().cpu().long().bincount(minlength=len(probabilities)).double()
    assert len(counts) == len(probabilities)
    expected = torch.as_tensor(probabilities, dtype=torch.float64) * x.numel()
    assert (counts[expected == 0] == 0).all()
    some = expected > 0
    statistic = ((counts - expected)[some] ** 2 / expected[some]).sum().item()
    freedom = int(some.sum()) - 1
    assert statistic < freedom + BOUND * math.sqrt(2 * freedom) + 20


def normal_function(x, mean=0.0, std=1.0):
    return (1 + torch.erf((x - mean) / (std * math.sqrt(2)))) / 2


# ---- continuous distributions: how to draw, mean, variance, distribution function, open or closed ends

CONTINUOUS = {
    "uniform_": (lambda d: empty(d).uniform_(), 0.5, 1 / 12, lambda x: x.clamp(0, 1), (0, 1)),
    "uniform_of_a_range": (lambda d: empty(d).uniform_(-2, 4), 1, 3, lambda x: (x + 2) / 6, (-2, 4)),
    "rand": (lambda d: torch.rand(N, device=LTC, dtype=d), 0.5, 1 / 12, lambda x: x.clamp(0, 1), (0, 1)),
    "rand_like": (lambda d: torch.rand_like(empty(d)), 0.5, 1 / 12, lambda x: x.clamp(0, 1), (0, 1)),
    "randn": (lambda d: torch.randn(N, device=LTC, dtype=d), 0, 1, normal_function, None),
    "randn_like": (lambda d: torch.randn_like(empty(d)), 0, 1, normal_function, None),
    "normal_": (lambda d: empty(d).normal_(0.5, 0.25), 0.5, 0.0625, lambda x: normal_function(x, 0.5, 0.25), None),
    "normal_of_tensors": (lambda d: torch.normal(torch.full((N,), 0.5, device=LTC, dtype=d), torch.full((N,), 0.25, device=LTC, dtype=d)),
                          0.5, 0.0625, lambda x: normal_function(x, 0.5, 0.25), None),
    "normal_of_means": (lambda d: torch.normal(torch.ones(N, device=LTC, dtype=d), 0.5), 1, 0.25,
                        lambda x: normal_function(x, 1, 0.5), None),
    "normal_of_deviations": (lambda d: torch.normal(1.0, torch.full((N,), 0.5, device=LTC, dtype=d)), 1, 0.25,
                             lambda x: normal_function(x, 1, 0.5), None),
    "exponential_": (lambda d: empty(d).exponential_(2.0), 0.5, 0.25, lambda x: 1 - torch.exp(-2 * x), None),
    "log_normal_": (lambda d: empty(d).log_normal_(0.0, 0.25), math.exp(1 / 32), (math.exp(1 / 16) - 1) * math.exp(1 / 16),
                    lambda x: normal_function(x.log(), 0, 0.25), None),
    "gamma": (lambda d: torch._standard_gamma(torch.full((N,), 1.0, device=LTC, dtype=d)), 1, 1, lambda x: 1 - torch.exp(-x), None),
}


# PyTorch's CPU, which draws the gamma distribution, has none in half precision.
@pytest.mark.parametrize("name, dtype", [(n, d) for n in CONTINUOUS for d in FLOATS if n != "gamma" or d not in ROUNDING], ids=str)
def test_continuous(name, dtype):
    draw, mean, variance, function, ends = CONTINUOUS[name]
    rounding = ROUNDING.get(dtype, 0.0)
    x = draw(dtype)
    assert x.dtype == dtype and x.device == LTC and torch.isfinite(x).all()
    check_moments(x, mean, variance, rounding)
    check_distribution(x, function, 2 * rounding)
    if ends:
        assert x.min() >= ends[0] and x.max() < ends[1]  # the end is never drawn, rounded to neither


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_cauchy(dtype):
    x = empty(dtype).cauchy_(1.0, 2.0)
    check_distribution(x, lambda v: torch.atan((v - 1) / 2) / math.pi + 0.5)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_never_reaches_its_end(dtype):
    digits = {torch.float16: 11, torch.bfloat16: 8}.get(dtype)
    x = torch.cat([torch.rand(1_000_000, device=LTC, dtype=dtype) for _ in range(3)]).cpu()
    assert x.max() < 1 and x.min() >= 0
    if digits:
        assert x.max() == 1 - 2.0**-digits and x.min() == 0
        check_counts(x[:N].double() * 2**8 // 1, [2.0**-8] * 2**8)
    for low, high in ((1, 2), (-1, 0), (1000, 1001), (0.1, 0.3)):
        y = empty(dtype).uniform_(low, high).cpu()
        low, high = torch.tensor([low, high], dtype=dtype)
        if low < high:  # in this dtype too
            assert y.min() >= low and y.max() < high


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exponential_is_positive(dtype):
    x = torch.cat([empty(dtype, 1_000_000).exponential_() for _ in range(20)])
    assert x.min() > 0 and torch.isfinite(x).all()


def test_tails_of_the_normal_distribution():
    x = torch.randn(2_000_000, device=LTC).cpu()
    for at, tail in ((3, 2.69980e-3), (4, 6.33425e-5)):
        beyond = (x.abs() > at).double().mean().item()
        assert abs(beyond - tail) < BOUND * math.sqrt(tail / len(x))
    assert abs((x**3).mean()) < BOUND * math.sqrt(15 / len(x)) and abs((x**4).mean() - 3) < BOUND * math.sqrt(96 / len(x))


def test_neighbours_and_draws_do_not_correlate():
    draws = torch.rand(4, N, device=LTC).sub(0.5).double().cpu()
    bound = BOUND / 12 / math.sqrt(N)
    assert abs((draws[:, 1:] * draws[:, :-1]).mean()) < bound
    for i in range(4):
        for j in range(i):
            assert abs((draws[i] * draws[j]).mean()) < bound
    again = torch.rand(N, device=LTC).sub(0.5).double().cpu()
    assert abs((again * draws[0]).mean()) < bound


@pytest.mark.parametrize("draw, variance", [(torch.randn, 0.5), (torch.rand, 1 / 12)])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex(dtype, draw, variance):
    x = draw(N, device=LTC, dtype=dtype).cpu()
    mean = 0.5 if draw is torch.rand else 0
    for part in (x.real, x.imag):
        check_moments(part, mean, variance)
    assert abs(((x.real - mean) * (x.imag - mean)).double().mean()) < BOUND * variance / math.sqrt(N)


# ---- discrete distributions

DISCRETE = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", DISCRETE, ids=str)
def test_bernoulli_with_one_probability(dtype):
    x = empty(dtype).bernoulli_(0.3)
    assert x.dtype == dtype
    check_counts(x, [0.7, 0.3])
    assert empty(dtype).bernoulli_(0.0).sum() == 0 and empty(dtype).bernoulli_(1.0).double().sum() == N


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_bernoulli_with_a_probability_each(dtype):
    p = torch.tensor([0.0, 0.25, 1.0], dtype=dtype).to(LTC).expand(N, 3)
    for x in (torch.bernoulli(p), empty(torch.int64).new_empty(N, 3).bernoulli_(p), torch.bernoulli(p, out=torch.empty(0, device=LTC, dtype=dtype))):
        assert x[:, 0].sum() == 0 and x[:, 2].double().sum() == N
        check_counts(x[:, 1], [0.75, 0.25])
    assert torch.bernoulli(p).dtype == dtype
    check_counts(torch.bernoulli(p, 0.5), [0.5, 0.5])


def test_a_small_probability_is_not_rounded_away():
    x = empty(torch.bfloat16, 1_000_000).bernoulli_(1e-4)
    assert abs(x.double().sum().item() - 100) < BOUND * 10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32], ids=str)
def test_geometric(dtype):
    x = empty(dtype).geometric_(0.25)
    assert x.dtype == dtype and x.min() == 1
    check_moments(x, 4, 12)
    check_counts(x.clamp_max(20), [0] + [0.25 * 0.75**k for k in range(19)] + [0.75**19])


INTEGERS = {
    "randint": lambda: torch.randint(0, 10, (N,), device=LTC),
    "randint_int32": lambda: torch.randint(10, (N,), device=LTC, dtype=torch.int32),
    "randint_float": lambda: torch.randint(10, (N,), device=LTC, dtype=torch.float32),
    "randint_like": lambda: torch.randint_like(empty(torch.int64), 10),
    "randint_below_zero": lambda: torch.randint(-7, 3, (N,), device=LTC) + 7,
    "random_to": lambda: empty(torch.int64).random_(10),
    "random_from_to": lambda: empty(torch.int16).random_(-5, 5) + 5,
    "random_of_a_wide_range": lambda: empty(torch.int64).random_(10 * 2**40) // 2**40,
    "random_uint8": lambda: empty(torch.uint8).random_(10),
    "random_bfloat16": lambda: empty(torch.bfloat16).random_(10),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    check_counts(INTEGERS[name](), [0.1] * 10)


# The draws of random_ without bounds: 2^bits values from 0, one more where the dtype has it exactly.
FULL = {
    torch.bool: 1, torch.uint8: 8, torch.int8: 7, torch.int16: 15, torch.int32: 31, torch.int64: 63,
    torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FULL, ids=str)
def test_random_fills_its_dtype(dtype):
    x = empty(dtype).random_().cpu()
    bits = FULL[dtype]
    assert x.min() >= 0 and x.double().max() <= 2.0**bits
    buckets = min(bits, 4)
    check_counts((x.double() // 2 ** (bits - buckets)).clamp_max(2**buckets - 1), [2.0**-buckets] * 2**buckets)


def test_random_over_all_of_int64():
    lowest, highest = -(2**63), 2**63 - 1
    for x in (empty(torch.int64).random_(lowest, None), empty(torch.int64).random_(lowest, highest)):
        assert abs((x < 0).double().mean() - 0.5) < BOUND * 0.5 / math.sqrt(N)
        assert x.unique().numel() == N
    beyond = empty(torch.int64).random_(-3 * 2**61, 3 * 2**61)  # a remainder, and as uneven as PyTorch's own
    assert -3 * 2**61 <= beyond.min() < -2**62 and 2**62 < beyond.max() < 3 * 2**61
    check_counts((empty(torch.int64).random_(0, None) >> 60), [1 / 8] * 8)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32], ids=str)
def test_permutations(dtype):
    x = torch.stack([torch.randperm(8, device=LTC, dtype=dtype) for _ in range(2000)]).cpu()
    assert x.dtype == dtype and torch.equal(x.sort(1).values, torch.arange(8, dtype=dtype).expand(2000, 8))
    for place in range(8):
        check_counts(x[:, place], [1 / 8] * 8)


def test_multinomial():
    weights = torch.tensor([1.0, 2.0, 0.0, 5.0], device=LTC)
    check_counts(torch.multinomial(weights, N, replacement=True), [1 / 8, 2 / 8, 0, 5 / 8])
    without = torch.multinomial(weights.expand(5000, 4), 3)
    assert (without.sort(1).values.cpu() == torch.tensor([0, 1, 3])).all()
    check_counts(without[:, 0], [1 / 8, 2 / 8, 0, 5 / 8])


@pytest.mark.parametrize("rate", [0.5, 4.0, 50.0])
def test_poisson(rate):
    x = torch.poisson(torch.full((N,), rate, device=LTC))
    assert torch.equal(x, x.round()) and x.min() >= 0
    check_moments(x, rate, rate)


def test_binomial():
    x = torch.binomial(torch.full((N,), 12.0, device=LTC), torch.full((N,), 0.25, device=LTC))
    check_moments(x, 3, 2.25)
    check_counts(x, [math.comb(12, k) * 0.25**k * 0.75 ** (12 - k) for k in range(13)])


def test_dirichlet():
    x = torch._sample_dirichlet(torch.tensor([1.0, 2.0, 3.0], device=LTC).expand(N, 3)).cpu()
    assert torch.allclose(x.sum(1), torch.ones(N))
    for part, alpha in enumerate((1, 2, 3)):
        check_moments(x[:, part], alpha / 6, alpha * (6 - alpha) / (36 * 7))


# ---- layers


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_dropout(dtype):
    x = F.dropout(torch.ones(N, device=LTC, dtype=dtype), 0.3)
    check_counts(x != 0, [0.3, 0.7])
    assert torch.equal(x.unique().cpu(), torch.tensor([0, 1 / 0.7], dtype=dtype))


DROPOUTS = {
    "dropout2d": (F.dropout2d, (500, 40, 2, 3), (2, 3)),
    "dropout1d": (F.dropout1d, (500, 40, 3), (2,)),
    "dropout3d": (F.dropout3d, (500, 40, 1, 2, 3), (2, 3, 4)),
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_of_channels(name):
    function, sizes, within = DROPOUTS[name]
    kept = (function(torch.ones(sizes, device=LTC), 0.25) != 0).double()
    assert torch.equal(kept.amin(within), kept.amax(within))
    check_counts(kept.amax(within), [0.25, 0.75])


def test_alpha_dropout_keeps_mean_and_variance():
    check_moments(F.alpha_dropout(torch.randn(N, device=LTC), 0.2, training=True), 0, 1, rounding=0.02)


def test_rrelu():
    x = F.rrelu(-torch.ones(N, device=LTC), 0.1, 0.3, training=True)
    check_distribution(-x, lambda v: (v - 0.1) / 0.2)
    assert torch.equal(F.rrelu(torch.ones(5, device=LTC), training=True).cpu(), torch.ones(5))


def test_distributions_of_the_package():
    normal = torch.distributions.Normal(torch.zeros(N, device=LTC), torch.ones(N, device=LTC))
    check_distribution(normal.rsample(), normal_function)
    check_distribution(normal.sample(), normal_function)
    check_distribution(torch.distributions.Gumbel(torch.zeros(N, device=LTC), 1.0).sample(), lambda x: torch.exp(-torch.exp(-x)))
    check_counts(torch.distributions.Categorical(torch.tensor([0.2, 0.3, 0.5], device=LTC)).sample((N,)), [0.2, 0.3, 0.5])
    check_moments(torch.distributions.Beta(torch.full((N,), 2.0, device=LTC), 3.0).sample(), 0.4, 0.04)


# ---- what is no distribution is refused as on the CPU

REFUSED = {
    "uniform_of_integers": lambda d: torch.empty(3, device=d, dtype=torch.int64).uniform_(),
    "uniform_from_above": lambda d: torch.empty(3, device=d).uniform_(3, 1),
    "uniform_beyond_the_dtype": lambda d: torch.empty(3, device=d, dtype=torch.float16).uniform_(0, 1e6),
    "normal_of_integers": lambda d: torch.randn(3, device=d, dtype=torch.int64),
    "normal_below_zero": lambda d: torch.empty(3, device=d).normal_(0, -1),
    "log_normal_of_zero": lambda d: torch.empty(3, device=d).log_normal_(0, 0),
    "exponential_of_integers": lambda d: torch.empty(3, device=d, dtype=torch.int64).exponential_(),
    "exponential_of_zero": lambda d: torch.empty(3, device=d).exponential_(0),
    "cauchy_of_integers": lambda d: torch.empty(3, device=d, dtype=torch.int64).cauchy_(),
    "cauchy_below_zero": lambda d: torch.empty(3, device=d).cauchy_(0, -1),
    "geometric_of_one": lambda d: torch.empty(3, device=d).geometric_(1),
    "geometric_of_bool": lambda d: torch.empty(3, device=d, dtype=torch.bool).geometric_(0.5),
    "bernoulli_above_one": lambda d: torch.empty(3, device=d).bernoulli_(2.0),
    "bernoulli_of_integers": lambda d: torch.bernoulli(torch.ones(3, device=d, dtype=torch.int64)),
    "empty_range": lambda d: torch.randint(5, 5, (3,), device=d),
    "range_beyond_the_dtype": lambda d: torch.randint(0, 300, (3,), device=d, dtype=torch.uint8),
    "permutation_below_zero": lambda d: torch.randperm(-1, device=d),
    "permutation_beyond_the_dtype": lambda d: torch.randperm(3000, device=d, dtype=torch.float16),
    "permutation_beyond_uint8": lambda d: torch.randperm(300, device=d, dtype=torch.uint8),
    "multinomial_of_too_many": lambda d: torch.multinomial(torch.ones(3, device=d), 5),
    "dropout_above_one": lambda d: F.dropout(torch.ones(3, device=d), 1.5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    errors = []
    for device in (LTC, "cpu"):
        with pytest.raises(Exception) as caught:
            REFUSED[name](device)
        errors.append(caught)
    assert errors[0].type is errors[1].type


@pytest.mark.parametrize("draw", [lambda n: torch.rand(n, device=LTC), lambda n: torch.randint(5, n, device=LTC),
                                  lambda n: torch.empty(n, device=LTC).bernoulli_(), lambda n: torch.bernoulli(torch.ones(n, device=LTC))])
def test_drawing_nothing(draw):
    assert draw((0, 3)).shape == (0, 3)
