"""linear and its backward, which are recorded without the views that PyTorch makes of them: the device beside the CPU."""

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import ltc

SIZES = [(3, 4), (1, 4), (0, 4), (4,), (2, 3, 4), (2, 0, 4), (2, 2, 3, 4)]


def operands(device, sizes, dtype=torch.float32):
    torch.manual_seed(0)
    tensors = torch.randn(sizes, dtype=dtype), torch.randn(5, 4, dtype=dtype), torch.randn(5, dtype=dtype)
    return [tensor.to(device).requires_grad_() for tensor in tensors]


def gradients(device, sizes, has_bias, dtype=torch.float32, arrange=lambda x: x, twice=False):
    """The result and its gradients of first and, if wanted, second order; of the third call, when nothing is new any more."""
    x, weight, bias = operands(device, sizes, dtype)
    wanted = [x, weight, bias][:2 + has_bias]
    for _ in range(3):
        result = F.linear(arrange(x), weight, bias if has_bias else None)
        first = torch.autograd.grad(result.sin().abs().sum(), wanted, create_graph=twice)
        second = torch.autograd.grad(sum(gradient.square().sum() for gradient in first), wanted) if twice else ()
    return [result, *first, *second]


def assert_same(args, **kwargs):
    for on_device, on_cpu in zip(gradients("ltc", *args, **kwargs), gradients("cpu", *args, **kwargs), strict=True):
        assert on_device.stride() == on_cpu.stride()
        torch.testing.assert_close(on_device.cpu(), on_cpu)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("twice", [False, True])
def test_gradients(sizes, has_bias, twice):
    # The second order multiplies what the first has rounded.
    assert_same((sizes, has_bias), twice=twice, dtype=torch.float64 if twice else torch.float32)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 4)])
def test_complex(sizes, has_bias):
    assert_same((sizes, has_bias), dtype=torch.complex64)


ARRANGEMENTS = {
    "a part": lambda x: x[1:],
    "transposed": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "expanded": lambda x: x[:1].expand_as(x),
}


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 4)])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_views(sizes, has_bias, arrangement):
    assert_same((sizes, has_bias), arrange=ARRANGEMENTS[arrangement])


def test_operands_that_do_not_fit():
    x, weight, _ = operands("ltc", (3, 4))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        F.linear(x, weight.t())


def test_forward_mode():
    def tangents(device):
        x, weight, bias = operands(device, (3, 4))
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, torch.ones_like(x))
            result = F.linear(dual, weight, bias).sin()
            (gradient,) = torch.autograd.grad(result.sum(), weight)
            return [forward_ad.unpack_dual(tensor).tangent for tensor in (result, gradient)]

    for on_device, on_cpu in zip(tangents("ltc"), tangents("cpu"), strict=True):
        torch.testing.assert_close(on_device.cpu(), on_cpu)


def test_tangent_of_a_gradient():
    """Only what the backward is given has a tangent."""

    def tangent(device):
        x, weight, bias = operands(device, (3, 4))
        result = F.linear(x, weight, bias)
        with forward_ad.dual_level():
            given = forward_ad.make_dual(torch.ones_like(result), torch.full_like(result, 2))
            return forward_ad.unpack_dual(torch.autograd.grad(result, weight, given)[0]).tangent

    torch.testing.assert_close(tangent("ltc").cpu(), tangent("cpu"))


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.ops.append(str(op))
        return op(*args, **(kwargs or {}))


@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_modes_see_what_they_see_on_the_cpu(context):
    def seen(device):
        x, weight, bias = operands(device, (3, 4))
        with context(), Seen() as mode:
            result = F.linear(x, weight, bias)
            if context is torch.enable_grad:
                result.sum().backward()
        return mode.ops

    assert seen("ltc") == seen("cpu")


def test_hooks_see_what_is_saved():
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor.shape) or tensor, lambda tensor: tensor):
        F.linear(*operands("ltc", (3, 4)))
    assert saved == [(3, 4), (5, 4)]


def test_a_write_to_what_is_saved_is_an_error():
    x, weight, bias = operands("ltc", (3, 4))
    result = F.linear(x, weight, bias).sum()
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(result, x)


def test_the_first_step_is_the_same_program():
    """No type is known yet, so that it is recorded by PyTorch's own ops."""
    x, weight, bias = operands("ltc", (7, 4))
    texts = set()
    for _ in range(3):
        held = torch.autograd.grad(F.linear(x, weight, bias).sum(), (x, weight, bias))  # noqa: F841, alive at the barrier
        texts.add(ltc.graph())
        ltc.mark_step()
        del held
    assert len(texts) == 1


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("sizes", [(6, 7), (2, 3, 7)])
def test_the_first_call_records_what_later_ones_do(sizes, has_bias, metrics):
    """So that a shape that is met again compiles nothing."""
    layer = torch.nn.Linear(sizes[-1], 11, bias=has_bias).to("ltc")
    compiles = []
    for _ in range(3):
        x = torch.randn(sizes).to("ltc").requires_grad_()
        gradients = torch.autograd.grad(layer(x.sin()).square().sum(), [x, *layer.parameters()])
        ltc.mark_step()
        compiles.append(metrics.counter_value("UncachedCompile"))
        del gradients
    assert compiles == [1, 1, 1]
