"""Whether two results are the same."""

import torch

from .place import tensors_in

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


class Differs(Exception):
    """Says how."""

    def __init__(self, message, of_values=False):
        super().__init__(message)
        self.of_values = of_values  # and all else agrees


def same(actual, expected, device, values=True, slack=0.0):
    """Raises Differs unless both trees have the same structure, dtypes, sizes and, unless told not to, values.

    Tensors of `actual` must be on `device` where those of `expected` are on the CPU. Values may differ by assert_close's tolerance for
    their dtype, times 1 + slack.
    """
    if isinstance(expected, torch.Tensor):
        _same_tensor(actual, expected, device, values, slack)
    elif isinstance(expected, dict):
        _require(isinstance(actual, dict) and actual.keys() == expected.keys(), "other keys")
        for key in expected:
            same(actual[key], expected[key], device, values, slack)
    elif isinstance(expected, (list, tuple)):
        _require(type(actual) is type(expected) and len(actual) == len(expected), f"{_kind(actual)}, expected {_kind(expected)}")
        for one, other in zip(actual, expected):
            same(one, other, device, values, slack)
    elif isinstance(expected, torch.device):
        _require(isinstance(actual, torch.device), f"{actual}, expected a device")
    elif isinstance(expected, (bool, int, float, complex)):
        _require(type(actual) is type(expected), f"{_kind(actual)}, expected {_kind(expected)}")
        if values:
            same(torch.tensor(actual), torch.tensor(expected), "cpu", True, slack)
    else:
        _require(type(actual) is type(expected), f"{_kind(actual)}, expected {_kind(expected)}")


def _same_tensor(actual, expected, device, values, slack):
    _require(isinstance(actual, torch.Tensor), f"{_kind(actual)}, expected a tensor")
    wanted = device if expected.device.type == "cpu" else expected.device.type
    _require(actual.device.type == wanted, f"on {actual.device.type}, expected on {wanted}")
    _require(actual.dtype == expected.dtype, f"dtype {actual.dtype}, expected {expected.dtype}")
    _require(actual.layout == expected.layout, f"layout {actual.layout}, expected {expected.layout}")
    _require(actual.shape == expected.shape, f"shape {list(actual.shape)}, expected {list(expected.shape)}")
    _require(actual.requires_grad == expected.requires_grad, f"requires_grad {actual.requires_grad}")
    if values:
        _same_values(actual.detach().cpu(), expected.detach(), slack)


def _same_values(actual, expected, slack):
    if signed := _SIGNED.get(expected.dtype):
        actual, expected = actual.clone().view(signed), expected.clone().view(signed)
    try:
        rtol, atol = torch.testing._comparison.default_tolerances(actual, expected)
        scale = 1 + slack
        torch.testing.assert_close(actual, expected, rtol=rtol * scale, atol=atol * scale, equal_nan=True)
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if line and "not close" not in line and "not equal" not in line]
        raise Differs("values: " + "; ".join(lines), of_values=True) from None


def tolerance(tensor):
    """How much two equal values of its dtype may differ, relative to them; integers not at all."""
    return torch.testing._comparison.default_tolerances(tensor)[0]


def differences(exact, tree):
    """For each pair of tensors of numbers: the largest difference in tolerances, and all of it as a share of what is exact."""
    result = []
    for one, two in zip(tensors_in(exact), tensors_in(tree)):
        if one.shape != two.shape or not (two.is_floating_point() or two.is_complex()):
            continue
        one, two = one.detach(), two.detach().cpu()
        rtol, atol = torch.testing._comparison.default_tolerances(one, two)
        one, two = (t.to(torch.complex128 if t.is_complex() else torch.float64) for t in (one, two))
        difference = (one - two).abs().nan_to_num(0, 0, 0)
        excess = difference / (atol + rtol * one.abs().nan_to_num(0, 0, 0))
        share = difference.norm() / max(one.abs().nan_to_num(0, 0, 0).norm().item(), 1e-3)
        result.append((excess.max().item() if excess.numel() else 0.0, share.item()))
    return result


def same_picks(x, actual, expected):
    """Whether indices differ only among equal elements of x: along some dim they pick the same values, and gradients behind them have
    the same values where the indices point to."""
    ours, theirs = ([tensor.detach().cpu() for tensor in tensors_in(tree)] for tree in (actual, expected))
    at = max((i for i, tensor in enumerate(ours) if tensor.dtype == torch.int64), default=-1)  # values may be integers too
    if at < 0 or (at > 0 and not torch.equal(ours[0], theirs[0])):
        return False
    x, mine, other = x.detach(), ours[at], theirs[at]
    pairs = [(x, x), *zip(ours[at + 1:], theirs[at + 1:], strict=True)]
    for dim in range(x.dim()):
        rest = x.shape[:dim] + x.shape[dim + 1:]
        if rest == mine.shape:
            mine, other = mine.unsqueeze(dim), other.unsqueeze(dim)
        if mine.dim() == x.dim() and mine.shape[:dim] + mine.shape[dim + 1:] == rest and mine.max() < x.shape[dim]:
            if all(torch.equal(a.gather(dim, mine), b.gather(dim, other)) for a, b in pairs):
                return True
        mine, other = ours[at], theirs[at]
    return False


def strides_of(tree):
    """The strides of every tensor, as a caller can see them: of no consequence where there is at most one element."""
    if isinstance(tree, torch.Tensor):
        return [tree.stride()] if tree.layout == torch.strided else [None]
    if isinstance(tree, dict):
        tree = tree.values()
    return [stride for value in tree for stride in strides_of(value)] if isinstance(tree, (list, tuple, type({}.values()))) else []


def _kind(value):
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (list, tuple)) else type(value).__name__


def _require(condition, message):
    if not condition:
        raise Differs(message)
