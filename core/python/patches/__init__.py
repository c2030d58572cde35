"""All that ``import ltc`` changes in PyTorch and CPython for the whole process, in one table.

``LTC_PATCHES`` chooses: ``all`` (the default), ``none``, or names separated by commas. ``LTC_EAGER=1`` implies ``none``. A version of
PyTorch or Python that is not in the table gets none. The device computes the same without them: patches make it faster, make a copy
through the CPU where PyTorch would refuse, or give an error that says what to do.
"""

import os
import sys
from typing import Callable, NamedTuple

import torch

from .. import _C
from . import backward, data_parallel, libraries, sharing, sparse_optimizers, torch_functions
from .replacements import Placed, Replacement, Unexpected, difference, restore

# With these all patches have passed the tests.
PYTORCH = ("2.13", "2.14")
PYTHON = ("3.11", "3.12")


class Patch(NamedTuple):
    name: str
    purpose: str
    guard: Callable[[], str]  # why this PyTorch must not be patched so; "" if it may
    install: Callable[[], None]  # raises Unexpected, with nothing changed, where something does not look as expected
    uninstall: Callable[[], None]  # raises Unexpected, with the patch in place, where somebody has patched the same since


def _native(name: str, purpose: str) -> Patch:
    """A patch of the extension module, which checks the structure itself."""

    def install():
        if not _C.install_patch(name):
            raise Unexpected("PyTorch's objects do not look as expected")

    def uninstall():
        if not _C.uninstall_patch(name):
            raise Unexpected("another library has patched the same place since")

    return Patch(name, purpose, lambda: "", install, uninstall)


def _attributes(name: str, purpose: str, replacements: Callable[[], list[Replacement]]) -> Patch:
    """A patch of attributes of Python objects."""
    placed: list[Placed] = []

    def guard():
        try:
            return next(filter(None, map(difference, replacements())), "")
        except AttributeError as error:  # the owner itself is not there
            return str(error)

    def install():
        placed.extend(map(Placed, replacements()))

    return Patch(name, purpose, guard, install, lambda: restore(placed))


TABLE = (
    # Speed alone.
    _native("dealloc", "tensors that are only recorded are released without giving up the interpreter's lock"),
    _native("device_type", "device.type of the device is one string, not one made at each read"),
    _native("operators", "+ - * / of plain tensors of the device are recorded without PyTorch's dispatcher"),
    _native("record_function", "labels that no profiler sees cost nothing: optimizers put one around each step"),
    _native("tensor_to", 'tensor.to("ltc") of a small CPU tensor goes without PyTorch\'s dispatcher'),
    _attributes("backward", "backward() of the device's tensors is recorded without PyTorch's engine where nothing unusual is asked",
                backward.replacements),
    _attributes("printing", "printing a tensor reads it once", torch_functions.printing),
    _attributes("sparse_optimizers", "SparseAdam and Adagrad sum the rows of sparse gradients on the device", sparse_optimizers.replacements),
    # Defaults of PyTorch that know CPU and CUDA only.
    _attributes("inductor", "torch.compile without a backend hands graphs of the device to the backend ltc", torch_functions.inductor),
    _attributes("linear_cross_entropy", "half types are summed in float, as on the CPU and on CUDA", torch_functions.linear_cross_entropy),
    _attributes("data_parallel", "DataParallel runs a model where it is", data_parallel.replacements),
    _attributes("memory_snapshot", "torch.accelerator.memory._snapshot is one of the device's memory", torch_functions.memory_snapshot),
    Patch("libraries", "safetensors, accelerate and transformers know the device", lambda: "", libraries.install, libraries.uninstall),
    # The address of a tensor of the device is no memory.
    _attributes("pickle", "plain pickle and the old format of torch.save copy through the CPU", sharing.pickle),
    _attributes("multiprocessing", "sending a tensor to another process is an error that says what to do", sharing.multiprocessing),
    _attributes("dlpack", "DLPack exports copy through the CPU where the caller asks for the CPU", sharing.dlpack),
    _attributes("byteswap", "byteswap of a storage is an error that says what to do", torch_functions.byteswap),
)  # fmt: skip

_active: list[str] = []


def active() -> tuple[str, ...]:
    """The names of the patches that are installed."""
    return tuple(_active)


def wanted() -> list[str]:
    """The names that the environment asks for. Raises ``RuntimeError`` for a name that is not in the table."""
    known = [patch.name for patch in TABLE]
    value = os.environ.get("LTC_PATCHES") or "all"
    names = {"all": known, "none": []}.get(value, value.split(","))
    if unknown := [name for name in names if name not in known]:
        raise RuntimeError(f"LTC_PATCHES is '{value}', and there is no patch {', '.join(map(repr, unknown))}; it may be all, none, or "
                           f"names separated by commas: {', '.join(known)}")
    return [] if os.environ.get("LTC_EAGER") == "1" else [name for name in known if name in names]


def unknown_version() -> str:
    """Which version is not among those that the patches are for; empty if both are."""
    pytorch, python = ".".join(torch.__version__.split(".")[:2]), f"{sys.version_info.major}.{sys.version_info.minor}"
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    if python not in PYTHON:
        return f"Python {python} is not one of {', '.join(PYTHON)}"
    return "" if pytorch in PYTORCH else f"PyTorch {pytorch} is not one of {', '.join(PYTORCH)}"


def install(names: list[str]) -> None:
    """Install those patches, and log which are active. One that does not fit is left out, with its reason in the log."""
    left_out = unknown_version()
    if left_out and names:
        _C.log_info(f"patches: none, since {left_out}")
        return
    refused = []
    for patch in TABLE:
        if patch.name not in names or patch.name in _active:
            continue
        try:
            if reason := patch.guard():
                raise Unexpected(reason)
            patch.install()
            _active.append(patch.name)
        except Unexpected as error:
            refused.append(f"{patch.name} ({error})")
    _C.log_info(f"patches: {', '.join(_active) or 'none'}" + (f"; not installed: {', '.join(refused)}" if refused else ""))


def uninstall(*names: str) -> None:
    """Take patches back, the last one first; all without names. Raises ``Unexpected`` where another library has patched the same place."""
    for patch in reversed(TABLE):
        if patch.name in _active and (not names or patch.name in names):
            patch.uninstall()
            _active.remove(patch.name)
