"""Sums and means of rows that an element-wise cluster computes itself: exact enough, the same bits whoever computes them, and only
where their rows are there."""

import pytest
import torch
from comparing import outputs_however_computed

import ltc

LTC = torch.device("ltc")
AT_ONCE = 1 << 17  # elements from which a sum joins its cluster
LENGTHS = [1, 15, 16, 17, 48, 96, 336, 1008, 1023, 1024, 1025, 1040, 2032, 2048, 2049, 16384, 16400, 49168]


def exact_sum_error(lazy, exact, magnitudes):
    """In units of float's precision of the sum of the magnitudes, which no order of adding changes."""
    return ((lazy.double() - exact).abs() / (magnitudes * 2.0**-24).clamp(min=1e-300)).max().item()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rows", [1, 3, 67, "many"])
def test_sums_of_products(rows, length):
    rows = AT_ONCE // length + 3 if rows == "many" else rows
    x, y = torch.randn(rows, length), torch.randn(rows, length)
    a, b = x.to(LTC), y.to(LTC)
    product = (x * y).double()  # rounded once, as on the device
    results = (a * b).sum(1), (a * b).mean(-1, keepdim=True), (a * b).sum()
    assert [result.shape for result in results] == [(rows,), (rows, 1), ()]
    magnitudes = product.abs().sum(1)
    assert exact_sum_error(results[0].cpu(), product.sum(1), magnitudes) <= 4
    assert exact_sum_error(results[1].cpu()[:, 0], product.mean(1), magnitudes / length) <= 4
    assert exact_sum_error(results[2].cpu(), product.sum(), magnitudes.sum()) <= 4


def test_errors_are_no_larger_than_those_of_eager():
    x = torch.rand(1 << 22) + 0.5
    exact = (x * x).double().sum()
    assert abs(float((x.to(LTC) * x.to(LTC)).sum()) - exact) <= abs(float((x * x).sum()) - exact) + exact * 2.0**-24


def test_what_is_summed_may_be_wanted_too():
    x = torch.randn(129, 1024)
    a = x.to(LTC)
    value = a.tanh()
    total, centred = value.sum(1), value - value.mean(1, keepdim=True)
    torch.testing.assert_close(value.cpu(), x.tanh())
    torch.testing.assert_close(total.cpu(), x.tanh().sum(1))
    torch.testing.assert_close(centred.cpu(), x.tanh() - x.tanh().mean(1, keepdim=True))


def test_sums_of_several_values_and_lengths():
    x = torch.randn(72, 64, 32)
    a = x.to(LTC)
    doubled, raised = a * 2, a + 1
    results = doubled.sum(2), raised.mean(2), (doubled * raised).sum((1, 2)), doubled.sum((0, 1)), raised.sum(), raised.sum(1)
    x2, x1 = x * 2, x + 1
    wanted = x2.sum(2), x1.mean(2), (x2 * x1).sum((1, 2)), x2.sum((0, 1)), x1.sum(), x1.sum(1)
    for result, expected in zip(results, wanted):
        torch.testing.assert_close(result.cpu(), expected, rtol=1e-5, atol=1e-4)


def test_operands_that_lie_in_many_ways():
    x, row, column = torch.randn(2048, 64), torch.randn(2048), torch.randn(64, 1)
    for form in (x.t(), torch.stack([x, x], -1)[..., 0].t(), x[:1].expand(2048, 64).t()):
        lazy = (form.to(LTC) * row.to(LTC) - column.to(LTC)).sum(1)
        torch.testing.assert_close(lazy.cpu(), (form * row - column).sum(1), rtol=1e-5, atol=1e-4)
    flags = x > 0
    torch.testing.assert_close((flags.to(LTC) * x.to(LTC)).mean(1).cpu(), (flags * x).mean(1))


def test_special_values():
    inf, nan = float("inf"), float("nan")
    rows = torch.ones(AT_ONCE // 64, 64)
    rows[0, 5], rows[1, 6], rows[2, 7], rows[3, 8], rows[3, 63] = nan, inf, -inf, inf, -inf
    rows[4], rows[5], rows[6], rows[7] = -0.0, 1e-45, 3e38, 0.0
    lazy, eager = (rows.to(LTC) * 1.0).sum(1).cpu(), (rows * 1.0).sum(1)
    torch.testing.assert_close(lazy, eager, equal_nan=True, rtol=1e-6, atol=0)
    assert lazy[5] == 64 * torch.tensor(1e-45)


def test_random_numbers():
    torch.manual_seed(3)
    kept = torch.nn.functional.dropout(torch.ones(64, 2048, device=LTC), 0.25)
    total = kept.sum(1)
    torch.testing.assert_close(total.cpu(), kept.cpu().sum(1))
    assert 0.7 < (kept.cpu() != 0).float().mean() < 0.8


BITS = """
import hashlib, torch, ltc
torch.manual_seed(0)
torch.set_num_threads(THREADS)
digest = hashlib.sha256()
for rows, length in ((8200, 16), (400, 336), (700, 1040), (9, 40000), (1, 1 << 20)):
    x, y = torch.randn(rows, length), torch.randn(length)
    a, b = x.to("ltc"), y.to("ltc")
    for value in ((a * b).exp().sum(1), (a + b).tanh().mean(1), (a * b - a).sum()):
        digest.update(value.cpu().numpy().tobytes())
print(digest.hexdigest())
"""


@pytest.mark.parametrize("capability", [None, "avx2", "default"])
def test_the_same_bits_from_any_number_of_threads_compiled_or_not(capability):
    assert len(outputs_however_computed(BITS, capability)) == 1
