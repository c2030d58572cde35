"""Dtypes, and small tensors of them."""

import torch

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
WIDE_UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, *WIDE_UNSIGNED]
DTYPES = [torch.bool, *INTEGERS, *FLOATS, *COMPLEX]


def sample(dtype, *sizes):
    """Values that every dtype can hold, fractions where it has them."""
    values = torch.randint(0, 100, sizes or (3, 4))
    if dtype.is_floating_point or dtype.is_complex:
        values = values / 8
    if dtype == torch.bool:
        return values % 2 == 0
    if dtype.is_complex:
        return torch.complex(values.double(), -values.double() / 2).to(dtype)
    return values.to(dtype)


def matrix(device="cpu"):
    return torch.arange(24.0, device=device).view(4, 6)
