"""Results in random layouts (LTC_TORCHSCRIPT_LAYOUTS): whether they differ from the CPU's only by the order in which numbers were added up."""

import os

import torch

from .compare import differences
from .place import tensors_in
from .tables import ROUNDS_BY_LAYOUT

TIMES = 2  # the CPU's own distance from double precision


def by_layout(op):
    """Whether strides decide how this operator rounds, and values lie at random."""
    return bool(os.environ.get("LTC_TORCHSCRIPT_LAYOUTS")) and op.name in ROUNDS_BY_LAYOUT


def only_rounded(actual, expected, exact):
    """Whether the first is about as far from the exact results as the CPU's are, as a whole. Only floats may differ."""
    ours, theirs = ([tensor.detach().cpu() for tensor in tensors_in(tree)] for tree in (actual, expected))
    return len(ours) == len(theirs) == len(tensors_in(exact)) and all(
        _same_kind(one, other) and (torch.equal(one, other) or _is_near(one, other, reference))
        for one, other, reference in zip(ours, theirs, tensors_in(exact)))


def _same_kind(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one.isfinite(), other.isfinite())


def _is_near(one, other, exact):
    if not (other.is_floating_point() or other.is_complex()) or exact.shape != other.shape:
        return False
    ((_, error),), ((_, limit),) = differences(exact, one), differences(exact, other)
    return error <= TIMES * limit + torch.finfo(other.dtype).eps


def exactly(run):
    """The result of the run, with numbers of Python and integers taken for double precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return run()
    finally:
        torch.set_default_dtype(before)
