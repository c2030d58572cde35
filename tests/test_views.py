"""Views: strides, aliases, writes through them, copy_, and their gradients. All as on the CPU."""

import pytest
import torch

import ltc
from comparing import LTC, assert_both, assert_close, assert_same
from tensor_samples import DTYPES, matrix, sample

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
