"""Numbers that a dtype may not hold: computed, wrapped and refused as on the CPU, and refused where they are recorded."""

import pytest
import torch
import torch.nn.functional as F

import ltc
from comparing import LTC

WIDE = [2**63, 2**64 - 1, 2**63 + 12345678901, 0x9E3779B97F4A7C15]
DTYPES = [torch.int64, torch.int32, torch.uint8, torch.float32, torch.float64, torch.bfloat16, torch.bool]


def zeros(like, sizes=(1,)):
    return torch.zeros(sizes, dtype=torch.int64, device=like.device)


OPS = {
    "mul": lambda x, n: x * n,
    "mul_": lambda x, n: x.clone().mul_(n),
    "and": lambda x, n: x & n,
    "xor": lambda x, n: x ^ n,
    "add": lambda x, n: x + n,
    "add of a multiple": lambda x, n: torch.add(x, x, alpha=n),
    "rsub": lambda x, n: n - x,
    "div": lambda x, n: x / n,
    "rdiv": lambda x, n: n / x,
    "floor_divide": lambda x, n: x // n,
    "remainder": lambda x, n: x % n,
    "of a remainder": lambda x, n: n % x,
    "fmod": lambda x, n: x.fmod(n),
    "pow": lambda x, n: x**n,
    "of a power": lambda x, n: n**x,
    "eq": lambda x, n: x == n,
    "lt": lambda x, n: x < n,
    "shift": lambda x, n: x << n,
    "copysign": lambda x, n: x.copysign(n),
    "of a number": lambda x, n: torch.tensor(3, dtype=x.dtype, device=x.device) * n,
    "fill_": lambda x, n: x.clone().fill_(n),
    "set item": lambda x, n: x.clone().__setitem__(0, n) or x,
    "full": lambda x, n: torch.full((2,), n, device=x.device),
    "full of its dtype": lambda x, n: torch.full((2,), n, dtype=x.dtype, device=x.device),
    "full of uint64": lambda x, n: torch.full((2,), n, dtype=torch.uint64, device=x.device),
    "full_like": lambda x, n: torch.full_like(x, n),
    "tensor": lambda x, n: torch.tensor(n, dtype=x.dtype, device=x.device),
    "where": lambda x, n: torch.where(x > 2, x, n),
    "where of numbers": lambda x, n: torch.where(x > 2, n, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 2, n),
    "index_fill": lambda x, n: x.index_fill(0, zeros(x), n),
    "scatter": lambda x, n: x.scatter(0, zeros(x), n),
    "clamp": lambda x, n: x.clamp(max=n),
    "clamp from": lambda x, n: x.clamp(n),
    "hardtanh": lambda x, n: F.hardtanh(x, 0, n),
    "threshold": lambda x, n: torch.threshold(x, 1, n),
    "pad": lambda x, n: F.pad(x, (1, 1), value=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "lerp": lambda x, n: torch.lerp(x, x, n),
    "isin": lambda x, n: torch.isin(x, n),
    "arange": lambda x, n: torch.arange(n - 2, n, device=x.device),
    "arange of floats": lambda x, n: torch.arange(n - 2000, n, 1000, dtype=torch.float64, device=x.device),
    "linspace": lambda x, n: torch.linspace(0, n, 3, device=x.device),
}


def outcome(function, x, number):
    try:
        result = function(x, number)
        return result.dtype, result.stride(), str(result.cpu().tolist())
    except (RuntimeError, OverflowError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("name", OPS)
def test_integers_above_63_bits(name):
    for dtype in DTYPES:
        for number in WIDE:
            x = torch.tensor([1, 2, 3]).to(dtype)
            assert outcome(OPS[name], x.to(LTC), number) == outcome(OPS[name], x, number), (dtype, hex(number))


def test_a_hash_is_recorded(metrics):
    x = torch.arange(5, device=LTC)
    y = ((x * 0x9E3779B97F4A7C15) ^ (x >> 7)) & 0xFFFFFFFFFFFFFFFF
    cpu = torch.arange(5)
    assert y.tolist() == (((cpu * 0x9E3779B97F4A7C15) ^ (cpu >> 7)) & 0xFFFFFFFFFFFFFFFF).tolist()
    assert metrics.fallbacks() == []


def test_a_signature_of_small_numbers_is_none_of_large_ones():
    x = torch.tensor([1, 2], device=LTC)
    assert x.clamp(max=1).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="overflow"):
        x.clamp(max=2**63)
    assert x.clamp(max=2).tolist() == [1, 2]


TOO_LARGE = {
    "full": lambda device: torch.full((2,), 1e39, device=device),
    "full of int8": lambda device: torch.full((2,), 300, dtype=torch.int8, device=device),
    "fill_": lambda device: torch.ones(2, device=device).fill_(1e39),
    "fill_ with infinity": lambda device: torch.ones(2, dtype=torch.int64, device=device).fill_(float("inf")),
    "masked_fill": lambda device: torch.ones(2, device=device).masked_fill(torch.ones(2, device=device) > 0, 1e39),
    "masked_fill of half": lambda device: torch.ones(2, device=device).half().masked_fill(torch.ones(2, device=device) > 0, -1e9),
    "clamp": lambda device: torch.ones(2, dtype=torch.int8, device=device).clamp(max=300),
    "pad": lambda device: F.pad(torch.ones(2, device=device), (1, 1), value=1e39),
    "index_fill": lambda device: torch.ones(2, device=device).index_fill(0, torch.tensor([0], device=device), 1e39),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_does_not_fit_is_refused_at_once(name):
    with pytest.raises(RuntimeError) as expected:
        TOO_LARGE[name]("cpu")
    kept = torch.ones(2, device=LTC) + 1
    with pytest.raises(RuntimeError) as found:
        TOO_LARGE[name](LTC)
    assert str(found.value) == str(expected.value)
    assert kept.tolist() == [2, 2]


def test_what_only_rounds_or_wraps_is_computed():
    x = torch.ones(2, device=LTC)
    assert (x + 1e39).tolist() == [float("inf")] * 2
    assert x.masked_fill(x > 0, float("-inf")).tolist() == [float("-inf")] * 2
    assert x.masked_fill(x > 0, -3e38).cpu().equal(torch.full((2,), -3e38))
    assert (x.to(torch.int8) > 300).tolist() == [False, False]
    assert torch.full((2,), -1, dtype=torch.uint8, device=LTC).tolist() == torch.full((2,), -1, dtype=torch.uint8).tolist()
