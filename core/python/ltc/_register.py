"""Registration of the device with PyTorch."""

import atexit
import functools
import os
import warnings

import torch

from . import _C, _data_parallel, _device_module, _integrations, _sharing, _sparse_optimizers


def register() -> None:
    """Name the device, give it ``torch.ltc`` and the tensor methods. Idempotent."""
    if hasattr(torch, "ltc"):
        return
    torch.utils.rename_privateuse1_backend("ltc")
    _C.register_device()
    _C.make_device_type_fast()
    _C.make_operators_fast()
    _C.make_releases_fast()
    _C.make_sends_fast()
    _C.heed_signals()
    _C.record_source_lines([os.path.dirname(torch.__file__), os.path.dirname(__file__)])
    torch._register_device_module("ltc", _device_module)
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    _sharing.install()
    _data_parallel.install()
    _sparse_optimizers.install()
    _compile_graphs_of_the_device()
    _accumulate_as_the_cpu()
    _run_backward_straight()
    _make_labels_fast()
    _print_on_the_cpu()
    _refuse_byteswap()
    if _C.adapts_libraries():
        _integrations.install()
    atexit.register(_C.end_process)


_NOT_INDUCTOR = (
    'graphs on device ltc are compiled by the backend "ltc": TorchInductor, the default of torch.compile, generates no code for the '
    'device. torch.compile(..., backend="ltc") says so without this warning'
)


def _compile_graphs_of_the_device() -> None:
    """TorchInductor, the default of ``torch.compile``, generates no code for this device: its graphs go to the backend ``ltc``."""
    compile_graph = torch._TorchCompileInductorWrapper.__call__

    @functools.wraps(compile_graph)
    def __call__(self, graph, inputs, **kwargs):
        from . import _compile  # brings TorchDynamo, which is long to import

        if not _compile.is_of_the_device(graph, inputs):
            return compile_graph(self, graph, inputs, **kwargs)
        _warn_once(_NOT_INDUCTOR)
        return _compile.backend(graph, inputs)

    torch._TorchCompileInductorWrapper.__call__ = __call__


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def _accumulate_as_the_cpu() -> None:
    """``linear_cross_entropy`` in chunks accumulates half types in float on the CPU and on CUDA, in themselves on all others."""
    module = getattr(torch.nn.modules, "linear_cross_entropy_options", None)
    if module is None:  # PyTorch is older than that function
        return
    options = module.LinearCrossEntropyOptions
    adjust = options._adjust

    @functools.wraps(adjust)
    def _adjust(self, num_batches, in_features, num_classes, dtype, device=None):
        if device is not None and device.type == "ltc":
            device = torch.device("cpu")
        return adjust(self, num_batches, in_features, num_classes, dtype, device)

    options._adjust = _adjust


def _run_backward_straight() -> None:
    """``backward()`` of the device's tensors goes through the core first; everything else of the engine is PyTorch's."""
    variable = torch.autograd.Variable
    engine = variable._execution_engine

    class Engine(type(engine)):
        run_backward = _C.around_run_backward(engine.run_backward)

    variable._execution_engine = Engine()


def _make_labels_fast() -> None:
    """``record_function``, which every optimizer puts around its steps, costs little where no profiler sees it."""
    ops = torch.ops.profiler
    enter, leave = getattr(ops, "_record_function_enter_new", None), getattr(ops, "_record_function_exit", None)
    leave = getattr(leave, "_RecordFunction", None)
    if enter is not None and leave is not None:
        _C.make_labels_fast(enter._op, leave._op)


def _print_on_the_cpu() -> None:
    """Printing a tensor reads it once. PyTorch looks at the values to choose a format, with ops whose sizes depend on them."""
    module = torch._tensor_str
    to_text = module._tensor_str

    @functools.wraps(to_text)
    def _tensor_str(self, indent):
        return to_text(self.detach().cpu() if self.device.type == "ltc" else self, indent)

    module._tensor_str = _tensor_str


def _refuse_byteswap() -> None:
    """``UntypedStorage.byteswap`` writes through the storage's address, which is no memory on the device."""
    swap = torch.UntypedStorage._byteswap

    @functools.wraps(swap)
    def _byteswap(self, *args, **kwargs):
        if self.device.type == "ltc":
            raise NotImplementedError("byteswap of a storage on device ltc: swap the bytes of a copy, storage.cpu()")
        return swap(self, *args, **kwargs)

    torch.UntypedStorage._byteswap = _byteswap
