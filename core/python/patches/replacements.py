"""Attributes of modules, classes and dicts that a patch replaces."""

import inspect
from typing import Any, Callable, NamedTuple


class Unexpected(RuntimeError):
    """PyTorch or Python does not look as a patch expects."""


class Replacement(NamedTuple):
    """``owner.name``, or ``owner[name]`` of a dict, becomes ``make(original)``."""

    owner: Any
    name: Any
    make: Callable
    # Names of the original's parameters, as a structural check: of each version after a "|". "" where PyTorch's function tells none.
    parameters: str = ""


def get(owner, name):
    """The attribute as its owner holds it: no method is bound. ``AttributeError`` or ``KeyError`` where there is none."""
    return owner[name] if isinstance(owner, dict) else inspect.getattr_static(owner, name)


class Placed:
    """A replacement that is in place from now on."""

    def __init__(self, replacement: Replacement):
        self.owner, self.name, make, _ = replacement
        self.original = get(self.owner, self.name)
        self.is_inherited = not isinstance(self.owner, dict) and self.name not in vars(self.owner)
        self._put(make(self.original))
        self.own = get(self.owner, self.name)

    def is_there(self) -> bool:
        """Whether nobody has replaced it since."""
        return get(self.owner, self.name) is self.own

    def restore(self) -> None:
        delattr(self.owner, self.name) if self.is_inherited else self._put(self.original)

    def _put(self, value) -> None:
        if isinstance(self.owner, dict):
            self.owner[self.name] = value
        else:
            setattr(self.owner, self.name, value)


def restore(placed: list[Placed]) -> None:
    """Take them back, the last one first, and empty the list. Raises ``Unexpected``, with all in place, if one was replaced since."""
    if not all(one.is_there() for one in placed):
        raise Unexpected("another library has patched the same place since")
    while placed:
        placed.pop().restore()


def difference(replacement: Replacement) -> str:
    """How the original differs from what the patch expects; empty if it does not."""
    owner, name, _, parameters = replacement
    label = f"{getattr(owner, '__name__', type(owner).__name__)}.{getattr(name, '__name__', name)}"
    try:
        original = get(owner, name)
    except (AttributeError, KeyError):
        return f"there is no {label}"
    try:
        found = " ".join(inspect.signature(original).parameters) if parameters else ""
    except (TypeError, ValueError):  # a function of C++ tells none
        found = "?"
    known = parameters.split("|")
    return "" if found in known else f"{label} takes ({found}), not " + " or ".join(f"({names})" for names in known)
