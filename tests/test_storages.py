"""Storages of the device under tensors: as on the CPU, with its errors."""

import pytest
import torch

import ltc  # noqa: F401
from comparing import LTC, assert_both, assert_same
from tensor_samples import matrix


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


def test_set():
    def results(x):
        y = torch.empty(0, device=x.device)
        y.set_(x)
        y[0] = -1
        z = torch.empty(0, device=x.device).set_(x.untyped_storage(), 2, (3, 2), (6, 1))
        z.add_(100)
        w = torch.ones(3, device=x.device).set_()
        return x, y, z, w

    assert_both(results, matrix())


def test_resize():
    def results(x):
        smaller = x.clone().resize_(2, 3)
        grown = x.clone().resize_(5, 8)
        grown.view(-1)[24:] = 1
        again = smaller.clone().resize_(4)
        empty = torch.empty(0, device=x.device).resize_(2, 2).fill_(3)
        last = x.view(1, 2, 3, 4).clone().resize_(2, 3, 2, 2, memory_format=torch.channels_last)
        return smaller, grown, again, empty, last

    assert_both(results, matrix())


def test_untyped_storage():
    x = matrix(LTC)
    storage = x.untyped_storage()
    assert storage.nbytes() == 96 and storage.device == LTC
    assert x[1].untyped_storage().data_ptr() == storage.data_ptr() == x.data_ptr()
    assert x[1].data_ptr() == x.data_ptr() + 24
    copied = storage.clone()
    assert copied.data_ptr() != storage.data_ptr()
    assert_same(torch.empty(0, device=LTC).set_(copied, 0, (4, 6), (6, 1)), matrix())
    assert bytes(storage.cpu().tolist()) == bytes(matrix().untyped_storage().tolist())
    storage.resize_(0)
    assert storage.nbytes() == 0


def test_storage_resized_away_and_back():
    """The operations of sharded training on parameters."""
    x = torch.ones(4, device=LTC)
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(16)
    x.copy_(torch.arange(4.0))
    assert x.tolist() == [0, 1, 2, 3]


def test_distinct_storages_have_distinct_pointers():
    tensors = [torch.ones(2, device=LTC) for _ in range(100)]
    assert len({t.data_ptr() for t in tensors}) == 100


def test_data_attribute():
    def results(x):
        x.data = x.data * 2
        x.data[0] = 5
        return x

    assert_both(results, matrix())
