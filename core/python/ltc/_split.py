"""A compiled graph in two: what the CPU computes at each call, and what is captured for the device."""

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

# Their results follow from a tensor's geometry, which is known for an argument without the device.
_GEOMETRY = {
    "size", "stride", "dim", "numel", "storage_offset",
    torch.ops.aten.sym_size.int, torch.ops.aten.sym_stride.int, torch.ops.aten.sym_numel.default,
    torch.ops.aten.sym_storage_offset.default,
}  # fmt: skip


def tensors_of(node: Node) -> list:
    return [value for value in _values(node) if isinstance(value, torch.Tensor)]


def _values(node):
    return pytree.tree_leaves(node.meta.get("val", node.meta.get("example_value")))


def _is_number(node) -> bool:
    return any(isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) for value in _values(node))


def _is_on_device(node) -> bool:
    return any(tensor.device.type == "ltc" for tensor in tensors_of(node))


class Split:
    """The two graphs. All that needs no tensor of the device is the host's: numbers, and tensors such as an optimizer's counters.

    host               takes what the whole graph takes. Gives first what `device` takes from it, then results of the whole; None if
                       there is nothing to compute.
    device             takes arguments of the whole, `taken` says which, then what `host` gives for it
    computes_elsewhere `device` makes tensors of another device
    computes_numbers   `device` makes numbers of those that it is given
    """

    def __init__(self, graph: GraphModule):
        nodes = list(graph.graph.nodes)
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._on_host = {node for node in self._inputs if not _is_on_device(node)}
        for node in nodes:
            if node.op.startswith("call_") and self._is_for_host(node):
                self._on_host.add(node)
        calls = [node for node in nodes if node.op.startswith("call_")]
        of_device = [node for node in calls if node not in self._on_host]
        self.computes_elsewhere = any(tensor.device.type != "ltc" for node in of_device for tensor in tensors_of(node))
        self.computes_numbers = any(_is_number(node) and any(map(_is_number, node.all_input_nodes)) for node in of_device)
        self.host, self.device = None, graph
        if len(of_device) < len(calls) and not self.computes_elsewhere:
            self._build(graph, nodes)

    def _is_for_host(self, node) -> bool:
        needed = node.all_input_nodes
        if node.target in _GEOMETRY and needed[0].op == "placeholder":
            needed = needed[1:]
        elif not needed or _is_on_device(node):
            return False
        return all(other in self._on_host for other in needed)

    def _build(self, graph, nodes) -> None:
        host, device = Graph(), Graph()
        on_host = {node: host.placeholder(node.name) for node in self._inputs}
        self.taken = [i for i, node in enumerate(self._inputs) if node not in self._on_host]
        on_device = {self._inputs[i]: device.placeholder(self._inputs[i].name) for i in self.taken}
        uploaded, current = [], set()  # what the device takes from the host; of which values it has the latest

        def upload(node):
            """The node of the device's graph for a value. The host may write a tensor later, so the node has its contents of now."""
            if node in self._on_host and node not in current:
                uploaded.append(host.call_method("clone", (on_host[node],)) if tensors_of(node) else on_host[node])
                on_device[node] = device.placeholder(f"{node.name}_{len(uploaded)}")
                current.add(node)
            return on_device[node]

        for node in nodes:
            if node.op == "output":
                self._build_outputs(node.args[0], on_host, on_device, host, device, uploaded)
            elif node.op != "placeholder" and node in self._on_host:
                on_host[node] = host.node_copy(node, on_host.__getitem__)
                current.clear()
            elif node.op != "placeholder":
                on_device[node] = device.node_copy(node, upload)
        self.host, self.device = GraphModule(graph, host), GraphModule(graph, device)

    def _build_outputs(self, results, on_host, on_device, host, device, uploaded) -> None:
        """`_results`: of each, which graph gives it and where; or the constant that it is."""
        of_host, of_device, self._results = [], [], []
        for result in results:
            if not isinstance(result, Node):
                self._results.append((None, result))
            elif result in self._on_host:
                self._results.append((True, len(uploaded) + len(of_host)))
                of_host.append(on_host[result])
            else:
                self._results.append((False, len(of_device)))
                of_device.append(on_device[result])
        self._uploaded = len(uploaded)
        host.output(tuple(uploaded + of_host))
        device.output(tuple(of_device))

    def call(self, captured, args: list) -> list:
        """The whole, of which `captured` is the device's part."""
        by_host = self.host(*args)
        by_device = captured([args[i] for i in self.taken] + list(by_host[:self._uploaded]))
        args.clear()
        return [place if of_host is None else (by_host if of_host else by_device)[place] for of_host, place in self._results]
