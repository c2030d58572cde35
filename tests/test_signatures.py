"""Sizes, dtypes and strides of what is recorded: those that the CPU's kernels give."""

import pytest
import torch
import torch.nn.functional as F

import op_calls
from comparing import LTC, output_of
from ltc import _C
from op_calls import calls, ops

OPS = ops()


def geometry(tree):
    if isinstance(tree, torch.Tensor):
        return tree.dtype, tuple(tree.shape), tree.stride()
    return [geometry(part) for part in tree] if isinstance(tree, (list, tuple)) else tree


def on_device(tree):
    """With the strides that they have here; nobody reads what they hold."""
    if isinstance(tree, torch.Tensor):
        return torch.empty_strided(tree.shape, tree.stride(), dtype=tree.dtype, device=LTC)
    return [on_device(part) for part in tree] if isinstance(tree, list) else tree


def has_tensor(tree):
    return isinstance(tree, torch.Tensor) or (isinstance(tree, list) and any(map(has_tensor, tree)))


@pytest.mark.parametrize("name", OPS)
def test_of_random_calls(name):
    """Every op with a kernel, scalars and 0-dim operands in each place."""
    assert_geometries(name, 40)


@pytest.fixture
def larger_calls(monkeypatch):
    """All are taken for calls that are too large to be tried."""
    larger = {2: 10, 3: 13, 4: 18}
    monkeypatch.setattr(op_calls, "SIZES", [tuple(larger.get(size, size) for size in sizes) for sizes in op_calls.SIZES if len(sizes) < 5])
    _C.set_dry_run_limit(0)
    yield
    _C.set_dry_run_limit(128 << 20)


# Without a size that can be made smaller they ask PyTorch's shape functions, which differ here.
@pytest.mark.parametrize("name", [name for name in OPS if name != "aten::nonzero_static"])
def test_of_random_calls_that_are_not_tried(name, larger_calls):
    assert_geometries(name, 12)


def assert_geometries(name, count):
    for args, kwargs in calls(name, OPS[name], count):
        try:
            expected = OPS[name](*args, **kwargs)
        except (RuntimeError, IndexError, ValueError):
            continue
        device = {} if has_tensor(args) else {"device": LTC}
        found = OPS[name](*on_device(args), **{key: on_device(value) for key, value in kwargs.items()}, **device)
        assert geometry(found) == geometry(expected), (geometry(args), kwargs)


def test_random_calls_reach_most_ops():
    """The test above would pass if every call were an error."""
    def succeeds(args, kwargs, op):
        try:
            return op(*args, **kwargs) is not None
        except (RuntimeError, IndexError, ValueError):
            return False

    reached = sum(any(succeeds(*call, OPS[name]) for call in calls(name, OPS[name], 20)) for name in list(OPS)[::5])
    assert reached > 0.7 * len(list(OPS)[::5])


def layouts(sizes):
    x = torch.ones(sizes)
    yield x
    yield x.transpose(-1, -2).contiguous().transpose(-1, -2)
    yield torch.ones(*sizes[:-1], 2 * sizes[-1])[..., ::2]
    if len(sizes) in (4, 5):
        yield x.contiguous(memory_format=torch.channels_last if len(sizes) == 4 else torch.channels_last_3d)


SIZES = [(3, 4), (2, 3, 4), (2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 4, 5), (2, 3, 4, 5, 6), (2, 0, 4, 5)]


def assert_geometry(function, *args):
    assert geometry(function(*on_device(list(args)))) == geometry(function(*args))


@pytest.mark.parametrize("sizes", SIZES)
def test_of_copies_with_a_piece_replaced(sizes):
    for x in layouts(sizes):
        assert_geometry(lambda x: torch.slice_scatter(x, x[1:2], 0, 1, 2), x)
        assert_geometry(lambda x: torch.select_scatter(x, x[0], 0, 0), x)
        assert_geometry(lambda x: torch.diagonal_scatter(x, x.diagonal()), x)


def test_values_of_copies_with_gaps():
    def replaced(x):
        x = x[..., ::2]
        return [torch.slice_scatter(x, x[1:2] * 2, 0, 0, 1), torch.select_scatter(x, -x[0], 0, 1), torch.diagonal_scatter(x, x.diagonal() + 9)]

    x = torch.arange(24.0).reshape(4, 6)
    for found, expected in zip(replaced(x.to(LTC)), replaced(x)):
        assert found.cpu().equal(expected) and found.stride() == expected.stride()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "constant", "circular"])
