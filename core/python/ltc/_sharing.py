"""What would hand a tensor's address to somebody else: addresses of this device are not memory. Each is a copy through the CPU where
the caller expects one, and else an error that says what to do."""

import functools
import threading
from multiprocessing import reduction

import torch
import torch.multiprocessing  # registers PyTorch's own reductions
from torch.utils.dlpack import DLDeviceType

_SEND = (
    "a tensor of device ltc cannot be shared with another process: send tensor.cpu(), and in a DataLoader return CPU tensors from the "
    "dataset and move each batch with .to('ltc')"
)
_EXPORT = "a tensor of device ltc has no address to share through DLPack: export tensor.cpu()"


def install() -> None:
    _pickle_storages_through_cpu()
    _refuse_to_share()
    _refuse_to_send()
    _export_by_copy()


def _is_ours(tensor_or_storage) -> bool:
    return tensor_or_storage.device.type == "ltc"


def _pickle_storages_through_cpu() -> None:
    """Plain ``pickle`` and ``torch.save``'s old format wrap the storage's address as a tensor and copy from or to that."""
    write, read = torch.UntypedStorage._write_file, torch.UntypedStorage._set_from_file

    def _write_file(self, *args):
        return write(self.cpu() if _is_ours(self) else self, *args)

    def _set_from_file(self, *args):
        if not _is_ours(self):
            return read(self, *args)
        self.copy_(read(torch.UntypedStorage(self.nbytes()), *args))
        return self

    torch.UntypedStorage._write_file, torch.UntypedStorage._set_from_file = _write_file, _set_from_file


def _refuse_to_share() -> None:
    share, is_shared = torch.UntypedStorage.share_memory_, torch.UntypedStorage.is_shared

    @functools.wraps(share)
    def share_memory_(self, *args, **kwargs):
        if _is_ours(self):
            raise RuntimeError(_SEND)
        return share(self, *args, **kwargs)

    torch.UntypedStorage.share_memory_ = share_memory_
    torch.UntypedStorage.is_shared = lambda self: not _is_ours(self) and is_shared(self)


def _refuse_to_send() -> None:
    reduce = reduction.ForkingPickler._extra_reducers[torch.UntypedStorage]

    def reduce_storage(storage):
        if not _is_ours(storage):
            return reduce(storage)
        # A queue pickles in a thread of its own, where an error is printed and lost, and the receiver waits for ever: there
        # the receiver gets the error.
        if threading.current_thread().name == "QueueFeederThread":
            return _raise, (_SEND,)
        raise RuntimeError(_SEND)

    reduction.ForkingPickler.register(torch.UntypedStorage, reduce_storage)


def _raise(text: str):
    raise RuntimeError(text)


def _export_by_copy() -> None:
    """``np.from_dlpack(tensor, device="cpu")`` and the like ask for a copy on the CPU and get one."""
    export, device = torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__
    to_capsule = torch._C._to_dlpack

    @functools.wraps(export)
    def __dlpack__(self, *, dl_device=None, copy=None, **kwargs):
        if not (isinstance(self, torch.Tensor) and _is_ours(self)):
            return export(self, dl_device=dl_device, copy=copy, **kwargs)
        if dl_device is None or dl_device[0] != DLDeviceType.kDLCPU or copy is False:
            raise BufferError(_EXPORT)
        kwargs.pop("stream", None)
        return export(self.cpu(), **kwargs)

    @functools.wraps(device)
    def __dlpack_device__(self):
        return (DLDeviceType.kDLExtDev, self.device.index) if _is_ours(self) else device(self)

    def to_dlpack(tensor, **kwargs):
        if _is_ours(tensor):
            raise BufferError(_EXPORT)
        return to_capsule(tensor, **kwargs)

    torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__ = __dlpack__, __dlpack_device__
    torch._C._to_dlpack = torch.to_dlpack = torch.utils.dlpack.to_dlpack = to_dlpack
