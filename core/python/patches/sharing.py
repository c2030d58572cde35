"""Functions that hand a tensor's address to somebody else: addresses of this device are not memory. Each is a copy through the CPU
where the caller expects one, and else an error that says what to do. One function for each patch."""

import functools
import threading
from multiprocessing import reduction

import torch
import torch.multiprocessing  # registers PyTorch's own reductions
from torch.utils.dlpack import DLDeviceType

from .replacements import Replacement

_SEND = (
    "a tensor of device ltc cannot be shared with another process: send tensor.cpu(), and in a DataLoader return CPU tensors from the "
    "dataset and move each batch with .to('ltc')"
)
_EXPORT = "a tensor of device ltc has no address to share through DLPack: export tensor.cpu()"


def _is_ours(tensor_or_storage) -> bool:
    return tensor_or_storage.device.type == "ltc"


def pickle() -> list[Replacement]:
    """Plain ``pickle`` and ``torch.save``'s old format wrap the storage's address as a tensor and copy from or to that."""

    def around_write(write):
        def _write_file(self, *args):
            return write(self.cpu() if _is_ours(self) else self, *args)

        return _write_file

    def around_read(read):
        def _set_from_file(self, *args):
            if not _is_ours(self):
                return read(self, *args)
            self.copy_(read(torch.UntypedStorage(self.nbytes()), *args))
            return self

        return _set_from_file

    storage = torch.UntypedStorage
    return [Replacement(storage, "_write_file", around_write), Replacement(storage, "_set_from_file", around_read)]


def multiprocessing() -> list[Replacement]:
    """Another process cannot read memory of the device."""

    def around_share(share):
        @functools.wraps(share)
        def share_memory_(self, *args, **kwargs):
            if _is_ours(self):
                raise RuntimeError(_SEND)
            return share(self, *args, **kwargs)

        return share_memory_

    def around_is_shared(is_shared):
        return lambda self: not _is_ours(self) and is_shared(self)

    storage, reducers = torch.UntypedStorage, reduction.ForkingPickler._extra_reducers
    return [
        Replacement(storage, "share_memory_", around_share, "self args kwargs"),
        Replacement(storage, "is_shared", around_is_shared),
        Replacement(reducers, storage, _around_reduce, "storage"),
    ]


def _around_reduce(reduce):
    def reduce_storage(storage):
        if not _is_ours(storage):
            return reduce(storage)
        # A queue pickles in a thread of its own, where an error is printed and lost, and the receiver waits for ever: there
        # the receiver gets the error.
        if threading.current_thread().name == "QueueFeederThread":
            return _raise, (_SEND,)
        raise RuntimeError(_SEND)

    return reduce_storage


def _raise(text: str):
    raise RuntimeError(text)


def dlpack() -> list[Replacement]:
    """``np.from_dlpack(tensor, device="cpu")`` and the like ask for a copy on the CPU and get one."""
    known = "self stream max_version dl_device copy"
    places = [(torch._C, "_to_dlpack"), (torch, "to_dlpack"), (torch.utils.dlpack, "to_dlpack")]
    return [
        Replacement(torch.Tensor, "__dlpack__", _around_dlpack, f"{known}|{known} read_only"),
        Replacement(torch.Tensor, "__dlpack_device__", _around_dlpack_device, "self"),
        *(Replacement(owner, name, _around_to_dlpack) for owner, name in places),
    ]


def _around_dlpack(export):
    @functools.wraps(export)
    def __dlpack__(self, *, dl_device=None, copy=None, **kwargs):
        if not (isinstance(self, torch.Tensor) and _is_ours(self)):
            return export(self, dl_device=dl_device, copy=copy, **kwargs)
        if dl_device is None or dl_device[0] != DLDeviceType.kDLCPU or copy is False:
            raise BufferError(_EXPORT)
        kwargs.pop("stream", None)
        return export(self.cpu(), **kwargs)

    return __dlpack__


def _around_dlpack_device(device):
    @functools.wraps(device)
    def __dlpack_device__(self):
        return (DLDeviceType.kDLExtDev, self.device.index) if _is_ours(self) else device(self)

    return __dlpack_device__


def _around_to_dlpack(to_capsule):
    def to_dlpack(tensor, **kwargs):
        if _is_ours(tensor):
            raise BufferError(_EXPORT)
        return to_capsule(tensor, **kwargs)

    return to_dlpack
