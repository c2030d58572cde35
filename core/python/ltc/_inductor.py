"""``torch.compile`` with its default backend: PyTorch's code generator has no code for this device, and what Dynamo captured need not
be generated, as the device compiles what it records. So such a graph runs as it is; one without this device is Inductor's as ever."""

import functools

import torch
import torch.utils._pytree


def install() -> None:
    wrapper = torch._TorchCompileInductorWrapper
    generate = wrapper.__call__

    @functools.wraps(generate)
    def __call__(self, module, inputs, **kwargs):
        return module.forward if _computes_here(module.graph) else generate(self, module, inputs, **kwargs)

    wrapper.__call__ = __call__


def _computes_here(graph) -> bool:
    return any(
        isinstance(value, torch.Tensor) and value.device.type == "ltc"
        for node in graph.nodes
        for value in torch.utils._pytree.tree_leaves(node.meta.get("example_value"))
    )
