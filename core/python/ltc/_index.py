"""The ordinal that a device, a name, a number or None means."""

import torch

from . import _C


def index_of(device: "torch.device | str | int | None") -> int:
    if device is None:
        return _C.current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type not in ("ltc", "lazy"):
        raise ValueError(f"expected a device of type ltc, not {device}")
    return _C.current_device() if device.index is None else device.index
