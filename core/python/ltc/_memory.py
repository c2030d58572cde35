"""Memory of ``torch.ltc``: PyTorch's own functions, for the device named. They say what the device holds now and wait for nothing;
what is only recorded takes no memory yet, and what was dropped goes when the queue comes to it (``ltc.sync()`` waits for both)."""

from collections import OrderedDict

from torch import accelerator

from ._index import index_of
from ._memory_snapshot import _dump_snapshot, _record_memory_history, _snapshot, memory_snapshot  # noqa: F401


def memory_stats(device=None) -> OrderedDict:
    return accelerator.memory_stats(index_of(device))


def memory_allocated(device=None) -> int:
    """Bytes of the buffers that hold values, in the type that the device keeps them in. Memory that a program needs while it runs is
    the plugin's own, and is in :func:`memory_reserved` only."""
    return accelerator.memory_allocated(index_of(device))


def max_memory_allocated(device=None) -> int:
    return accelerator.max_memory_allocated(index_of(device))


def memory_reserved(device=None) -> int:
    """The memory that the plugin says it uses, or :func:`memory_allocated` where it does not say."""
    return accelerator.memory_reserved(index_of(device))


def max_memory_reserved(device=None) -> int:
    """The plugin's own peak since the device was opened. After :func:`reset_peak_memory_stats`, where the plugin has not used more than
    before since then: the larger of :func:`memory_reserved` and :func:`max_memory_allocated`, since a plugin cannot forget its peak."""
    return accelerator.max_memory_reserved(index_of(device))


def reset_peak_memory_stats(device=None) -> None:
    accelerator.reset_peak_memory_stats(index_of(device))


def reset_accumulated_memory_stats(device=None) -> None:
    accelerator.reset_accumulated_memory_stats(index_of(device))


def empty_cache() -> None:
    """Nothing to do: the core keeps no memory that nobody uses."""
    accelerator.empty_cache()


def mem_get_info(device=None) -> tuple[int, int]:
    """Free and total bytes, where the plugin says."""
    return accelerator.get_memory_info(index_of(device))
