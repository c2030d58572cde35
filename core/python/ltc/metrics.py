"""Counters of what the device did: compiles, cache hits, barriers, transfers, and ``aten::<op>`` for every op the CPU ran instead."""

from . import _C


def reset() -> None:
    """Set every counter to zero."""
    _C.reset_metrics()


def counter_names() -> list[str]:
    """The names of the counters that are not zero."""
    return _C.counter_names()


def counter_value(name: str) -> int:
    """The value of a counter; 0 for one that nothing has counted."""
    return _C.counter_value(name)


def fallbacks() -> list[dict]:
    """The ops that the CPU ran instead of the plugin since the last reset, most frequent first: ``op``, ``count``, ``bytes`` moved for it,
    ``where`` (the Python line of its first run) and ``reason``."""
    return _C.fallbacks()


def misses() -> list[dict]:
    """Why something was compiled that resembles what was compiled before, since the last reset, most frequent first: ``difference``,
    the first one from the nearest program, ``where`` (its Python line) and ``count`` of such compiles at that line."""
    return _C.misses()


def report() -> str:
    """All counters that are not zero, the fallbacks and the misses, as text."""
    return _C.metrics_report()
