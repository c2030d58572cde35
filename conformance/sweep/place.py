"""Moves the arguments of an operator to a device, each tensor with the geometry that it has on the CPU.

Tensors that share a storage share one afterwards, and what lies between a tensor's elements is copied too: so two devices can be
compared storage by storage.
"""

import torch


class Place:
    """One run's arguments on one device. The storages that were made are kept, to see what the run left in them."""

    def __init__(self, device):
        self.device = torch.device(device)
        self.bases = {}
        self._sources = []  # kept alive: another storage at the address of one that is gone would pass for it

    def __call__(self, tree):
        if isinstance(tree, torch.Tensor):
            return self._tensor(tree)
        if isinstance(tree, torch.Generator):
            return torch.Generator(self.device).manual_seed(tree.initial_seed())
        if isinstance(tree, torch.device):
            return self.device
        if isinstance(tree, str) and tree == "cpu":
            return str(self.device)
        if isinstance(tree, dict):
            return {key: self.device if key == "device" and value is not None else self(value) for key, value in tree.items()}
        if isinstance(tree, tuple) and hasattr(tree, "_fields"):
            return type(tree)(*map(self, tree))
        if type(tree) in (list, tuple):
            return type(tree)(map(self, tree))
        return tree

    def _tensor(self, tensor):
        if tensor.layout != torch.strided or tensor.device.type != "cpu":
            return tensor
        plain = tensor.detach().resolve_conj().resolve_neg() if tensor.is_conj() or tensor.is_neg() else tensor.detach()
        placed = self._base(plain).as_strided(plain.shape, plain.stride(), plain.storage_offset())
        if tensor.is_conj():
            placed = placed.conj_physical().conj()
        if tensor.is_neg():
            placed = torch._neg_view(placed.neg())
        return placed.detach().requires_grad_(tensor.requires_grad)

    def _base(self, tensor):
        storage = tensor.untyped_storage()
        key = (storage._cdata, tensor.dtype)
        if key not in self.bases:
            self._sources.append(storage)
            flat = torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (storage.nbytes() // tensor.element_size(),))
            self.bases[key] = flat.clone().to(self.device)
        return self.bases[key]


def map_tensors(function, tree):
    """The tree with each strided tensor replaced; leaves that require gradients stay such leaves."""
    if isinstance(tree, torch.Tensor):
        return function(tree.detach()).requires_grad_(tree.requires_grad) if tree.layout == torch.strided else tree
    if isinstance(tree, dict):
        return {key: map_tensors(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_tensors(function, value) for value in tree))
    if type(tree) in (list, tuple):
        return type(tree)(map_tensors(function, value) for value in tree)
    return tree


def has_device(tree):
    """Whether a call with these arguments is bound to a device: a tensor's, or one that is named."""
    if isinstance(tree, dict):
        return any(key == "device" and value is not None or has_device(value) for key, value in tree.items())
    if isinstance(tree, (list, tuple)):
        return any(map(has_device, tree))
    return isinstance(tree, (torch.Tensor, torch.Generator, torch.device))


def tensors_in(tree):
    """The tensors of nested lists, tuples and dicts, in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (list, tuple)):
        return []
    return [tensor for value in tree for tensor in tensors_in(value)]
