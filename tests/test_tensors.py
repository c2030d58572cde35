"""Tensors as objects: dtypes, transfers, factories, text, copies and files, small sizes. All as on the CPU."""

import copy
import io
import pickle

import pytest
import torch

import ltc  # noqa: F401
from comparing import LTC, assert_both, assert_same, to_device
from tensor_samples import COMPLEX, DTYPES, WIDE_UNSIGNED, matrix, sample

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
