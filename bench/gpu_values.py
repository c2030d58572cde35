"""Checks of the libraries' numbers that need a GPU: `gpu_values.py precision | activations | fp8 | peers`. Prints what it found, and fails
where PyTorch's flags or its special values are not kept."""

import os
import sys

import torch
import torch.nn.functional as F

import ltc  # noqa: F401: the device

ON_CUDA = os.environ.get("LTC_BACKEND") == "cuda"


def largest_error(got, exact):
    return ((got.cpu().double() - exact).abs() / exact.abs().max()).max().item()


def precision():
    """TF32 keeps 10 bits behind the point, so its errors are about 1e-4 of the result, and those of F32 far below."""
    torch.manual_seed(0)
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    x, w = torch.randn(8, 128, 56, 56), torch.randn(256, 128, 3, 3)  # cuDNN computes smaller ones without TF32
    cases = {"product": (torch.mm, a, b), "convolution": (F.conv2d, x, w)}
    for allowed in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
        for name, (op, left, right) in cases.items():
            error = largest_error(op(left.to("ltc"), right.to("ltc")), op(left.double(), right.double()))
            print(f"{name}, TF32 {'allowed' if allowed else 'forbidden'}: {error:.1e}")
            assert error < (1e-2 if allowed else 1e-5), name
            assert error > 1e-5 or not (allowed and ON_CUDA), f"{name}: the flag does nothing"
    half = torch.randn(64, 65536).div(32).half()
    for allowed in (False, True):
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = allowed
        error = largest_error(half.to("ltc") @ half.t().to("ltc"), half.double() @ half.t().double())
        print(f"product of halves, sums of halves {'allowed' if allowed else 'forbidden'}: {error:.1e}")
        assert error < 1e-3


def activations():
    """Whether cuBLASLt's relu keeps NaN and how exact its gelu is: LTC_CUDA_WITH=activations may become the default if it does, and is."""
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        x, layer = torch.randn(64, 256, dtype=dtype), torch.nn.Linear(256, 512, dtype=dtype)
        x[3, 5] = float("nan")
        exact = layer.double()(x.double())
        layer = layer.to(dtype).to("ltc")
        relu, gelu = torch.relu(layer(x.to("ltc"))).cpu(), F.gelu(layer(x.to("ltc")), approximate="tanh").cpu()
        rows = [row for row in range(64) if row != 3]
        print(f"{dtype}: relu keeps NaN: {bool(relu[3].isnan().all())}, gelu keeps NaN: {bool(gelu[3].isnan().all())}")
        for name, got, expected in (("relu", relu, exact.relu()), ("gelu", gelu, F.gelu(exact, approximate="tanh"))):
            error = largest_error(got[rows], expected[rows])
            print(f"{dtype}: {name} is off by {error:.1e}")
            assert error < (1e-3 if dtype == torch.float32 else 2e-2), name


def fp8():
    """Products of floats of 8 bits: that cuBLASLt computes them where the device can, and their values, sizes and layouts."""
    torch.manual_seed(0)
    forms = [
        (torch.float8_e4m3fn, torch.float8_e4m3fn),
        (torch.float8_e4m3fn, torch.float8_e5m2),
        (torch.float8_e5m2, torch.float8_e4m3fn),
    ]
    scales = torch.tensor(0.5), torch.tensor([3.0])
    for left, right in forms:
        for rows, columns, length in ((256, 512, 1024), (1, 16, 16), (17, 48, 4096)):
            a, b = torch.randn(rows, length).to(left), torch.randn(columns, length).to(right)
            product = a.double() @ b.double().t() * 1.5
            for out, with_bias, fast in (
                (torch.bfloat16, False, False),
                (torch.bfloat16, True, True),
                (torch.float16, True, False),
                (torch.float32, False, False),
                (torch.float32, False, True),
            ):
                bias = torch.randn(columns).to(out) if with_bias else None
                rest = [None if x is None else x.to("ltc") for x in (*scales, bias)]
                got = torch._scaled_mm(a.to("ltc"), b.to("ltc").t(), *rest, out_dtype=out, use_fast_accum=fast)
                error = largest_error(got, product + (bias.double() if with_bias else 0))
                print(f"{left} by {right}, [{rows},{length},{columns}] to {out}, bias {with_bias}, fast {fast}: {error:.1e}")
                assert error < 2e-2, (left, right, out)
    computes = ON_CUDA and torch.cuda.get_device_capability() >= (8, 9)
    assert not (computes and ltc.metrics.fallbacks()), ltc.metrics.fallbacks()


def peers():
    count = torch.ltc.device_count()
    if count < 2:
        return print("one device: nothing to copy between")
    x = torch.randn(1 << 22)
    for other in range(1, count):
        moved = (x.to("ltc:0") * 2).to(f"ltc:{other}")
        assert torch.equal((moved + 1).to("ltc:0").cpu(), x * 2 + 1), other
    print(f"copied between {count} devices")


if __name__ == "__main__":
    {"precision": precision, "activations": activations, "fp8": fp8, "peers": peers}[sys.argv[1]]()
