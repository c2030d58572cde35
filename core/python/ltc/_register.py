"""Registration of the device with PyTorch."""

import atexit
import os

import torch

from . import _C, _device_module


def _pickle_storages_through_cpu() -> None:
    """Plain ``pickle`` and ``torch.save``'s old format wrap the storage's address as a tensor and copy from or to that. Our
    addresses are not memory, so for our storages they get one on the CPU."""
    write, read = torch.UntypedStorage._write_file, torch.UntypedStorage._set_from_file

    def _write_file(self, *args):
        return write(self.cpu() if self.device.type == "ltc" else self, *args)

    def _set_from_file(self, *args):
        if self.device.type != "ltc":
            return read(self, *args)
        self.copy_(read(torch.UntypedStorage(self.nbytes()), *args))
        return self

    torch.UntypedStorage._write_file, torch.UntypedStorage._set_from_file = _write_file, _set_from_file


def register() -> None:
    """Name the device, give it ``torch.ltc`` and the tensor methods. Idempotent."""
    if hasattr(torch, "ltc"):
        return
    torch.utils.rename_privateuse1_backend("ltc")
    _C.register_device()
    _C.record_source_lines([os.path.dirname(torch.__file__), os.path.dirname(__file__)])
    torch._register_device_module("ltc", _device_module)
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    _pickle_storages_through_cpu()
    atexit.register(_C.shut_down)
