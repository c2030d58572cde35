"""Storages of the device under tensors: what cannot be is refused as on the CPU."""

import pytest
import torch

import ltc  # noqa: F401
from comparing import LTC


@pytest.mark.parametrize("offset, sizes, strides", [(3, (2,), (-1,)), (0, (2, 2), (1, -1)), (-3, (2,), (1,)), (0, (2,), (1, 1)), (0, (2, 2), (1,))])
def test_geometries_that_cannot_be(offset, sizes, strides):
    def change(device):
        x = torch.ones(4, device=device)
        with pytest.raises(RuntimeError) as error:
            x.set_(x.untyped_storage(), offset, sizes, strides)
        return str(error.value)

    assert change(LTC) == change("cpu")


def test_a_refused_change_changes_nothing():
    x, other = torch.ones(4, device=LTC), torch.zeros(4, device=LTC)
    with pytest.raises(RuntimeError):
        x.set_(other.untyped_storage(), 0, (2,), (1, 1))
    assert x.tolist() == [1] * 4


@pytest.mark.patch("byteswap")
def test_byteswap_is_refused():
    storage = torch.tensor([1, 256], dtype=torch.int16).to(LTC).untyped_storage()
    with pytest.raises(NotImplementedError, match=r"storage\.cpu\(\)"):
        storage.byteswap(torch.int16)
    copy = storage.cpu()
    copy.byteswap(torch.int16)
    assert torch.empty(0, dtype=torch.int16).set_(copy).tolist() == [256, 1]
