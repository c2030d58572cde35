"""Placeholders for a module's tensors, in the eyes of the thread that captures: all others go on with the module's own."""

import threading

import torch


def module_of(function):
    """The module that the function is, or whose method it is; else None."""
    module = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    return module if isinstance(module, torch.nn.Module) else None


def own_tensors(module: torch.nn.Module):
    for tensors in (module._parameters, module._buffers):
        for tensor in tensors.values():
            if tensor is not None:
                yield tensor


class _Views(dict):
    """In the place of a module's ``_parameters`` or ``_buffers`` while threads capture: each of them has a view of its own."""

    def __init__(self, own: dict):
        self.own, self.views = own, {}
        dict.update(self, own)  # for C code that asks no method

    def mine(self) -> dict:
        return self.views.get(threading.get_ident(), self.own)


def _method(name):
    def method(self, *args, **kwargs):
        return getattr(self.mine(), name)(*args, **kwargs)

    return method


_KEPT = {"__class__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__init_subclass__", "__subclasshook__"}
for _name in dir(dict):
    if _name not in _KEPT and callable(getattr(dict, _name)):
        setattr(_Views, _name, _method(_name))


class show_placeholders:
    """The calling thread sees `tensors` in the place of the modules' own, in the order of :func:`own_tensors`. Tensors that it
    puts in the place of those meanwhile become their contents."""

    _lock = threading.Lock()  # while a module gets its views, or loses them

    def __init__(self, modules: list, tensors: list):
        self.modules, self.tensors = modules, tensors

    def __enter__(self):
        rest = iter(self.tensors)
        self.shown = []
        for module in self.modules:
            for kind in ("_parameters", "_buffers"):
                outer = getattr(module, kind)
                placeholders = {name: next(rest) for name, tensor in outer.items() if tensor is not None}
                if placeholders:
                    self.shown.append((module, placeholders, *self._show(module, kind, {**outer, **placeholders})))

    def _show(self, module, kind: str, view: dict | None):
        """Sets the tensors of the module that the calling thread sees from now on; None: those that all see. Returns those from before."""
        thread = threading.get_ident()
        with self._lock:
            views = module.__dict__[kind]
            if not isinstance(views, _Views):
                views = module.__dict__[kind] = _Views(views)
            before = views.views.pop(thread, None)
            if view is not None:
                views.views[thread] = view
            elif not views.views:
                module.__dict__[kind] = views.own
        return kind, view, before

    def __exit__(self, kind, error, trace):
        for module, _, name, _, before in self.shown:
            self._show(module, name, before)
        for module, placeholders, _, view, _ in self.shown if error is None else ():
            for name in placeholders.keys() | view.keys():
                left, placeholder = view.get(name), placeholders.get(name)
                if left is placeholder:
                    continue
                if not (isinstance(left, torch.Tensor) and placeholder is not None and _are_alike(left, placeholder)):
                    raise RuntimeError(_REPLACED.format(name, type(module).__name__))
                placeholder.copy_(left)
        return False


def _are_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


_REPLACED = (
    "ltc.jit: the function adds, removes or resizes the parameter or buffer {!r} of a {}, which only the call that is recorded would "
    "do: create it before, and write to it in place"
)
