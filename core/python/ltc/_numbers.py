"""Numbers that say whether a function did more with them than hand them to operations of PyTorch."""

import torch


class WatchedNumber:
    """Stands for a float or an int. Operations of PyTorch get the number itself; whatever else is done with it (compared,
    converted, formatted, computed with) is done with the number too, and noted in ``looked_at``."""

    def __init__(self, value):
        self.value, self.looked_at = value, False

    def look(self):
        self.looked_at = True
        return self.value

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        args, kwargs = torch.utils._pytree.tree_map_only(WatchedNumber, lambda number: number.value, (args, kwargs or {}))
        return function(*args, **kwargs)

    @property
    def __class__(self):
        return type(self.value)

    def __getattr__(self, name):
        return getattr(self.look(), name)


def _method(name):
    def method(self, *args):
        if any(isinstance(arg, torch.Tensor) for arg in args):  # theirs to compute: x - 2 is also (2).__rsub__(x)
            return NotImplemented
        args = [arg.look() if isinstance(arg, WatchedNumber) else arg for arg in args]
        return getattr(self.look(), name)(*args)

    return method


def _watched(kind):
    """A class that has the special methods of a number's type: Python looks for these in the class alone."""
    kept = {"__class__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__init_subclass__", "__subclasshook__"}
    special = [name for name in dir(kind) if name.startswith("__") and callable(getattr(kind, name)) and name not in kept]
    return type(f"Watched{kind.__name__.title()}", (WatchedNumber,), {name: _method(name) for name in special})


_CLASSES = {kind: _watched(kind) for kind in (float, int)}


def hand_out(values: list) -> dict[int, WatchedNumber]:
    """Puts watched numbers in the place of floats and ints; they, by position."""
    watched = {i: _CLASSES[type(value)](value) for i, value in enumerate(values) if type(value) in _CLASSES}
    for i, number in watched.items():
        values[i] = number
    return watched
