"""Sums, means, layer norms and softmax in all directions and lengths, beside the CPU in double precision."""

import pytest
import torch
from comparing import assert_same, rows_of_edges

LTC = torch.device("ltc")
SIZES = [(5,), (1, 7), (3, 1025), (1030, 33), (64, 64), (7, 5, 40), (2, 3, 1, 4), (3, 40000), (9, 1), (130, 700), (1, 100000)]


def near(lazy, exact, terms):
    """A float's sum of so many terms of about 1."""
    torch.testing.assert_close(lazy.cpu(), exact.float(), rtol=1e-6, atol=1e-6 * terms**0.5, equal_nan=True)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions_over_every_set_of_dims(name, sizes):
    x = torch.randn(sizes)
    for keepdim in (False, True):
        for mask in range(1 << len(sizes)):
            dims = [dim for dim in range(len(sizes)) if mask >> dim & 1]
            exact = getattr(x.double(), name)(dims, keepdim=keepdim)
            result = getattr(x.to(LTC), name)(dims, keepdim=keepdim)
            assert result.shape == exact.shape
            near(result, exact, x.numel() / max(exact.numel(), 1))


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), ()], ids=str)
def test_nothing_to_add(sizes):
    x = torch.ones(sizes)
    assert_same(x.to(LTC).sum(), x.sum())
    if sizes:
        assert_same(x.to(LTC).sum(0), x.sum(0))
        assert_same(x.to(LTC).mean(-1), x.mean(-1))


def test_other_types_and_layouts():
    x = torch.randn(40, 70)
    for y in (x.double(), x.bfloat16(), x.int(), x > 0, x.t(), x[:, ::2], x[:, :1].expand(40, 70)):
        for dim in (0, 1, (0, 1)):
            assert_same(y.to(LTC).sum(dim), y.sum(dim), rtol=1e-5, atol=1e-4)
    assert_same(x.to(LTC).sum(0, dtype=torch.double), x.sum(0, dtype=torch.double))


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_is_not_finite_stays_in_its_row(value):
    x = torch.randn(70, 90)
    x[3, 80] = value
    for dim in (0, 1):
        assert_same(x.to(LTC).sum(dim), x.sum(dim), rtol=1e-5, atol=1e-4)


def test_a_dim_that_is_not_there():
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(2, 3).to(LTC).sum(2)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        torch.ones(2, 3).to(LTC).sum((0, 0))


@pytest.mark.parametrize("sizes, normalized", [((6, 128), 1), ((4, 5, 33), 1), ((4, 5, 33), 2), ((2, 20000), 1), ((3, 1), 1), ((1, 16), 1)])
@pytest.mark.parametrize("affine", ["weight and bias", "weight", "none", "bias"])
def test_layer_norm(sizes, normalized, affine):
    shape = sizes[-normalized:]
    x, weight, bias = torch.randn(sizes) * 3 + 5, torch.randn(shape), torch.randn(shape)
    weight, bias = weight if "weight" in affine else None, bias if "bias" in affine else None

    def run(x, weight, bias):
        return torch.native_layer_norm(x, shape, weight, bias, 1e-5)

    def to(tensor, *where):
        return None if tensor is None else tensor.to(*where)

    results = run(x.to(LTC), to(weight, LTC), to(bias, LTC))
    exact = run(x.double(), to(weight, torch.double), to(bias, torch.double))
    for result, value in zip(results, exact):
        assert result.shape == value.shape
        torch.testing.assert_close(result.cpu(), value.float(), rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 31, 64, 95, 1000, 16384, 40001])
def test_softmax_is_as_exact_as_eager(length):
    for scale in (1, 30):
        x = torch.randn(7, length) * scale
        exact = torch.softmax(x.double(), -1)
        result = torch.softmax(x.to(LTC), -1).cpu().double()
        errors = [((value - exact).abs() / exact.clamp(min=1e-38)).max() for value in (result, torch.softmax(x, -1).double())]
        assert errors[0] <= errors[1] + 2.0**-23


def test_softmax_over_other_dims_types_and_layouts():
    x = torch.randn(6, 40, 70)
    for y in (x, x.double(), x.bfloat16(), x.transpose(0, 2), x[..., ::2], x[:, :, :1].expand(6, 40, 70), x[0, 0], x[0, 0, 0], x[:0], x[..., :0]):
        for dim in range(-1, y.dim()):
            assert_same(torch.softmax(y.to(LTC), dim), torch.softmax(y, dim))


@pytest.mark.parametrize("length", [1, 5, 16, 37, 64, 200])
def test_softmax_of_special_values(length):
    rows = rows_of_edges(length)
    assert_same(torch.softmax(rows.to(LTC), -1), torch.softmax(rows, -1), rtol=3e-6, atol=1e-43)