@pytest.mark.parametrize("sizes, amounts", [((2, 3, 4), (1, 1)), ((2, 3, 4, 5), (1, 2, 1, 0)), ((2, 3, 4, 5), (-1, 2, 1, 0)),
                                            ((1, 3, 4, 5), (0, 0, 0, 0)), ((2, 1, 4, 5), (1, 2, 1, 0)), ((3, 4, 5, 6), (1, 1, 1, 1, 1, 1)),
                                            ((2, 3, 4, 5, 6), (1, 1, 1, 1, 2, -1)), ((0, 3, 4, 5), (1, 2, 1, 0))])  # fmt: skip
def test_of_pads(mode, sizes, amounts):
    def padded(x):
        x = x.detach().requires_grad_()
        result = F.pad(x, amounts, mode)
        return [result, *torch.autograd.grad(result, x, torch.ones_like(result))]

    for x in layouts(sizes):
        assert_geometry(padded, x)


def test_isin_of_a_number():
    assert torch.isin(7, torch.tensor([1, 7], device=LTC)).item() is True
    assert torch.isin(7, torch.tensor([], device=LTC)).item() is False


def test_of_conversions_on_the_way():
    """Where operands are converted, the CPU chooses strides by the converted ones."""
    flags, swapped = torch.ones(3, 1, dtype=torch.bool).expand(3, 2), torch.ones(2, 3).t()
    for function in torch.add, torch.mul, torch.eq, torch.atan2, torch.special.hermite_polynomial_he:
        for other in swapped, swapped.bool(), swapped.long(), swapped.contiguous():
            assert_geometry(function, flags, other)
            assert_geometry(function, other, flags)


def test_of_dropout():
    for x in torch.ones(0, 3), torch.ones(2, 3).t(), torch.ones(2, 1).expand(2, 3):
        for probability, train in (0.5, True), (0.5, None), (0.5, False), (0.0, True), (1.0, True):
            assert_geometry(lambda x: torch.native_dropout(x, probability, train), x)


def test_kaiser_window():
    for arguments in (5,), (5, False), (6, True, 3.0), (1,), (0,):
        torch.testing.assert_close(torch.kaiser_window(*arguments, device=LTC).cpu(), torch.kaiser_window(*arguments))


def test_nonzero_into_an_output():
    for sizes, dims in ((0,), None), ((12, 2), None), ((5,), None), ((2, 12), (1, 0)):
        out = torch.empty(sizes, dtype=torch.int64)
        out = out if dims is None else out.permute(dims)
        expected, found = torch.nonzero(torch.ones(3, 4), out=out.clone()), torch.nonzero(torch.ones(3, 4, device=LTC), out=out.to(LTC))
        assert geometry(found) == geometry(expected) and found.cpu().equal(expected)


def error_of(function):
    try:
        return function(), None
    except (RuntimeError, IndexError) as error:
        return None, type(error), str(error)


@pytest.mark.parametrize("sizes", [(0,), (0, 3), (2, 0)])
def test_indices_into_nothing(sizes):
    """Refused where it is recorded: nobody computes a result without elements."""
    for write in (lambda x, i: x.scatter(0, i, 1.0), lambda x, i: x.scatter_(0, i, 1.0), lambda x, i: x.scatter(0, i, torch.ones_like(i, dtype=x.dtype)),
                  lambda x, i: x.scatter_add(0, i, torch.ones_like(i, dtype=x.dtype)),
                  lambda x, i: x.scatter_reduce(0, i, torch.ones_like(i, dtype=x.dtype), "sum"),
                  lambda x, i: x.index_add(0, i.flatten()[:2], torch.ones(2, *sizes[1:], device=x.device))):  # fmt: skip
        for count in 0, 2:
            def result(device):
                return geometry(write(torch.empty(sizes, device=device), torch.zeros([count] * len(sizes), dtype=torch.int64, device=device)))

            if count == 0 and "index_add" in write.__code__.co_names:
                continue
            assert error_of(lambda: result(LTC)) == error_of(lambda: result("cpu"))


NEEDS_VALUES = """
import torch, ltc
x, mask, values = torch.zeros(4, device="ltc"), torch.tensor([True, False, True, True], device="ltc"), torch.ones(3, device="ltc")
for _ in range(3):
    x[mask] = values
print(x.tolist())
"""


def test_calls_that_need_values_are_tried_once(capfd):
    """And their errors on dummy inputs are logged without backtraces, which take long to make."""
    print(output_of(f"import os; os.dup2(1, 2){NEEDS_VALUES}", LTC_LOG="debug"))
    output = capfd.readouterr().out
    assert "[1.0, 0.0, 1.0, 1.0]" in output
    assert output.count("aten::index_put is not known from dummy inputs") == 3  # of zeros, a regular matrix, ones
    assert "frame #" not in output and "Exception raised from" not in output
