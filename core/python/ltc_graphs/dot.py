"""The DOT language of Graphviz."""

from collections.abc import Iterator

from .graph import Graph, Node

STYLE = {"p": "shape=ellipse, fillcolor=lightyellow", "n": "shape=box, fillcolor=aliceblue", "o": "shape=ellipse, fillcolor=honeydew"}


def write(graph: Graph) -> bytes:
    """Params are ``p`` with their value, nodes ``n`` and outputs ``o`` with their position."""
    lines = ["digraph {", '  node [fontname="sans-serif", fontsize=10, style=filled]', '  edge [fontname="sans-serif", fontsize=8]']
    lines += (_place(f"p{param.value}", param.type, [f"%{param.value}", param.type]) for param in graph.params)
    for i, node in enumerate(graph.nodes):
        lines.append(_place(f"n{i}", node.line, label(node)))
        lines += (_edge(graph, value, f"n{i}") for value in node.inputs if value is not None)
    for i, value in enumerate(graph.outputs):
        if value is not None:
            lines += [_place(f"o{i}", "", [f"output {i}"]), _edge(graph, value, f"o{i}")]
    return "\n".join([*lines, "}", ""]).encode()


def label(node: Node) -> Iterator[str]:
    """Lines of a text of moderate size."""
    yield node.op
    if node.attributes:
        yield node.attributes if len(node.attributes) <= 60 else f"{node.attributes[:57]}..."
    if node.line:
        yield node.line.rpartition("/")[2]


def _place(name: str, tooltip: str, lines) -> str:
    return f"  {name} [label={_quoted(*lines)}, tooltip={_quoted(tooltip)}, {STYLE[name[0]]}]"


def _edge(graph: Graph, value: int, target: str) -> str:
    source = f"n{graph.makers[value][0]}" if value in graph.makers else f"p{value}"
    return f"  {source} -> {target} [label={_quoted(graph.types[value])}]"


def _quoted(*lines: str) -> str:
    """A string of DOT, in which a backslash begins an escape."""
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'
