"""Which nodes and params of two graphs are the same ones. Numbers of values do not matter."""

from collections import Counter
from collections.abc import Container, Sequence
from difflib import SequenceMatcher

from .graph import Graph

ALIKE = 0.5  # share of nodes with the same line from which on lines tell nodes apart


class Match:
    """``nodes`` and ``params`` lead from nodes (by position) and params (by value) of `a` to those of `b`."""

    def __init__(self, a: Graph, b: Graph):
        self.a, self.b = a, b
        self.nodes: dict[int, int] = {}
        self.params: dict[int, int] = {}
        gaps = [(0, len(a.nodes), 0, len(b.nodes))]
        for keys in _histories, self._own_with_inputs, _own_with_lines, _own, _ops:
            some, others = keys(a), keys(b)
            if keys != _own_with_lines or likeness(some, others) >= ALIKE:
                gaps = [gap for span in gaps for gap in self._align(some, others, span)]
            self._match_params()
            self._propagate()
        self._match_params()

    def of(self, value: int | None) -> int | None:
        """The value of `b`; -1 if there is none. None is an operand that is left out."""
        if value is None:
            return None
        if value in self.a.makers:
            node, k = self.a.makers[value]
            outputs = self.b.nodes[self.nodes[node]].outputs if node in self.nodes else ()
            return outputs[k] if k < len(outputs) and outputs[k] is not None else -1
        return self.params.get(value, -1)

    def _align(self, some: Sequence, others: Sequence, span: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
        """Matches nodes with equal keys, in order. Returns the spans between them. A node whose key is None stays as it is."""
        begin, end, other_begin, other_end = span
        taken = self._taken
        own = [i for i in range(begin, end) if i not in self.nodes and some[i] is not None]
        other = [k for k in range(other_begin, other_end) if k not in taken and others[k] is not None]
        pairs = [(own[i], other[k]) for i, k in _common([some[i] for i in own], [others[k] for k in other])]
        self.nodes.update(pairs)
        gaps = []
        for i, k in [*pairs, (end, other_end)]:
            if begin < i and other_begin < k:
                gaps.append((begin, i, other_begin, k))
            begin, other_begin = i + 1, k + 1
        return gaps

    @property
    def _taken(self) -> set[int]:
        return set(self.nodes.values())

    def _match_params(self) -> None:
        """Params that matched nodes read in the same place, most often first, or that are returned in the same place."""
        uses: Counter = Counter()
        for i, k in self.nodes.items():
            uses.update(zip(self.a.nodes[i].inputs, self.b.nodes[k].inputs, strict=False))
        uses.update(zip(self.a.outputs, self.b.outputs, strict=False))
        own, others = {param.value for param in self.a.params}, {param.value for param in self.b.params}
        self.params = {}
        for (param, other), _ in uses.most_common():
            if param in own and other in others:
                own.discard(param)
                others.discard(other)
                self.params[param] = other

    def _propagate(self) -> None:
        """Matches nodes that compute the same from the same values, wherever they stand. Values that are made of unmatched params only are the
        same where they are made in the same way."""
        taken = self._taken
        made, other_made = _made_of_params(self.a, self.nodes, self.params), _made_of_params(self.b, taken, set(self.params.values()))
        free: dict[tuple, list[int]] = {}
        for k, node in enumerate(self.b.nodes):
            if k not in taken:
                free.setdefault((node.op, node.attributes, node.types, *(other_made.get(value, value) for value in node.inputs)), []).append(k)
        for i, node in enumerate(self.a.nodes):
            if i not in self.nodes and any(value not in made for value in node.inputs):
                key = node.op, node.attributes, node.types, *(made.get(value) or self.of(value) for value in node.inputs)
                if same := [k for k in free.get(key, ()) if k not in taken][:1]:
                    taken |= self._match_with_inputs(i, same[0], taken)

    def _match_with_inputs(self, node: int, other: int, taken: set[int]) -> set[int]:
        """Also the nodes that make their inputs, as far as they are not matched. Returns those of `b`."""
        todo, matched = [(node, other)], set()
        while todo:
            i, k = todo.pop()
            if i not in self.nodes and k not in taken | matched:
                self.nodes[i] = k
                matched.add(k)
                values = zip(self.a.nodes[i].inputs, self.b.nodes[k].inputs, strict=True)
                todo += [(self.a.makers[v][0], self.b.makers[w][0]) for v, w in values if v in self.a.makers and w in self.b.makers]
        return matched

    def _own_with_inputs(self, graph: Graph) -> list[tuple | None]:
        """With those inputs that are matched already: they tell equal layers of a model apart."""
        known = {value: other for value in self.a.types if (other := self.of(value)) != -1}
        if graph is self.b:
            known = {other: other for other in known.values()}
        return [(own, *(known.get(value) for value in node.inputs)) if any(value in known for value in node.inputs) else None
                for own, node in zip(_own(graph), graph.nodes, strict=True)]  # fmt: skip


def _made_of_params(graph: Graph, matched: Container[int], params: Container[int]) -> dict[int, tuple]:
    """How unmatched params, and values that unmatched nodes make of nothing else, are made."""
    made: dict[int, tuple] = {param.value: (hash(param.type),) for param in graph.params if param.value not in params}
    for i, node in enumerate(graph.nodes):
        if i not in matched and all(value in made for value in node.inputs):
            key = hash((node.op, node.attributes, node.types, *(made[value] for value in node.inputs)))
            made.update((value, (key, k)) for k, value in enumerate(node.outputs) if value is not None)
    return made


def _common(some: list, others: list) -> list[tuple[int, int]]:
    """Positions of equal items, in order."""
    begin, end, other_end = 0, len(some), len(others)
    while begin < min(end, other_end) and some[begin] == others[begin]:
        begin += 1
    while end > begin and other_end > begin and some[end - 1] == others[other_end - 1]:
        end, other_end = end - 1, other_end - 1
    blocks = SequenceMatcher(None, some[begin:end], others[begin:other_end], autojunk=False).get_matching_blocks()
    inner = [(begin + block.a + n, begin + block.b + n) for block in blocks for n in range(block.size)]
    return [*((i, i) for i in range(begin)), *inner, *((end + n, other_end + n) for n in range(len(some) - end))]


# ---- keys by which nodes are matched, the strictest first


def _histories(graph: Graph) -> list[int | None]:
    """All that a node is computed from. A param is known by its type and by the node that reads it first. Constants have no key: a program
    has many that are equal."""
    params = {param.value: hash(param.type) for param in graph.params}
    first = dict(params)
    for node, key in zip(graph.nodes, _hashed(graph, params), strict=True):
        for k, value in enumerate(node.inputs):
            if first.get(value) == params.get(value, 0):
                first[value] = hash((first[value], key, k))
    constants = _made_of_params(graph, (), [param.value for param in graph.params if not param.type.endswith(" scalar")])
    keys = _hashed(graph, {value: first[value] for value in params})
    return [key if any(value not in constants for value in node.inputs) else None for key, node in zip(keys, graph.nodes, strict=True)]


def _hashed(graph: Graph, params: dict[int, int]) -> list[int]:
    hashes, keys = dict(params), []
    for node, own in zip(graph.nodes, _own(graph), strict=True):
        keys.append(hash((own, *(hashes.get(value, 0) for value in node.inputs))))
        hashes.update((value, hash((keys[-1], k))) for k, value in enumerate(node.outputs) if value is not None)
    return keys


def _own_with_lines(graph: Graph) -> list[tuple]:
    return [(own, node.line) for own, node in zip(_own(graph), graph.nodes, strict=True)]


def _own(graph: Graph) -> list[int]:
    return [hash((node.op, node.attributes, node.types)) for node in graph.nodes]


def _ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def likeness(some: list, others: list) -> float:
    """The share of items in common, without their order: 1 for the same ones."""
    return 2 * sum((Counter(some) & Counter(others)).values()) / max(len(some) + len(others), 1)
