"""Functions of PyTorch that treat every device but a few alike, where this one needs something else. One function for each patch."""

import functools
import warnings

import torch

from .replacements import Replacement

_NOT_INDUCTOR = (
    'graphs on device ltc are compiled by the backend "ltc": TorchInductor, the default of torch.compile, generates no code for the '
    'device. torch.compile(..., backend="ltc") says so without this warning'
)


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def inductor() -> list[Replacement]:
    """TorchInductor, the default of ``torch.compile``, generates no code for this device: its graphs go to the backend ``ltc``."""

    def around(compile_graph):
        @functools.wraps(compile_graph)
        def __call__(self, graph, inputs, **kwargs):
            from .. import _compile  # brings TorchDynamo, which is long to import

            if not _compile.is_of_the_device(graph, inputs):
                return compile_graph(self, graph, inputs, **kwargs)
            _warn_once(_NOT_INDUCTOR)
            return _compile.backend(graph, inputs)

        return __call__

    return [Replacement(torch._TorchCompileInductorWrapper, "__call__", around)]


def linear_cross_entropy() -> list[Replacement]:
    """``linear_cross_entropy`` in chunks sums half types in float on the CPU and on CUDA, in themselves on all other devices."""

    def around(adjust):
        @functools.wraps(adjust)
        def _adjust(self, num_batches, in_features, num_classes, dtype, device=None, **target):
            if device is not None and device.type == "ltc":
                device = torch.device("cpu")
            return adjust(self, num_batches, in_features, num_classes, dtype, device, **target)

        return _adjust

    options = torch.nn.modules.linear_cross_entropy_options.LinearCrossEntropyOptions
    known = "self num_batches in_features num_classes dtype device"
    return [Replacement(options, "_adjust", around, f"{known}|{known} prob_target")]


def memory_snapshot() -> list[Replacement]:
    """``torch.accelerator.memory._snapshot`` asks the module of CUDA, or of XPU, whatever the accelerator is."""

    def around(snapshot):
        @functools.wraps(snapshot)
        def _snapshot(device=None, augment_with_fx_traces=False):
            accelerator = torch.accelerator.current_accelerator()
            take = torch.ltc.memory._snapshot if accelerator and accelerator.type == "ltc" else snapshot
            return take(device, augment_with_fx_traces)

        return _snapshot

    return [Replacement(torch.accelerator.memory, "_snapshot", around, "device augment_with_fx_traces")]


def printing() -> list[Replacement]:
    """PyTorch looks at the values to choose a format, with ops whose sizes depend on them."""

    def around(to_text):
        @functools.wraps(to_text)
        def _tensor_str(self, indent):
            return to_text(self.detach().cpu() if self.device.type == "ltc" else self, indent)

        return _tensor_str

    return [Replacement(torch._tensor_str, "_tensor_str", around, "self indent")]


def byteswap() -> list[Replacement]:
    """``UntypedStorage.byteswap`` writes through the storage's address, which is no memory on the device."""

    def around(swap):
        @functools.wraps(swap)
        def _byteswap(self, *args, **kwargs):
            if self.device.type == "ltc":
                raise NotImplementedError("byteswap of a storage on device ltc: swap the bytes of a copy, storage.cpu()")
            return swap(self, *args, **kwargs)

        return _byteswap

    return [Replacement(torch.UntypedStorage, "_byteswap", around)]
