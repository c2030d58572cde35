"""Libraries that choose a device by a list of those that they know: where that ends on the CPU, they get this one.

Each is adapted when it is imported, or now if it has been.
"""

import functools
import importlib.abc
import importlib.util
import os
import sys

import torch

from .. import _C
from .replacements import Placed, Replacement, restore


_placed: list[Placed] = []


def install() -> None:
    _Finder.pending = dict(_ADAPTERS)
    for name in [name for name in _ADAPTERS if name in sys.modules]:
        _Finder.pending.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    restore(_placed)
    _Finder.pending = {}
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself; adapts a module once its own loader has run it."""

    pending: dict = {}

    def find_spec(self, name, path, target=None):
        adapt = self.pending.pop(name, None)
        spec = importlib.util.find_spec(name) if adapt else None
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            adapt(module)

        spec.loader.exec_module = exec_module
        return spec


_FINDER = _Finder()


def _set(owner, name: str, replacement) -> None:
    _placed.append(Placed(Replacement(owner, name, lambda original: replacement)))


def _replace(module, name: str, replacement) -> None:
    """Gives ``module`` and whoever imported the name from it the replacement."""
    original = getattr(module, name)
    for other in [module, *sys.modules.values()]:
        if getattr(other, "__dict__", {}).get(name) is original:
            _set(other, name, replacement)


def _adapt_safetensors(module) -> None:
    """``safe_open`` parses names of devices itself; an index is one of the device that PyTorch was given."""
    original = module.safe_open

    @functools.wraps(original)
    def safe_open(filename, framework, device="cpu", **options):
        if isinstance(device, (str, torch.device)) and str(device).partition(":")[0] in ("ltc", "lazy"):
            index = torch.device(device).index
            device = _C.current_device() if index is None else index
        return original(filename, framework, device=device, **options)

    _replace(module, "safe_open", safe_open)


def _adapt_accelerate(module) -> None:
    """Its default is the CPU where it knows no accelerator. ``use_cpu`` and ``ACCELERATE_TORCH_DEVICE`` count before it."""
    state, multi_cpu = module.PartialState, module.DistributedType.MULTI_CPU
    default_device, prepare_backend, set_device = state.default_device.fget, state._prepare_backend, state.set_device
    wait_for_everyone = state.wait_for_everyone

    def adapted(self):
        device = default_device(self)
        return torch.device("ltc", _C.current_device()) if device.type == "cpu" and torch.ltc.is_available() else device

    # Each rank would train alone. MULTI_CPU is the kind of ranks whose DistributedDataParallel is given no indices of devices.
    @functools.wraps(prepare_backend)
    def _prepare_backend(self, cpu=False, *args, **kwargs):
        backend, kind = prepare_backend(self, cpu, *args, **kwargs)
        is_rank = kind is module.DistributedType.NO and not cpu and int(os.environ.get("LOCAL_RANK", -1)) != -1
        if is_rank and (self.device is None or self.device.type == "ltc") and torch.ltc.is_available():
            return backend or "cpu:gloo,ltc:ltc", multi_cpu
        return backend, kind

    @functools.wraps(set_device)
    def adapted_set_device(self):
        if self.device is None and self.distributed_type is multi_cpu and not self._cpu and torch.ltc.is_available():
            self.device = torch.device("ltc", self.local_process_index % torch.ltc.device_count())
            torch.ltc.set_device(self.device)
        set_device(self)

    # Accelerate names the device of the rank's number, but ranks may share one, and Gloo alone has none.
    @functools.wraps(wait_for_everyone)
    def adapted_wait_for_everyone(self):
        if self.distributed_type is not multi_cpu:
            return wait_for_everyone(self)
        torch.distributed.barrier(device_ids=[self.device.index or 0] if self.device.type == "ltc" else None)

    _set(state, "default_device", property(adapted, doc=default_device.__doc__))
    _set(state, "_prepare_backend", _prepare_backend)
    _set(state, "set_device", adapted_set_device)
    _set(state, "wait_for_everyone", adapted_wait_for_everyone)


def _adapt_training_arguments(module) -> None:
    """They have a list of their own beside accelerate's, and agree with it where the list ends."""
    arguments = module.TrainingArguments
    set_up = arguments.__dict__["_setup_devices"].func

    def _setup_devices(self):
        device, state = set_up(self), self.distributed_state
        return state.device if device.type == "cpu" and state is not None and state.device.type == "ltc" else device

    adapted = functools.cached_property(_setup_devices)
    adapted.__set_name__(arguments, "_setup_devices")
    _set(arguments, "_setup_devices", adapted)


def _adapt_transformers(module) -> None:
    """``TrainingArguments`` refuse bf16 without an accelerator that they know."""
    original = module.is_torch_bf16_gpu_available

    @functools.wraps(original)
    def is_torch_bf16_gpu_available():
        return original() or torch.ltc.is_available()

    _replace(module, "is_torch_bf16_gpu_available", is_torch_bf16_gpu_available)


_ADAPTERS = {
    "safetensors": _adapt_safetensors,
    "accelerate.state": _adapt_accelerate,
    "transformers.training_args": _adapt_training_arguments,
    "transformers.utils.import_utils": _adapt_transformers,
}
