"""Operands for ordinary ops, and their check beside the CPU, forward and backward."""

import torch

from comparing import assert_same, to_device


def f(*sizes):
    return torch.randn(sizes, requires_grad=True)


def pos(*sizes):
    return torch.rand(sizes).add_(0.5).requires_grad_()


def unit(*sizes):
    return torch.rand(sizes).mul_(1.8).sub_(0.9).requires_grad_()


def i(*sizes):
    return torch.randint(-5, 6, sizes)


def b(*sizes):
    return torch.rand(sizes) < 0.5


def tensors_in(tree):
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, (list, tuple)):
        return [tensor for element in tree for tensor in tensors_in(element)]
    return []


def forward_and_backward(function, args):
    """The results, and the gradients of a weighted sum of all results that have one."""
    results = function(*args)
    # sin tells the elements apart, as plain sums would not.
    losses = [result.sin().sum() for result in tensors_in(results) if result.requires_grad]
    leaves = [leaf for leaf in tensors_in(args) if leaf.requires_grad]
    gradients = torch.autograd.grad(sum(losses), leaves, allow_unused=True) if losses else []
    return results, [gradient for gradient in gradients if gradient is not None]


def check(function, args, **tolerance):
    assert_same(forward_and_backward(function, to_device(args)), forward_and_backward(function, args), **tolerance)
