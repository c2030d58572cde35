"""Memory of ``torch.ltc``: PyTorch's own functions, for the device named. They say what the device holds now and wait for nothing;
what is only recorded takes no memory yet, and what was dropped goes when the queue comes to it (``ltc.sync()`` waits for both)."""

from collections import OrderedDict

from torch import accelerator

from ._index import index_of


def memory_stats(device=None) -> OrderedDict:
    return accelerator.memory_stats(index_of(device))


def memory_allocated(device=None) -> int:
    """Bytes of the buffers that hold values."""
    return accelerator.memory_allocated(index_of(device))


def max_memory_allocated(device=None) -> int:
    return accelerator.max_memory_allocated(index_of(device))


def memory_reserved(device=None) -> int:
    """The memory that the plugin says it uses, or :func:`memory_allocated` where it does not say."""
    return accelerator.memory_reserved(index_of(device))


def max_memory_reserved(device=None) -> int:
    """The plugin's own peak, since the device was opened."""
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
