"""``torch.nn.DataParallel`` takes every accelerator for CUDA's kind, whose copies PyTorch has for CUDA alone."""

import functools
import importlib
import itertools

import torch
from torch.utils._pytree import tree_map_only

from .replacements import Replacement


def replacements() -> list[Replacement]:
    """A model on the CPU runs there, as where this device is not known; one on the device runs there, and so do its inputs."""
    module = importlib.import_module("torch.nn.parallel.data_parallel")  # the package has a function of that name
    return [
        Replacement(module, "_get_available_device_type", _around_name),
        Replacement(module.DataParallel, "forward", _around_forward, "self inputs kwargs"),
    ]


def _around_name(name_accelerator):
    @functools.wraps(name_accelerator)
    def _get_available_device_type():
        name = name_accelerator()
        return None if name == "ltc" else name

    return _get_available_device_type


def _around_forward(forward):
    @functools.wraps(forward)
    def forward_where_the_model_is(self, *inputs, **kwargs):
        first = next(itertools.chain(self.module.parameters(), self.module.buffers()), None)
        if not self.device_ids and first is not None and first.device.type == "ltc":
            inputs, kwargs = tree_map_only(torch.Tensor, lambda tensor: tensor.to(first.device), (inputs, kwargs))
        return forward(self, *inputs, **kwargs)

    return forward_where_the_model_is
