"""histc of integers, which PyTorch's CPU has not: counted exactly, as CUDA does."""

import pytest
import torch

from comparing import LTC

DTYPES = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_counts_of_integers(dtype, metrics):
    x = torch.randint(0, 8, (5, 7)).to(dtype)
    for bins, low, high in (8, 0, 7), (8, 0, 8), (3, 0, 0), (5, 2, 6), (1, 0, 3), (10, 0, 0), (7, 0, 100):
        counts = torch.histc(x.to(LTC), bins, low, high)
        assert counts.dtype == dtype and counts.tolist() == torch.histc(x.double(), bins, low, high).tolist()
    assert metrics.fallbacks() == []


def test_tokens_of_experts():
    experts = torch.tensor([3, 0, 3, 1, 7, 3], device=LTC)
    assert torch.histc(experts.int(), bins=8, min=0, max=7).tolist() == [1, 1, 0, 3, 0, 0, 0, 1]


def test_edges():
    assert torch.histc(torch.full((3,), 5, device=LTC), 4).tolist() == [0, 0, 3, 0]  # from 4 to 6
    assert torch.histc(torch.empty(0, dtype=torch.int64, device=LTC), 4).tolist() == [0] * 4
    assert torch.histc(torch.arange(6, device=LTC), 3, 0, 5, out=torch.empty(0, dtype=torch.int64, device=LTC)).tolist() == [2, 2, 2]
    for arguments in (0, 0, 5), (3, 5, 0):
        with pytest.raises(RuntimeError, match="bins must be|max must be"):
            torch.histc(torch.arange(6, device=LTC), *arguments)
    with pytest.raises(NotImplementedError):
        torch.histc(torch.ones(3, dtype=torch.bool, device=LTC), 3).tolist()
    assert torch.histc(torch.tensor([1.0, 2.0, 1.0], device=LTC), 4, 0, 3).tolist() == [0, 2, 1, 0]
