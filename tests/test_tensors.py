"""Tensors as objects: dtypes, copies, strides, views, storages, serialisation, text. All as on the CPU."""

import copy
import io
import pickle

import pytest
import torch

import ltc
from comparing import LTC, assert_both, assert_close, assert_same, to_device

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


# ---- dtypes and transfer


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_and_back(dtype):
    x = sample(dtype)
    assert_same(x.to(LTC), x)
    assert_same(x.t().to(LTC), x.t())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_computed_there_and_back(dtype):
    """Through a program, not only through transfers."""
    x = sample(dtype)
    assert_both(lambda x: x.clone(), x)
    assert_both(lambda x: x[1:].t(), x)
    assert_both(lambda x: torch.cat([x, x]), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_limits_survive(dtype):
    if dtype == torch.bool:
        return
    if dtype.is_complex:
        x = torch.tensor([complex("inf"), complex(0, float("-inf")), complex("nan")], dtype=dtype)
    elif dtype.is_floating_point:
        info = torch.finfo(dtype)
        x = torch.tensor([info.max, info.min, info.tiny, info.eps, float("inf"), float("-inf"), float("nan"), -0.0], dtype=dtype)
    else:
        info = torch.iinfo(dtype)
        x = torch.tensor([info.max, info.min], dtype=dtype)
    assert_same(x.to(LTC), x)
    assert_same(x.to(LTC).clone(), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cast_on_device(dtype):
    for target in DTYPES:
        if target.is_complex or not dtype.is_complex:
            assert_both(lambda x: x.to(target), sample(dtype))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_cast_of_complex_to_real_on_device(dtype):
    for target in [torch.float32, torch.int64, torch.bool]:
        assert_both(lambda x: x.to(target), sample(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cast_on_the_way(dtype):
    x = sample(dtype)
    target = torch.complex128 if dtype.is_complex else torch.float64
    assert_same(x.to(LTC, target), x.to(target))
    back = sample(torch.uint8).to(LTC).to("cpu", dtype)
    assert back.device.type == "cpu" and back.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_item_and_tolist(dtype):
    x = sample(dtype)
    assert x.to(LTC).tolist() == x.tolist()
    assert x.to(LTC)[1, 2].item() == x[1, 2].item()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arithmetic_of_dtype(dtype):
    if dtype in (torch.bool, *WIDE_UNSIGNED):
        return
    assert_both(lambda x: (x + x) * x, sample(dtype))


def test_tensor_from_data():
    for data in [3, 2.5, True, 1 + 2j, [], [[1, 2], [3, 4]], [1.5, 2], [True, False]]:
        assert_same(torch.tensor(data, device=LTC), torch.tensor(data))
        assert_same(torch.as_tensor(data, device=LTC), torch.as_tensor(data))


def test_later_writes_to_the_source_do_not_show():
    x = torch.ones(1000)
    y = x.to(LTC)
    x.zero_()
    assert y.sum().item() == 1000


def test_later_writes_to_a_download_do_not_show():
    x = torch.ones(3, device=LTC)
    x.cpu().zero_()
    x.to("cpu").zero_()
    assert x.tolist() == [1, 1, 1]


def test_to_the_same_device_is_the_same_tensor():
    x = torch.ones(3, device=LTC)
    assert x.to(LTC) is x and x.to("ltc") is x
    assert x.to(LTC, copy=True) is not x


# ---- factories

FACTORIES = {
    "zeros": lambda d: torch.zeros(2, 3, device=d),
    "ones": lambda d: torch.ones(2, 3, device=d, dtype=torch.int32),
    "full": lambda d: torch.full((2, 2), 1.5, device=d),
    "full_int": lambda d: torch.full((2, 2), 7, device=d),
    "full_bool": lambda d: torch.full((2, 2), True, device=d),
    "full_complex": lambda d: torch.full((2,), 1 + 2j, device=d),
    "arange": lambda d: torch.arange(5, device=d),
    "arange_step": lambda d: torch.arange(1, 10, 3, device=d),
    "arange_float": lambda d: torch.arange(0.5, 4.0, 0.75, device=d),
    "arange_empty": lambda d: torch.arange(3, 3, device=d),
    "range_down": lambda d: torch.arange(5, 0, -2, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 7, device=d),
    "logspace": lambda d: torch.logspace(0, 2, 5, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "eye_wide": lambda d: torch.eye(3, 5, device=d, dtype=torch.int64),
    "tril_indices": lambda d: torch.tril_indices(3, 4, device=d),
    "triu_indices": lambda d: torch.triu_indices(3, 4, device=d),
    "hann_window": lambda d: torch.hann_window(8, device=d),
    "zeros_like": lambda d: torch.zeros_like(torch.arange(6, device=d).view(2, 3).t()),
    "ones_like": lambda d: torch.ones_like(torch.arange(6.0, device=d), dtype=torch.float64),
    "full_like": lambda d: torch.full_like(torch.arange(6, device=d), 3),
    "new_zeros": lambda d: torch.ones(2, device=d).new_zeros(3),
    "new_ones": lambda d: torch.ones(2, device=d).new_ones(3, dtype=torch.int8),
    "new_full": lambda d: torch.ones(2, device=d).new_full((3,), 2.5),
    "new_tensor": lambda d: torch.ones(2, device=d).new_tensor([1, 2]),
    "complex": lambda d: torch.complex(torch.ones(2, device=d), torch.zeros(2, device=d)),
    "meshgrid": lambda d: torch.meshgrid(torch.arange(2, device=d), torch.arange(3, device=d), indexing="ij"),
    "cartesian_prod": lambda d: torch.cartesian_prod(torch.arange(2, device=d), torch.arange(3, device=d)),
    "one_hot": lambda d: torch.nn.functional.one_hot(torch.arange(3, device=d), 4),
    "block_diag": lambda d: torch.block_diag(torch.ones(2, 2, device=d), torch.ones(1, 3, device=d)),
    "vander": lambda d: torch.vander(torch.arange(1.0, 4, device=d)),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factory(name):
    assert_same(FACTORIES[name](LTC), FACTORIES[name]("cpu"))


SHAPE_ONLY = {
    "empty": lambda d: torch.empty(2, 3, device=d),
    "empty_channels_last": lambda d: torch.empty(2, 3, 4, 5, device=d, memory_format=torch.channels_last),
    "empty_strided": lambda d: torch.empty_strided((2, 3), (1, 2), device=d),
    "empty_permuted": lambda d: torch.empty_permuted((2, 3, 4), (2, 0, 1), device=d),
    "empty_like": lambda d: torch.empty_like(torch.zeros(2, 3, device=d).t()),
    "new_empty": lambda d: torch.zeros(2, device=d).new_empty(4),
    "new_empty_strided": lambda d: torch.zeros(2, device=d).new_empty_strided((2, 3), (3, 1)),
    "rand": lambda d: torch.rand(2, 3, device=d),
    "rand_like": lambda d: torch.rand_like(torch.zeros(2, 3, device=d)),
    "randn": lambda d: torch.randn(2, 3, device=d, dtype=torch.float64),
    "randn_complex": lambda d: torch.randn(2, 3, device=d, dtype=torch.complex64),
    "randn_like": lambda d: torch.randn_like(torch.zeros(2, 3, device=d).t()),
    "randint": lambda d: torch.randint(3, 9, (4,), device=d),
    "randint_like": lambda d: torch.randint_like(torch.zeros(3, device=d), 5),
    "randperm": lambda d: torch.randperm(9, device=d),
    "normal": lambda d: torch.normal(0.0, 1.0, (3,), device=d),
    "bernoulli": lambda d: torch.bernoulli(torch.full((3,), 0.5, device=d)),
}


@pytest.mark.parametrize("name", SHAPE_ONLY)
def test_factory_of_any_values(name):
    lazy, cpu = SHAPE_ONLY[name](LTC), SHAPE_ONLY[name]("cpu")
    assert (lazy.device, lazy.dtype, lazy.shape, lazy.stride()) == (LTC, cpu.dtype, cpu.shape, cpu.stride())
    assert lazy.cpu().stride() == cpu.stride()


def test_default_device():
    with torch.device("ltc"):
        assert torch.zeros(2).device == LTC
        assert torch.nn.Linear(2, 2).weight.device == LTC
    with torch.device("lazy"):
        assert torch.zeros(2).device == LTC


# ---- two spellings


def test_both_spellings():
    a, b = torch.ones(2, device="ltc"), torch.ones(2, device="lazy")
    assert a.device == b.device == torch.device("ltc", 0)
    assert torch.ones(2).to("lazy").device == a.device
    assert torch.tensor([1.0], device="lazy:0").device == a.device
    assert torch.nn.Linear(2, 2).to("lazy").bias.device == a.device
    assert torch.nn.Linear(2, 2, device="lazy").bias.device == a.device
    assert (a + b).tolist() == [2, 2]
    assert torch.empty_strided((2, 2), (1, 2), device="lazy").stride() == (1, 2)


# ---- strides and views

VIEWS = {
    "t": lambda x: x.t(),
    "row": lambda x: x[1],
    "column": lambda x: x[:, 1],
    "rows": lambda x: x[1:3],
    "step": lambda x: x[::2, 1::2],
    "none": lambda x: x[:, None, :],
    "ellipsis": lambda x: x[..., 2],
    "of_view": lambda x: x[1:][:, 1:].t()[1:],
    "view": lambda x: x.view(2, 12),
    "reshape": lambda x: x.reshape(-1),
    "flatten": lambda x: x.flatten(),
    "reshape_of_t": lambda x: x.t().reshape(-1),
    "unflatten": lambda x: x.unflatten(1, (2, 3)),
    "expand": lambda x: x[0].expand(3, 6),
    "expand_as": lambda x: x[:, :1].expand_as(x),
    "permute": lambda x: x.view(2, 2, 6).permute(2, 0, 1),
    "transpose": lambda x: x.view(2, 2, 6).transpose(0, 2),
    "movedim": lambda x: x.view(2, 2, 6).movedim(0, -1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "narrow": lambda x: x.narrow(1, 2, 3),
    "select": lambda x: x.select(1, 3),
    "split": lambda x: x.split(2),
    "chunk": lambda x: x.chunk(3, dim=1),
    "unbind": lambda x: x.unbind(1),
    "tensor_split": lambda x: x.tensor_split(3),
    "hsplit": lambda x: x.hsplit(2),
    "diagonal": lambda x: x.diagonal(1),
    "unfold": lambda x: x.unfold(1, 3, 2),
    "as_strided": lambda x: x.as_strided((2, 3), (1, 2), 3),
    "as_strided_overlapping": lambda x: x.as_strided((3, 3), (1, 1)),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "view_as": lambda x: x.view_as(x),
    "detach": lambda x: x.detach(),
    "mT": lambda x: x.mT,
    "contiguous_of_t": lambda x: x.t().contiguous(),
    "clone_of_t": lambda x: x.t().clone(),
    "clone_contiguous": lambda x: x.t().clone(memory_format=torch.contiguous_format),
    "negative_step_by_flip": lambda x: x.flip(0),
    "alias": lambda x: torch.ops.aten.alias(x),
    "empty_slice": lambda x: x[2:2],
}


def matrix(device="cpu"):
    return torch.arange(24.0, device=device).view(4, 6)


@pytest.mark.parametrize("name", VIEWS)
def test_view(name):
    assert_same(VIEWS[name](matrix(LTC)), VIEWS[name](matrix()))


@pytest.mark.parametrize("name", VIEWS)
def test_op_on_view_keeps_strides(name):
    def results(x):
        views = VIEWS[name](x)
        views = views if isinstance(views, tuple) else (views,)
        return [out for v in views for out in (v + 1, v.exp(), v * v, v.to(torch.float64), v.clone(), torch.zeros_like(v))]

    assert_same(results(matrix(LTC)), results(matrix()))


@pytest.mark.parametrize("name", VIEWS)
def test_aliasing_of_view(name):
    """A write through it is seen in the base exactly where it is on the CPU, and the other way round."""

    def write(x):
        views = VIEWS[name](x)
        first = views[0] if isinstance(views, tuple) else views
        if name in ("expand", "expand_as", "as_strided_overlapping", "unfold"):  # no place to write: elements share memory
            x.mul_(3)
        else:
            first.add_(100)
        after = x.clone()
        x[1:] *= 2
        return after, x, views

    assert_same(write(matrix(LTC)), write(matrix()))


def in_place_on_view_of_view(x):
    x[1:][:, 2:].t()[1].mul_(10)
    return x


def in_place_on_slice(x):
    x[1:3] += 1
    return x


def in_place_on_transposed(x):
    x.t().add_(1)
    x.view(4, 2, 3).permute(2, 0, 1).mul_(2)
    return x


def in_place_with_steps(x):
    x[::2, ::3] = -1
    x[1::2] -= x[::2]
    return x


def in_place_both_ways(x):
    view = x[2]
    x.add_(1)
    view.mul_(2)
    x[2, 3] = 50
    return x, view


def in_place_across_barrier(x):
    view = x.t()[1:3]
    view.add_(1)
    ltc.mark_step()
    x.mul_(2)
    view.sub_(1)
    return x, view


def in_place_keeps_captured_values(x):
    before = x * 1
    product = x * 2
    x.zero_()
    return before, product, x


def in_place_with_itself(x):
    x[1:] += x[:-1].clone()
    x.mul_(x)
    x.add_(x.t()[:4, :1].clone())
    return x


def fills(x):
    x[0].fill_(7)
    x[:, 1].zero_()
    x[2:4, 2:4] = torch.ones(2, 2, device=x.device)
    x[3] = torch.tensor(5.0)
    x.diagonal().fill_(9)
    return x


def chain_of_aliases(x):
    a = x.flatten()
    b = a.view(6, 4)
    c = b.unsqueeze(0).expand(2, 6, 4)
    b[0] += 100
    a[5:9] = 0
    return x, a, b, c


def many_parameter_views(x):
    """Views of one flat buffer, each written."""
    parts = [x.view(-1)[i:i + 3] for i in range(0, 24, 3)]
    for i, part in enumerate(parts):
        part.mul_(i)
        part.add_(parts[0])
    return x, parts


def integer_views_of_floats(x):
    x.view(torch.int32).bitwise_xor_(1 << 31)
    return x, x.view(torch.int32), x.view(torch.float64), x.view(torch.uint8)


@pytest.mark.parametrize("function", [
    in_place_on_view_of_view, in_place_on_slice, in_place_on_transposed, in_place_with_steps, in_place_both_ways,
    in_place_across_barrier, in_place_keeps_captured_values, in_place_with_itself, fills, chain_of_aliases, many_parameter_views,
    integer_views_of_floats])
def test_writes(function):
    assert_same(function(matrix(LTC)), function(matrix()))


@pytest.mark.parametrize("write", [lambda v: v.add_(1), lambda v: v.mul_(v), lambda v: v.copy_(torch.ones(3, 6, device=v.device))])
def test_write_through_expand_raises_like_cpu(write):
    for device in (LTC, "cpu"):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
            write(matrix(device)[0].expand(3, 6))


def test_channels_last():
    def results(x):
        x = x.contiguous(memory_format=torch.channels_last)
        y = x * 2
        return x, y, y.relu(), y[:, 1:], y.sum(1), y + torch.ones(3, 1, 1, device=x.device), torch.empty_like(y).fill_(1), y.contiguous()

    assert_both(results, torch.randn(2, 3, 4, 5))
    assert torch.ones(2, 3, 4, 5, device=LTC).to(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)


def test_write_through_channels_last():
    def results(x):
        x = x.contiguous(memory_format=torch.channels_last)
        x[:, 1] += 1
        x[0].mul_(2)
        x.permute(0, 2, 3, 1).add_(1)
        return x, x.permute(0, 2, 3, 1).flatten()

    assert_both(results, torch.randn(2, 3, 4, 5))


def test_two_storages_of_one_value_that_lie_differently():
    """The clone keeps its strides and the copy has a row-major one of its own; in place the clone becomes row-major too."""

    def results(x):
        kept = x.permute(2, 1, 0).clone()
        copy = kept.reshape(1, 5, 2)
        kept.transpose_(0, -1)
        return kept + 1, copy + 1

    assert_both(results, torch.arange(10.0).reshape(1, 5, 2))


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_view_as_dtype(source):
    for target in DTYPES:
        if source != torch.bool and target == torch.bool:
            continue
        assert_both(lambda x: x.view(target), sample(source, 4, 16))


def test_views_of_complex():
    def results(x):
        real = torch.view_as_real(x)
        real[..., 0] += 1
        x.imag.mul_(2)
        return x, real, x.real, x.imag, torch.view_as_complex(real), x.abs()

    assert_both(results, sample(torch.complex64))


def test_lazy_conjugation_and_negation():
    def results(x):
        conj = x.conj()
        negative = x.conj().imag
        assert conj.is_conj() and negative.is_neg()
        out = [conj, negative, conj + 1, conj.resolve_conj(), negative.resolve_neg(), conj @ x.t(), negative.clone(), conj[1:]]
        x.mul_(2)
        conj.add_(1j)
        negative.add_(1)
        return [t.resolve_conj().resolve_neg() for t in out], x, x.clone().copy_(conj), conj.tolist()

    assert_both(results, sample(torch.complex64))
    x = sample(torch.complex64)
    assert_close(x.to(LTC).conj().cpu().resolve_conj(), x.conj().resolve_conj())
    assert_same(x.conj().to(LTC).resolve_conj(), x.conj().resolve_conj())
    target = torch.zeros_like(x).to(LTC)
    target.conj().copy_(x)
    assert_close(target.cpu(), x.conj().resolve_conj())


# ---- copy_


def test_copy_between_devices():
    x = torch.randn(3, 4)
    assert_same(torch.zeros(3, 4, device=LTC).copy_(x), x)
    assert_close(torch.zeros(3, 4).copy_(x.to(LTC)), x)
    assert_same(torch.zeros(2, 3, 4, device=LTC).copy_(x), x.expand(2, 3, 4).contiguous())
    assert_close(torch.zeros(2, 3, 4).copy_(x.to(LTC)), x.expand(2, 3, 4))
    assert_same(torch.zeros(3, 4, device=LTC, dtype=torch.int64).copy_(x * 10), (x * 10).long())
    assert_close(torch.zeros(3, 4, dtype=torch.float64).copy_(x.to(LTC)), x.double())


def test_copy_into_views_between_devices():
    x = torch.randn(4)
    target = matrix(LTC)
    target[1, 2:].copy_(x)
    target[:, 0].copy_(x, non_blocking=True)
    target.t()[5] = x
    expected = matrix()
    expected[1, 2:], expected[:, 0], expected[:, 5] = x, x, x
    assert_same(target, expected)
    cpu = matrix()
    cpu[:, 3].copy_(x.to(LTC))
    expected = matrix()
    expected[:, 3] = x
    assert_close(cpu, expected)


def test_copy_on_device():
    def results(x):
        strided = torch.zeros(6, 4, device=x.device).t().copy_(x)
        broadcast = torch.zeros(2, 4, 6, device=x.device).copy_(x)
        cast = torch.zeros(4, 6, device=x.device, dtype=torch.int32).copy_(x)
        row = torch.zeros(4, 6, device=x.device).copy_(x[2])
        shared = torch.empty_like(x).copy_(x)
        x.add_(1)
        shared[0] = 0
        return strided, broadcast, cast, row, shared, x

    assert_both(results, matrix())


def test_copy_raises_like_cpu():
    for device in (LTC, "cpu"):
        with pytest.raises(RuntimeError, match="must match the size of tensor|doesn't match the broadcast shape"):
            torch.zeros(3, device=device).copy_(torch.ones(4, device=device))
    with pytest.raises(RuntimeError):
        torch.zeros(3, device=LTC).copy_(torch.ones(4))


# ---- storages


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


# ---- text, numpy, comparison


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_repr(dtype):
    for x in (sample(dtype), sample(dtype)[0, 0], sample(dtype).t(), sample(dtype)[:0]):
        assert without_device(repr(x.to(LTC))) == one_line(repr(x))


def one_line(text):
    """The device makes lines longer, so they may break elsewhere."""
    return " ".join(text.split())


def without_device(text):
    assert "device='ltc:0'" in text
    return one_line(text).replace(", device='ltc:0'", "")


def test_repr_of_large_and_of_gradients():
    x = torch.randn(100, 100)
    assert without_device(repr(x.to(LTC))) == one_line(repr(x))
    leaf = torch.ones(2, requires_grad=True)
    assert without_device(repr(to_device(leaf))) == repr(leaf)
    assert "grad_fn=<MulBackward0>" in repr(to_device(leaf) * 2)
    assert f"{torch.tensor(1.5, device=LTC):.3f}" == "1.500"


def test_numpy_is_an_error():
    x = torch.ones(3, device=LTC)
    with pytest.raises(TypeError, match="can't convert ltc:0 device type tensor to numpy. Use Tensor.cpu()"):
        x.numpy()
    assert x.cpu().numpy().tolist() == [1, 1, 1]


def test_python_protocols():
    x = torch.tensor([3, 1, 2], device=LTC)
    assert [int(v) for v in x] == [3, 1, 2]
    assert len(x) == 3 and 2 in x and 7 not in x
    assert float(x[0]) == 3.0 and bool(x[1]) and [10, 20, 30, 40][x[2]] == 30
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(x)


def test_equal():
    x = matrix(LTC)
    assert torch.equal(x, x.clone()) and not torch.equal(x, x + 1) and not torch.equal(x, x[:2])
    assert torch.allclose(x, x + 1e-9) and (x == x).all()


# ---- copies and files


def test_deepcopy():
    x = matrix(LTC)
    pair = {"base": x, "view": x[1], "again": x}
    copied = copy.deepcopy(pair)
    copied["view"].zero_()
    assert copied["again"] is copied["base"]
    expected = matrix()
    expected[1] = 0
    assert_same(copied["base"], expected)  # storages stay shared
    assert_same(x, matrix())
    assert_same(copy.copy(x), matrix())


def test_deepcopy_of_module():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(LTC)
    copied = copy.deepcopy(module)
    with torch.no_grad():
        copied[0].weight.zero_()
    assert module[0].weight.abs().sum().item() > 0
    assert copied[1].num_batches_tracked.device == LTC


@pytest.mark.patch("pickle")
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype not in WIDE_UNSIGNED], ids=str)  # those: not on the CPU either
def test_pickle(dtype):
    x = sample(dtype)
    assert_same(pickle.loads(pickle.dumps(x.to(LTC))), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_save_of_dtype(dtype):
    x = sample(dtype)
    assert_same(torch.load(saved(x.to(LTC))), x)


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_save_and_load():
    x = matrix(LTC)
    file = saved({"x": x, "view": x[1:].t(), "leaf": x.clone().requires_grad_(), "parameter": torch.nn.Parameter(x[0].clone())})
    loaded = torch.load(file)
    assert_same(loaded["x"], matrix())
    assert_same(loaded["view"], matrix()[1:].t())
    assert loaded["leaf"].requires_grad and isinstance(loaded["parameter"], torch.nn.Parameter)
    loaded["x"][1] = 0
    assert loaded["view"][:, 0].tolist() == [0] * 6  # one storage, as saved


def test_map_location():
    to_cpu = torch.load(saved(matrix(LTC)), map_location="cpu")
    assert to_cpu.device.type == "cpu" and torch.equal(to_cpu, matrix())
    assert_same(torch.load(saved(matrix()), map_location="ltc"), matrix())
    assert_same(torch.load(saved(matrix()), map_location=LTC), matrix())
    assert_same(torch.load(saved(matrix()), map_location={"cpu": "ltc:0"}), matrix())


def test_state_dict():
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(4, 2))
    on_device = copy.deepcopy(module).to(LTC)
    assert_same(dict(on_device.state_dict()), dict(module.state_dict()))
    assert_same(torch.load(saved(on_device.state_dict())), dict(module.state_dict()))
    on_cpu = torch.load(saved(on_device.state_dict()), map_location="cpu")
    fresh = copy.deepcopy(module)
    fresh.load_state_dict(on_cpu)
    on_device.load_state_dict(module.state_dict())
    fresh.to(LTC).load_state_dict(on_device.state_dict())
    assert_same(dict(fresh.state_dict()), dict(module.state_dict()))


def test_module_moves():
    module = torch.nn.Linear(3, 2).to(LTC)
    assert module.weight.device == LTC and module.double().weight.dtype == torch.float64
    assert module.cpu().weight.device.type == "cpu"
    assert module.ltc().weight.device == LTC and torch.ones(1).ltc().is_ltc


# ---- small sizes


@pytest.mark.parametrize("sizes", [(0,), (0, 3), (2, 0, 4), ()])
def test_empty_and_scalar_tensors(sizes):
    def results(x):
        y = x.clone()
        y.add_(1)
        y.zero_()
        return x + 1, x.exp(), x.sum(), x.sum(-1) if x.dim() else x, x.reshape(-1), x.expand(2, *x.shape), x.t() if x.dim() < 3 else x, \
            torch.cat([x.reshape(-1), x.reshape(-1)]), torch.stack([x, x]), x.to(torch.int64), y, x.view(-1), x.tolist()

    assert_both(results, torch.full(sizes, 2.5))


def test_matmul_of_empty():
    assert_both(lambda a, b: (a @ b, b.t() @ a.t(), (a @ b).sum()), torch.ones(3, 0), torch.ones(0, 4))


def test_uninitialised_tensors_can_be_read():
    x = torch.empty(3, 4, device=LTC)
    assert x.cpu().shape == (3, 4) and (x * 0).shape == (3, 4)
    y = torch.empty(3, 4, device=LTC)
    y[1] = 5
    assert y[1].tolist() == [5] * 4


def test_zero_dim():
    def results(x):
        x = x.clone()
        view = x.view(1, 1)
        view.add_(1)
        return x, x.unsqueeze(0), x.expand(2, 2), x + x, x.item(), x.reshape(())

    assert_both(results, torch.tensor(2.5))


# ---- autograd of views and copies


def test_backward_through_views_and_in_place():
    def results(x):
        y = x * 2
        y[1:3] += 1
        y.t()[2].mul_(3)
        y.view(2, 12)[0, :5] = 0
        z = y.flatten()[::2].clone()
        (z * z).sum().backward()
        return x.grad, y.detach()

    assert_both(results, matrix().requires_grad_())


def test_backward_across_devices():
    x = matrix().requires_grad_()
    (x.to(LTC) * 3).cpu().sum().backward()
    assert x.grad.device.type == "cpu" and torch.equal(x.grad, torch.full((4, 6), 3.0))
    y = matrix(LTC).requires_grad_()
    (y.cpu() * 3).to(LTC).sum().backward()
    assert_same(y.grad, torch.full((4, 6), 3.0))


def test_version_counter_catches_overwritten_values():
    x = matrix(LTC).requires_grad_()
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_inference_mode():
    with torch.inference_mode():
        x = matrix(LTC)
        x[1:].add_(1)
        assert x.is_inference()
    expected = matrix()
    expected[1:] += 1
    assert_same(x, expected)
