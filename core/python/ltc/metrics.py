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


def report() -> str:
    """All counters that are not zero, as text."""
    return _C.metrics_report()
