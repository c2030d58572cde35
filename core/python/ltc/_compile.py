"""``torch.compile(model, backend="ltc")``: graphs of TorchDynamo as programs of the device, without recording each call."""

import functools
import re
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch._guards import CompileContext

from . import _C
from ._captured import CapturedFunction, warn_uncaptured
from ._split import Split, tensors_of

_WRONG_DEVICE = (
    'torch.compile(backend="ltc") compiles for device ltc, and this graph has parameters on {}: '
    "move the model and its inputs there first, with .to('ltc')"
)
_ON_CPU = (
    'torch.compile(backend="ltc") was given a graph without a tensor on device ltc, which runs as it is, where its tensors are: '
    "move them to the device with .to('ltc') if that is not meant"
)


def backend(graph: torch.fx.GraphModule, inputs: list, **options):
    """The entry point for TorchDynamo. A graph without gradients is captured as it is; AOTAutograd makes two of one with them."""
    if options:
        raise ValueError(f'torch.compile(backend="ltc") has no options, but got {", ".join(options)}')
    device = _device_of(graph, inputs)
    if device is None:
        if any(True for _ in _tensors(graph, inputs)):
            warnings.warn(_ON_CPU, stacklevel=2)
        return graph.forward
    if torch.is_grad_enabled() and any(_needs_gradient(value) for value in _tensors(graph, inputs)):
        compile_graph = functools.partial(_compile, device)
        return aot_autograd(
            fw_compiler=compile_graph, bw_compiler=compile_graph, inference_compiler=compile_graph,
            partition_fn=default_partition, keep_inference_input_mutations=True,
        )(graph, inputs)  # fmt: skip
    compiled = _compile(device, graph, inputs)
    return compiled.entry() if isinstance(compiled, CapturedFunction) else lambda *args: compiled(list(args))


def _compile(device: int, graph: torch.fx.GraphModule, inputs: list):
    """A function of a list. The graph's own tensors become further arguments."""
    graph, constants = _lift_constants(graph)
    split = Split(graph)
    if split.computes_elsewhere:
        return _boxed(graph, constants)
    captured = CapturedFunction(lambda args: _Lines(split.device).run(*args), device, warn_uncaptured, split.computes_numbers)
    captured.compile_id = CompileContext.current_compile_id()
    if not constants and not split.host:
        return captured

    def call(args):
        args.extend(constants)
        return split.call(captured, args) if split.host else captured(args)

    call._boxed_call = True
    return call


def _boxed(graph: torch.fx.GraphModule, constants: list):
    def call(args):
        results = graph(*args, *constants)
        args.clear()
        return results

    call._boxed_call = True
    return call


class _Lines(torch.fx.Interpreter):
    """Runs a graph so that what is recorded has the lines of the program that the graph was made from."""

    def run(self, *args):
        try:
            return super().run(*args)
        finally:
            _C.set_known_line("")

    def run_node(self, node):
        _C.set_known_line(_line_of(node.stack_trace or ""))
        return super().run_node(node)


def _line_of(stack: str) -> str:
    """``train.py:31`` of the innermost line of a stack as fx keeps it."""
    found = re.findall(r'File "([^"]*)", line (\d+)', stack)
    return f"{found[-1][0].rpartition('/')[2]}:{found[-1][1]}" if found else ""


def _lift_constants(graph: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, list]:
    """The graph with inputs in the place of the tensors that it holds itself, and these tensors, in the order of those inputs, which
    come last: a capture reads nothing else."""
    held = {}
    for node in graph.graph.find_nodes(op="get_attr"):
        value = functools.reduce(getattr, node.target.split("."), graph)
        if isinstance(value, torch.Tensor):
            held.setdefault(node.target, value)
    if not held:
        return graph, []
    lifted, copies, inputs = torch.fx.Graph(), {}, {}
    for node in graph.graph.find_nodes(op="placeholder"):
        copies[node] = lifted.node_copy(node)
    for name in held:
        inputs[name] = lifted.placeholder("held_" + name.replace(".", "_"))
        inputs[name].meta["val"] = held[name]
    for node in graph.graph.nodes:
        if node.op == "get_attr" and node.target in held:
            copies[node] = inputs[node.target]
        elif node.op != "placeholder":
            copies[node] = lifted.node_copy(node, copies.__getitem__)
    return torch.fx.GraphModule(graph, lifted), list(held.values())


# ---- on which devices a graph computes


def _tensors(graph, inputs):
    yield from (value for value in inputs if isinstance(value, torch.Tensor))
    yield from graph.parameters()
    yield from graph.buffers()


def is_of_the_device(graph: torch.fx.GraphModule, inputs: list) -> bool:
    made = (tensor for node in graph.graph.nodes for tensor in tensors_of(node))
    return any(tensor.device.type == "ltc" for tensor in (*_tensors(graph, inputs), *made))


def _needs_gradient(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad


def _device_of(graph, inputs) -> int | None:
    """The ordinal of the one ltc device of a graph; None if it has none, and so is PyTorch's to run."""
    tensors = [*_tensors(graph, inputs), *(tensor for node in graph.graph.nodes for tensor in tensors_of(node))]
    ours = {tensor.device.index or 0 for tensor in tensors if tensor.device.type == "ltc"}
    if len(ours) > 1:
        raise RuntimeError(f'torch.compile(backend="ltc"): a graph computes on one device, this one on ltc:{sorted(ours)}')
    if not ours:
        held = {str(tensor.device) for tensor in tensors if tensor.requires_grad or isinstance(tensor, torch.nn.Parameter)}
        if held:
            raise RuntimeError(_WRONG_DEVICE.format(", ".join(sorted(held))))
    return next(iter(ours), None)
