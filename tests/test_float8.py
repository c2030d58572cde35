"""Tensors of 8-bit floats: moved and converted, multiplied by torch._scaled_mm, and kept by any plugin that holds bytes."""

from pathlib import Path

import pytest
import torch

import ltc
from comparing import LTC, run_program

TYPES = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]


def bits(x):
    return x.cpu().view(torch.uint8)


def numbers():
    """Numbers of all sizes, on both sides of the range of such floats, and some between two of them."""
    x = torch.randn(4096) * torch.logspace(-12, 12, 4096, base=2)
    return torch.cat([x, torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 448, 464, 465, 57344, 61440, 1e9])])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_conversions_are_the_cpus(dtype):
    x = numbers()
    for wide in (torch.float32, torch.bfloat16, torch.float16):
        assert torch.equal(bits(x.to(wide).to(LTC).to(dtype)), bits(x.to(wide).to(dtype)))
    every = torch.arange(256).to(torch.uint8).view(dtype)
    got, expected = every.to(LTC).float().cpu(), every.float()
    assert torch.equal(got.isnan(), expected.isnan())  # whose bits are anyone's
    assert torch.equal(got.nan_to_num().view(torch.int32), expected.nan_to_num().view(torch.int32))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_moves(dtype):
    x = torch.arange(192).to(torch.uint8).view(dtype).reshape(12, 16)
    y = x.to(LTC)
    assert y.dtype == dtype and y.element_size() == 1
    for move in (
        lambda x: x.t(),
        lambda x: x.reshape(8, 24),
        lambda x: x[2:7, ::3],
        lambda x: x.clone(),
        lambda x: x.t().contiguous(),
        lambda x: x.view(torch.uint8),
        lambda x: x.expand(2, 12, 16),
    ):
        moved = move(y)
        assert moved.shape == move(x).shape and torch.equal(bits(moved), bits(move(x)))
    z = torch.empty(12, 16, dtype=dtype, device=LTC)
    z.copy_(y)
    z[1:3] = y[5:7]
    expected = x.clone()
    expected[1:3] = x[5:7]
    assert torch.equal(bits(z), bits(expected))


@pytest.mark.parametrize("out, with_bias", [(torch.bfloat16, False), (torch.bfloat16, True), (torch.float32, False)])
def test_scaled_products(out, with_bias):
    a, b = torch.randn(32, 48).to(torch.float8_e4m3fn), torch.randn(16, 48).to(torch.float8_e4m3fn)
    rest = [torch.tensor(0.5), torch.tensor(2.0)] + ([torch.randn(16).to(out)] if with_bias else [])
    got = torch._scaled_mm(a.to(LTC), b.to(LTC).t(), *(x.to(LTC) for x in rest), out_dtype=out)
    assert got.dtype == out
    torch.testing.assert_close(got.cpu(), torch._scaled_mm(a, b.t(), *rest, out_dtype=out))


@pytest.mark.skipif(
    not (Path(ltc.__file__).parent / "plugins" / "libltc_opencl.so").exists(), reason="built where there were no OpenCL headers"
)
@pytest.mark.parametrize("dtype", TYPES[:2], ids=str)
def test_generated_kernels_move_and_convert(dtype):
    run = run_program(
        f"""
        import torch, ltc
        def compute(x):
            y = (x * 3).to({dtype})
            z = torch.cat([y.t()[2:9, ::2], y.t()[:7, ::2]]).reshape(2, -1)
            return torch.where(z.float() > 0, z.float(), x[0, 0]), z.view(torch.uint8)
        x = torch.randn(12, 16)
        for got, expected in zip(compute(x.to("ltc")), compute(x)):
            assert torch.equal(got.cpu(), expected)
        assert not ltc.metrics.fallbacks(), ltc.metrics.fallbacks()
        """,
        LTC_BACKEND="opencl",
    )
    assert run.returncode == 0, run.stderr
