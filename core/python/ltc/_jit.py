"""``ltc.jit(fn)``: a function of tensors as a program of the device, recorded once per kind of call."""

import functools
import threading

import torch
from torch.utils import _pytree as pytree

from . import _C
from ._captured import CapturedFunction

_LEAVES = {torch.Tensor, torch.nn.Parameter, float, int, bool, str, type(None)}


class JitFunction:
    """What :func:`ltc.jit` returns. ``len()`` is how many kinds of calls it has met."""

    def __init__(self, function):
        functools.update_wrapper(self, function, updated=())
        self.module = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
        if not isinstance(self.module, torch.nn.Module):
            self.module = None
        self.function = function
        self.modules = list(self.module.modules()) if self.module is not None else []
        self.by_structure = {}
        self.training = None
        self.lock = threading.RLock()  # held while stand-ins are in the place of the module's tensors

    def __len__(self):
        return sum(len(structure.captured.captures) for structure in self.by_structure.values())

    def __call__(self, *args, **kwargs):
        values, spec = _flatten(args, kwargs)
        count, training = len(values), ()
        if self.modules:
            with self.lock:
                values.extend(tensor for module in self.modules for tensor in _own_tensors(module))
            training = tuple([module.training for module in self.modules])
        device = _C.place_of_call(values)
        if device == _C.WANTS_GRADIENT:
            return self._train(*args, **kwargs)
        key = (spec, device, _C.recording_modes(), training)
        structure = self.by_structure.get(key)
        if structure is None:
            if device == _C.SEVERAL_DEVICES:
                _refuse_several(values)
            structure = self.by_structure[key] = _Structure(self, spec, count, device)
        return structure.call(values)

    def _train(self, *args, **kwargs):
        if self.training is None:
            self.training = torch.compile(self.function, backend="ltc", fullgraph=True)
        return self.training(*args, **kwargs)


class _Structure:
    """The calls whose arguments are nested in one way."""

    def __init__(self, jit: JitFunction, spec, count: int, device: int):
        self.jit, self.spec, self.count = jit, spec, count
        self.result_spec = {}  # by how the results are nested: a captured call returns which
        self.captured = CapturedFunction(self._run, device, self._refuse, may_look=True)

    def call(self, values: list):
        results = self.captured(values)  # no entry(): collecting garbage cannot see that it holds what holds it
        spec = results.pop()
        return results[0] if spec == "*" else pytree.tree_unflatten(results, self.result_spec[spec])

    def _run(self, values: list) -> list:
        args, kwargs = _unflatten(values[:self.count], self.spec)
        with torch.no_grad():
            leaves, spec = pytree.tree_flatten(self._apply(values[self.count:], args, kwargs))
        self.result_spec[str(spec)] = spec
        return [*leaves, str(spec)]

    def _apply(self, held: list, args, kwargs):
        if self.jit.module is None:
            return self.jit.function(*args, **kwargs)
        with self.jit.lock, _standing_in(self.jit.modules, held):
            return self.jit.function(*args, **kwargs)

    def _refuse(self, reason: str):
        name = getattr(self.jit.function, "__qualname__", type(self.jit.function).__name__)
        raise RuntimeError(
            f"ltc.jit({name}): {reason}. A function under ltc.jit is recorded once, so what it does may depend on the arguments' "
            "types and on its other arguments, not on values of tensors: use torch.where and the like, pass the tensor as an "
            "argument, or leave that part out of the function."
        )


def _flatten(args: tuple, kwargs: dict):
    """All leaves and how they are nested, which is the number of arguments where nothing is: quicker than pytree's flattening."""
    if not kwargs and _LEAVES.issuperset(map(type, args)):
        return list(args), len(args)
    return pytree.tree_flatten((args, kwargs))


def _unflatten(leaves: list, spec):
    return (leaves, {}) if isinstance(spec, int) else pytree.tree_unflatten(leaves, spec)


def _own_tensors(module: torch.nn.Module):
    for tensors in (module._parameters, module._buffers):
        for tensor in tensors.values():
            if tensor is not None:
                yield tensor


class _standing_in:
    """Puts tensors in the place of the modules' own, in the order of :func:`_own_tensors`. What the modules put in the place of
    those meanwhile becomes their contents."""

    def __init__(self, modules: list, tensors: list):
        self.modules, self.tensors = modules, tensors

    def __enter__(self):
        rest = iter(self.tensors)
        self.places = [
            (of_module, name, tensor, next(rest))
            for module in self.modules
            for of_module in (module._parameters, module._buffers)
            for name, tensor in of_module.items()
            if tensor is not None
        ]
        for of_module, name, _, stand_in in self.places:
            of_module[name] = stand_in

    def __exit__(self, *exception):
        for of_module, name, tensor, stand_in in self.places:
            if (left := of_module[name]) is not stand_in and isinstance(left, torch.Tensor):
                stand_in.copy_(left)
            of_module[name] = tensor
        return False


def _refuse_several(values):
    devices = {str(value.device) for value in values if isinstance(value, torch.Tensor) and value.device.type == "ltc"}
    raise RuntimeError(f"ltc.jit: a function computes on one device, and its tensors are on {sorted(devices)}")
