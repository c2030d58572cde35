"""JSON of Google's Model Explorer: https://github.com/google-ai-edge/model-explorer. Its groups are Python files, and the lines in them."""

import json
import re

from .graph import Graph, Node, split_type

_LINE = re.compile(r"(.*):(\d+)( \(in its backward\))?")
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")


def write(graph: Graph) -> bytes:
    nodes = [_node(f"%{param.value}", "param", "params", graph, (param.value,), ()) for param in graph.params]
    nodes += [_node(str(i), node.op, _group(node), graph, node.outputs, node.inputs, {**node.attribute_texts, "line": node.line})
              for i, node in enumerate(graph.nodes)]  # fmt: skip
    nodes += [_node(f"output {i}", "output", "outputs", graph, (), (value,)) for i, value in enumerate(graph.outputs)]
    return json.dumps({"label": "ltc", "graphs": [{"id": "graph", "nodes": nodes}]}).encode()


def _group(node: Node) -> str:
    match = _LINE.fullmatch(node.line)
    if not match:
        return "no line"
    file, number, in_backward = match.groups()
    return f"{'backward' if in_backward else 'forward'}/{_PACKAGES.sub('', file).lstrip('/')}/line {number}"


def _node(name: str, label: str, group: str, graph: Graph, outputs, inputs, attributes=None) -> dict:
    """Slots without a value have no edge and no description."""
    return {
        "id": name, "label": label, "namespace": group, "attrs": _pairs(attributes or {}),
        "incomingEdges": [_edge(graph, value, k) for k, value in enumerate(inputs) if value is not None],
        "outputsMetadata": [{"id": str(k), "attrs": _pairs(_described(value, graph))} for k, value in enumerate(outputs) if value is not None],
    }  # fmt: skip


def _edge(graph: Graph, value: int, k: int) -> dict:
    source, output = graph.makers.get(value, (f"%{value}", 0))
    return {"sourceNodeId": str(source), "sourceNodeOutputId": str(output), "targetNodeInputId": str(k)}


def _described(value: int, graph: Graph) -> dict[str, str]:
    dtype, sizes, _ = split_type(graph.types[value])
    # "tensor_shape" and "__tensor_tag" are names that Model Explorer knows.
    return {"__tensor_tag": f"%{value}", "tensor_shape": f"{dtype}[{','.join(map(str, sizes))}]", "type": graph.types[value]}


def _pairs(texts: dict[str, str]) -> list[dict]:
    return [{"key": key, "value": text} for key, text in texts.items() if text]
