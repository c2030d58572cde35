"""Checkpoints: files of ``torch.save``, written and read one tensor at a time, so that the host never holds a second model."""

import os
import pathlib
import secrets
import zipfile

import torch

from ._index import index_of


def save(obj, path: "str | os.PathLike") -> None:
    """Save ``obj`` as ``torch.save`` does. The file appears under its name when it is complete: after an error (a full disk, an
    object that cannot be pickled) what was there before is still there."""
    path = pathlib.Path(path)
    name = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)  # less the umask, as of any new file
    try:
        with os.fdopen(handle, "wb") as file:
            _write(obj, file, path)
            file.flush()
            os.fsync(handle)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def load(path: "str | os.PathLike", device: "torch.device | str | int | None" = None, *, weights_only: bool = True):
    """Load a file of :func:`save` or ``torch.save``, every tensor to ``device`` as soon as it is read. A number or None (the
    current one) means an ltc device."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"cannot load {os.fspath(path)!r}: {_what_is_wrong(path)}")
    if device is None or isinstance(device, int):
        device = torch.device("ltc", index_of(device))
    return torch.load(path, map_location=device, weights_only=weights_only)


def _write(obj, file, path: pathlib.Path) -> None:
    """PyTorch's writer reports what its file object raised as an error of its own; the first cause says more."""
    causes: list[OSError] = []

    class Recorder:
        def write(self, data):
            try:
                return file.write(data)
            except OSError as error:
                causes.append(error)
                raise

        def flush(self):
            file.flush()

    try:
        torch.save(obj, Recorder())
    except Exception as error:
        if causes:
            raise OSError(causes[0].errno, f"cannot save the checkpoint: {causes[0].strerror}", str(path)) from error
        raise


def _what_is_wrong(path) -> str:
    with open(path, "rb") as file:
        begin = file.read(4)
    if begin[:2] == b"PK":
        return "the file is truncated or damaged"
    return "not a checkpoint (a file of ltc.save or torch.save)" if begin else "the file is empty"

