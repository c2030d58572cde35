"""``ltc.jit(fn)``: a function of tensors as a program of the device, recorded once per kind of call."""

import functools
from collections.abc import AsyncIterator, Awaitable, Iterator

import torch
from torch.utils import _pytree as pytree

from . import _C
from ._captured import CapturedFunction
from ._placeholders import module_of, own_tensors, show_placeholders

_LEAVES = {torch.Tensor, torch.nn.Parameter, float, int, bool, str, type(None)}

_LATER = (Iterator, Awaitable, AsyncIterator)
_COMPUTES_LATER = (
    "ltc.jit({}): the function returns a {}, which computes after the function has returned, when nothing is recorded: return what it "
    "gives, as a list"
)


class JitFunction:
    """The function that :func:`ltc.jit` returns. ``len()`` is how many kinds of calls it has met."""

    def __init__(self, function):
        functools.update_wrapper(self, function, updated=())
        self.module = module_of(function)
        self.function = function
        self.modules = list(self.module.modules()) if self.module is not None else []
        self.by_structure = {}
        self.training = None

    def __len__(self):
        return sum(len(structure.captured.captures) for structure in self.by_structure.values())

    def __call__(self, *args, **kwargs):
        values, spec = _flatten(args, kwargs)
        count, training = len(values), ()
        if self.modules:
            values.extend(tensor for module in self.modules for tensor in own_tensors(module))
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
        for leaf in leaves:
            if isinstance(leaf, _LATER):
                raise TypeError(_COMPUTES_LATER.format(self.name, type(leaf).__name__))
        self.result_spec[str(spec)] = spec
        return [*leaves, str(spec)]

    def _apply(self, held: list, args, kwargs):
        if self.jit.module is None:
            return self.jit.function(*args, **kwargs)
        with show_placeholders(self.jit.modules, held):
            return self.jit.function(*args, **kwargs)

    @property
    def name(self) -> str:
        return getattr(self.jit.function, "__qualname__", type(self.jit.function).__name__)

    def _refuse(self, reason: str):
        raise RuntimeError(
            f"ltc.jit({self.name}): {reason}. A function under ltc.jit is recorded once, so what it does may depend on the arguments' "
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


def _refuse_several(values):
    devices = {str(value.device) for value in values if isinstance(value, torch.Tensor) and value.device.type == "ltc"}
    raise RuntimeError(f"ltc.jit: a function computes on one device, and its tensors are on {sorted(devices)}")
