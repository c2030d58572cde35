"""The same values in other memory: what an operator must not depend on, except for the strides of its results."""

import torch

from .place import map_tensors


def transposed(tensor):
    if tensor.dim() < 2:
        return tensor
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def channels_last(tensor):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats[tensor.dim()]) if tensor.dim() in formats else tensor


def spread(tensor):
    """Every second element of memory that holds garbage between them; shifted by one."""
    if tensor.numel() == 0 or tensor.dim() == 0:
        return tensor
    return in_the_middle(tensor).copy_(tensor)


def in_the_middle(tensor):
    """Uninteresting memory of the tensor's sizes and dtype: a view with an offset and gaps into a larger, filled base."""
    base = torch.ones((2 * max(tensor.numel(), 1) + 2,), dtype=tensor.dtype)
    strides = [2 * stride for stride in _row_major(tensor.shape)]
    return base.as_strided(tensor.shape, strides, 1)


def _row_major(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


LAYOUTS = {"transposed": transposed, "channels_last": channels_last, "noncontiguous": spread}


def changed(layout, tree):
    """The tree in that layout, or None if no tensor of it changes."""
    seen = []

    def change(tensor):
        result = LAYOUTS[layout](tensor)
        seen.append(result.stride() != tensor.stride())
        return result

    result = map_tensors(change, tree)
    return result if any(seen) else None
