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


def _show_options(backend):
    """split_group copies the options of a backend. PyTorch's own backends show them, and theirs can be copied."""
    if hasattr(backend, "options"):
        return
    backend.options = property(lambda group: backend.Options(group.name()))
    backend.Options.__deepcopy__ = lambda options, _: backend.Options(options.backend, options._timeout)


def install() -> None:
    """Make the backend known to torch.distributed, where that was built."""
    if dist.is_available():
        dist.Backend.register_backend("ltc", _create, devices=["ltc"])
        # PyTorch looks for the group's main backend in lower case, which else is unknown: it warns at the end of each group.
        dist.Backend._plugins = {"ltc": dist.Backend._plugins["LTC"], **dist.Backend._plugins}
        _show_options(dist._Backend)
