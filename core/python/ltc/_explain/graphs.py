"""The text form of graphs (core/ir/text.h), read into arrays for the page, and the nodes that two graphs share."""

import re
from collections import Counter
from difflib import SequenceMatcher

_PARAM = re.compile(r"%(\d+): (\w+(?:\[[^\]]*\])?)( scalar)?(?: -> (\d+))?")
_NODE = re.compile(r'  (.*?) ?= ([^\s(]+)\(([^)]*)\)(?: \{((?:"(?:\\.|[^"\\])*"|[^"}])*)\})?(?:  # (.*))?')
_RESULT = re.compile(r"%(\d+): (\w+\[[^\]]*\])|_")
_VALUE = re.compile(r"%(\d+)")
ALIKE = 0.5  # share of ops that two programs must have in common to be compared


class Strings:
    """A number for each string, the same one for equal strings; 0 is the empty one."""

    def __init__(self):
        self.all = [""]
        self._numbers = {"": 0}

    def __call__(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.all))
        if number == len(self.all):
            self.all.append(text)
        return number

    def forget(self, known: int) -> None:
        """All behind the first `known` ones."""
        for text in self.all[known:]:
            del self._numbers[text]
        del self.all[known:]

    def copy(self) -> "Strings":
        other = Strings()
        other.all, other._numbers = list(self.all), dict(self._numbers)
        return other


def parse(text: str, strings: Strings) -> dict:
    """``params``: [value, type, output that it becomes or -1] of each, ``nodes``: [op, line, attributes, inputs, [value, type, ...]] of
    each, ``outputs``: values. Values are those of the text, -1 for a result that nothing reads; types, ops, lines and attributes are numbers
    of strings. Raises ValueError."""
    head, _, body = text.partition("\n")
    if not head.startswith("graph("):
        raise ValueError(f"no graph begins with {head[:80]!r}")
    params = [[int(value), strings(kind + scalar), int(alias or -1)] for value, kind, scalar, alias in _PARAM.findall(head)]
    nodes: list[list] = []
    outputs: list[int] = []
    for line in body.splitlines():
        if line.startswith("  return"):
            outputs = [int(value) for value in _VALUE.findall(line)]
        elif match := _NODE.fullmatch(line):
            results, op, inputs, attributes, where = match.groups()
            pairs = [number for value, kind in _RESULT.findall(results) for number in (int(value or -1), strings(kind))]
            nodes.append([strings(op), strings(where or ""), strings(attributes or ""), [int(v) for v in _VALUE.findall(inputs)], pairs])
        elif line.strip() not in ("", "}"):
            raise ValueError(f"this is no node of a graph: {line[:80]!r}")
    return {"params": params, "nodes": nodes, "outputs": outputs}


def ops(graph: dict, strings: Strings) -> list[str]:
    return [strings.all[node[0]] for node in graph["nodes"]]


def likeness(some: list[str], others: list[str]) -> float:
    """The share of ops in common, without their order: 1 for the same ops."""
    both = sum((Counter(some) & Counter(others)).values())
    return 2 * both / max(len(some) + len(others), 1)


def pair(some: list, others: list) -> list[int]:
    """For each item, the position of the same one in `others`, in order, or -1."""
    found = [-1] * len(some)
    same = 0
    while same < min(len(some), len(others)) and some[same] == others[same]:
        found[same] = same
        same += 1
    rest, other_rest = some[same:], others[same:]
    for block in SequenceMatcher(None, rest, other_rest, autojunk=False).get_matching_blocks():
        for i in range(block.size):
            found[same + block.a + i] = same + block.b + i
    return found
