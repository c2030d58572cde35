"""Registration of the device with PyTorch."""

import atexit
import os

import torch
import typing_extensions

from . import _C, _auto_step, _device_module, _distributed, _patches, _trace_log


def register() -> None:
    """Name the device, give it ``torch.ltc`` and the tensor methods. Idempotent."""
    if hasattr(torch, "ltc"):
        return
    patches = _patches.wanted()
    torch.utils.rename_privateuse1_backend("ltc")
    _C.register_device()
    _C.heed_signals()
    _C.record_source_lines([os.path.dirname(torch.__file__), os.path.dirname(__file__), typing_extensions.__file__])
    torch._register_device_module("ltc", _device_module)
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    _patches.install(patches)
    _trace_log.start()
    _auto_step.install()
    _distributed.install()
    os.register_at_fork(before=_C.end_background_work)
    atexit.register(_C.end_process)
