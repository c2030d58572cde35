"""SVG, without another program: Graphviz takes minutes for a graph of some thousand nodes.

A node stands one row below the lowest of its inputs, and near the middle of its neighbours."""

from html import escape

from .dot import label
from .graph import Graph

LETTER, LINE, PADDING, GAP, ROW = 5.6, 12, 6, 14, 76  # sizes in pixels; ROW: from one row to the next
SWEEPS = 4
STYLE = """text{font:10px sans-serif;text-anchor:middle}rect{stroke:#567;fill:aliceblue}.p rect{fill:lightyellow}.o rect{fill:honeydew}
path{fill:none;stroke:#89a}"""


class _Box:
    def __init__(self, name: str, texts: list[str], tooltip: str):
        self.name, self.texts, self.tooltip = name, texts, tooltip
        self.width = LETTER * max(map(len, texts)) + 2 * PADDING
        self.height = LINE * len(texts) + PADDING
        self.above: list[tuple[_Box, str]] = []  # with the type of the value
        self.below: list[_Box] = []
        self.row, self.x = 0, 0.0  # of the middle


def write(graph: Graph) -> bytes:
    """Params are ``p`` with their value, nodes ``n`` and outputs ``o`` with their position."""
    boxes = _boxes(graph)
    _find_rows(boxes)
    width = _find_places(boxes)
    height = (max((box.row for box in boxes), default=0) + 1) * ROW
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}">',
             f"<style>{STYLE}</style>"]  # fmt: skip
    parts += (_edge(source, box, kind) for box in boxes for source, kind in box.above)
    return "\n".join([*parts, *map(_drawn, boxes), "</svg>", ""]).encode()


def _boxes(graph: Graph) -> list[_Box]:
    """From the first op to the last one, so that a box stands behind those above it."""
    places = {param.value: _Box(f"p{param.value}", [f"%{param.value}", param.type], "") for param in graph.params}
    boxes = list(places.values())

    def add(name: str, texts: list[str], tooltip: str, inputs) -> _Box:
        box = _Box(name, texts, tooltip)
        for value in inputs:
            if value is not None:
                box.above.append((places[value], graph.types[value]))
                places[value].below.append(box)
        boxes.append(box)
        return box

    for i, node in enumerate(graph.nodes):
        tooltip = "\n".join(filter(None, (node.op, node.attributes, ", ".join(filter(None, node.types)), node.line)))
        box = add(f"n{i}", list(label(node)), tooltip, node.inputs)
        places.update((value, box) for value in node.outputs if value is not None)
    for i, value in enumerate(graph.outputs):
        if value is not None:
            add(f"o{i}", [f"output {i}"], "", [value])
    return boxes


def _find_rows(boxes: list[_Box]) -> None:
    for box in boxes:
        box.row = max((source.row for source, _ in box.above), default=0) + 1
    for box in boxes:
        if not box.above and box.below:  # close to where it is read first
            box.row = min(user.row for user in box.below) - 1


def _find_places(boxes: list[_Box]) -> float:
    """Returns the width of the picture."""
    rows: dict[int, list[_Box]] = {}
    for box in boxes:
        rows.setdefault(box.row, []).append(box)
    for row in rows.values():
        _spread(row)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for number in sorted(rows, reverse=not downwards):
            for box in rows[number]:
                near = [source.x for source, _ in box.above] if downwards else [user.x for user in box.below]
                near = near or [user.x for user in box.below]
                box.x = sum(near) / len(near) if near else box.x
            _spread(sorted(rows[number], key=lambda box: box.x))
    left = min((box.x - box.width / 2 for box in boxes), default=0) - GAP
    for box in boxes:
        box.x -= left
    return max((box.x + box.width / 2 for box in boxes), default=0) + GAP


def _spread(row: list[_Box]) -> None:
    """Moves boxes apart that overlap, in their order; the middle of the row stays."""
    before = sum(box.x for box in row)
    end = float("-inf")
    for box in row:
        box.x = max(box.x, end + GAP + box.width / 2)
        end = box.x + box.width / 2
    shift = (sum(box.x for box in row) - before) / len(row)
    for box in row:
        box.x -= shift


def _edge(source: _Box, box: _Box, kind: str) -> str:
    begin, end = (source.row * ROW + source.height, box.row * ROW)
    bend = min((end - begin) / 2, ROW)
    path = f"M{source.x:.0f} {begin}C{source.x:.0f} {begin + bend:.0f} {box.x:.0f} {end - bend:.0f} {box.x:.0f} {end}"
    return f'<path class="{source.name} {box.name}" d="{path}"><title>{escape(kind)}</title></path>'


def _drawn(box: _Box) -> str:
    x, y = box.x - box.width / 2, box.row * ROW
    texts = "".join(f'<text x="{box.x:.0f}" y="{y + LINE * (i + 1)}">{escape(text)}</text>' for i, text in enumerate(box.texts))
    title = f"<title>{escape(box.tooltip)}</title>" if box.tooltip else ""
    return (f'<g id="{box.name}" class="{box.name[0]}">{title}<rect x="{x:.0f}" y="{y}" width="{box.width:.0f}" height="{box.height}" rx="3"/>'
            f"{texts}</g>")
