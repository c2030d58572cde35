"""How two graphs differ: their nodes, params and outputs. Another line, or another order of nodes that do not depend on each other, is no
difference."""

from dataclasses import dataclass, field
from itertools import zip_longest

from .graph import Graph, Node
from .match import Match

MOST_LINES = 40  # of the text
WIDTH = 160


@dataclass
class Change:
    """The changes of a node that both have. `what` has two texts for each name: "dim", "type 0", "input 1"."""

    node: int
    other: int
    what: dict[str, tuple[str, str]] = field(default_factory=dict)


class Differences:
    """``only_a``, ``only_b``: positions of nodes. ``params``, ``outputs``: sentences."""

    def __init__(self, a: Graph, b: Graph):
        self.a, self.b, self.match = a, b, Match(a, b)
        pairs = self.match.nodes
        taken = set(pairs.values())
        self.only_a = [i for i in range(len(a.nodes)) if i not in pairs]
        self.only_b = [k for k in range(len(b.nodes)) if k not in taken]
        self.changed = [change for i, k in sorted(pairs.items()) if (change := self._change(i, k)).what]
        self.moved_lines = sum(a.nodes[i].line != b.nodes[k].line for i, k in pairs.items())
        self.params = self._params()
        self.outputs = self._outputs()

    def __bool__(self) -> bool:
        return bool(self.only_a or self.only_b or self.changed or self.params or self.outputs)

    def to_dict(self) -> dict:
        return {
            "nodes": [len(self.a.nodes), len(self.b.nodes)],
            "only_a": [_facts(self.a, i) for i in self.only_a], "only_b": [_facts(self.b, k) for k in self.only_b],
            "changed": [{"a": _facts(self.a, change.node), "b": _facts(self.b, change.other), "what": change.what} for change in self.changed],
            "params": self.params, "outputs": self.outputs, "moved_lines": self.moved_lines,
        }  # fmt: skip

    def text(self, most: int = MOST_LINES) -> list[str]:
        """At most so many lines: counts, then "-" for what only `a` has, "+" for `b`, "~" for what changed, in the order of the program."""
        counts = [(len(self.only_a), "only in A"), (len(self.only_b), "only in B"), (len(self.changed), "changed")]
        said = ", ".join(f"{count} {what}" for count, what in counts if count) or "none differs"
        lines = [f"A has {len(self.a.nodes)} nodes, B {len(self.b.nodes)}: {said}"]
        if self.moved_lines:
            lines.append(f"{self.moved_lines} nodes come from another line of the program, which makes no difference")
        lines += [*self.params[:3], *self.outputs[:3]]
        entries = self._entries()
        room = most - len(lines)
        lines += entries if len(entries) <= room else [*entries[: room - 1], f"and {len(entries) - room + 1} more: --json has all"]
        return [cut(line) for line in lines]

    def _change(self, i: int, k: int) -> Change:
        node, other, change = self.a.nodes[i], self.b.nodes[k], Change(i, k)
        some, others = node.attribute_texts, other.attribute_texts
        for name in dict.fromkeys([*some, *others]):
            if some.get(name) != others.get(name):
                change.what[name] = some.get(name, "absent"), others.get(name, "absent")
        for slot, (kind, other_kind) in enumerate(zip_longest(node.types, other.types)):
            if kind != other_kind:
                change.what[f"type {slot}" if len(node.types) > 1 else "type"] = kind or "unused", other_kind or "unused"
        for slot, (value, other_value) in enumerate(zip_longest(node.inputs, other.inputs)):
            if self.match.of(value) != other_value:
                change.what[f"input {slot}"] = described(self.a, value), described(self.b, other_value)
        return change

    def _params(self) -> list[str]:
        pairs = self.match.params
        taken = set(pairs.values())
        others = {param.value: param for param in self.b.params}
        said = []
        only_a = [param for param in self.a.params if param.value not in pairs]
        only_b = [param for param in self.b.params if param.value not in taken]
        for name, rest in ("A", only_a), ("B", only_b):
            if rest:
                kinds = list(dict.fromkeys(param.type for param in rest))
                said.append(f"only {name} has {_count(len(rest), 'param')}: {', '.join(kinds[:5])}{', ...' if len(kinds) > 5 else ''}")
        changed = [(param, others[pairs[param.value]]) for param in self.a.params if param.value in pairs]
        types = [(param.type, other.type) for param, other in changed if param.type != other.type]
        if types:
            said.append(f"{_count(len(types), 'param')} of another type, first {types[0][0]} -> {types[0][1]}")
        if aliases := sum((param.alias is None) != (other.alias is None) for param, other in changed):
            said.append(f"{_count(aliases, 'param')} that may become an output in one of the two only")
        return said

    def _outputs(self) -> list[str]:
        own, others = [self.match.of(value) for value in self.a.outputs], self.b.outputs
        gone = [value for value, other in zip(self.a.outputs, own, strict=True) if other not in set(others)]
        new = [other for other in others if other not in set(own)]
        said = [f"only {name} has {_count(len(rest), 'output')}, first {described(graph, rest[0])}"
                for name, graph, rest in (("A", self.a, gone), ("B", self.b, new)) if rest]  # fmt: skip
        return said or (["the outputs are in another order"] if own != list(others) else [])

    def _entries(self) -> list[str]:
        """A line for all nodes that differ in the same way, where the first of them is."""
        place, places = -1, []  # of each node of `a`, in `b`
        for i in range(len(self.a.nodes)):
            place = self.match.nodes.get(i, place)
            places.append(place)
        found = [((places[i], 1, i), "-", self.a.nodes[i], ()) for i in self.only_a]
        found += [((k, 2, k), "+", self.b.nodes[k], ()) for k in self.only_b]
        found += [((change.other, 0, 0), "~", self.b.nodes[change.other], tuple(change.what.items())) for change in self.changed]
        groups: dict[tuple, list[Node]] = {}
        for _, sign, node, what in sorted(found, key=lambda one: one[0]):
            groups.setdefault((sign, *(what or (node.op, node.line))), []).append(node)
        return [_entry(key[0], nodes, key[1:] if key[0] == "~" else ()) for key, nodes in groups.items()]


def _entry(sign: str, nodes: list[Node], what) -> str:
    node = nodes[0]
    count = f"{len(nodes)}x " if len(nodes) > 1 else ""
    if sign == "~":
        said = "; ".join(f"{name} {before} -> {after}" for name, (before, after) in what)
        return f"~ {count}{'first ' if count else ''}{node.op}{_at(node)}: {said}"
    attributes = f" {{{node.attributes}}}" if node.attributes and not count else ""
    types = "" if count else f" {', '.join(filter(None, node.types))}"
    return f"{sign} {count}{node.op}{attributes}{types}{_at(node)}"


def described(graph: Graph, value: int | None) -> str:
    if value is None:
        return "none"
    if value in graph.makers:
        node = graph.nodes[graph.makers[value][0]]
        return f"{node.op}{_at(node)}"
    return f"param {graph.types[value]}"


def cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def _at(node: Node) -> str:
    """The line with its last folder."""
    return f" at {'/'.join(node.line.split('/')[-2:])}" if node.line else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _facts(graph: Graph, i: int) -> dict:
    node = graph.nodes[i]
    return {"position": i, "op": node.op, "types": node.types, "attributes": node.attributes, "line": node.line}
