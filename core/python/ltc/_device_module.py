"""``torch.ltc``: what PyTorch and its users expect of a device's module."""

from types import SimpleNamespace

import torch

from . import _C
from . import _memory as memory  # noqa: F401
from ._index import index_of as _index
from ._memory import (  # noqa: F401
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from ._streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream  # noqa: F401

_initialized = True  # asked before RNG states are saved (checkpointing); the device itself is opened when first used


def is_available() -> bool:
    """Whether a backend with a device can be loaded."""
    try:
        return _C.device_count() > 0
    except RuntimeError:
        return False


def is_initialized() -> bool:
    return not _C.forked()


def init() -> None:
    _C.device_count()


def device_count() -> int:
    """The number of devices of all loaded backends. Loads them."""
    return _C.device_count()


def current_device() -> int:
    return _C.current_device()


def set_device(device) -> None:
    _C.set_device(_index(device))


class device:
    """Context manager that makes a device the current one; a negative index changes nothing."""

    def __init__(self, device):
        self.index = _index(device)

    def __enter__(self):
        self.previous = _C.current_device()
        if self.index >= 0:
            _C.set_device(self.index)
        return self

    def __exit__(self, *exception):
        _C.set_device(self.previous)
        return False


def synchronize(device=None) -> None:
    """Queue what was recorded on the device and wait until it has run."""
    _C.sync(_index(device), True)


def get_device_name(device=None) -> str:
    return get_device_properties(device).name


def get_device_properties(device=None) -> SimpleNamespace:
    """``name``, ``total_memory`` in bytes (0: unknown) and ``fingerprint``, as the plugin has them."""
    return SimpleNamespace(**_C.device_properties(_index(device)))


def get_device_capability(device=None) -> dict:
    """``supported_dtypes``: those that tensors on the device may have."""
    return torch.accelerator.get_device_capability(_index(device))


def _is_in_bad_fork() -> bool:
    return _C.forked()


def manual_seed(seed: int) -> None:
    _C.default_generator(_C.current_device()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed every device, also those not in use yet. Loads nothing."""
    _C.seed_all(int(seed) % 2**64)


def seed() -> None:
    _C.default_generator(_C.current_device()).seed()


def seed_all() -> None:
    manual_seed_all(torch.seed())


def initial_seed() -> int:
    return _C.default_generator(_C.current_device()).initial_seed()


def get_rng_state(device=None) -> torch.Tensor:
    return _C.default_generator(_index(device)).get_state()


def set_rng_state(new_state: torch.Tensor, device=None) -> None:
    _C.default_generator(_index(device)).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.bfloat16, torch.float16]


def is_bf16_supported() -> bool:
    return True
