"""The process group ``ltc`` of torch.distributed: ``init_process_group("ltc")`` or ``init_process_group("cpu:gloo,ltc:ltc")``."""

import os

import torch.distributed as dist

from . import _C


def _create(store, rank, size, timeout):
    """Called by torch.distributed. Gloo carries out what the device records."""
    notes = dist.PrefixStore("ltc", store)
    name = os.urandom(8).hex()
    notes.set(f"name/{rank}", name)  # before Gloo connects: then each rank has the names of all
    gloo = dist.ProcessGroupGloo(store, rank, size, timeout)
    return _C.make_process_group(gloo, notes, name, timeout)


def install() -> None:
    """Make the backend known to torch.distributed, where that was built."""
    if dist.is_available():
        dist.Backend.register_backend("ltc", _create, devices=["ltc"])
