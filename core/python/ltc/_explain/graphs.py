"""The text form of graphs (core/ir/text.h), read into arrays for the page, and the nodes that two graphs share."""

from difflib import SequenceMatcher

from ltc_graphs.graph import read
from ltc_graphs.match import likeness

ALIKE = 0.5  # share of ops that two programs must have in common to be compared
MOST_MATCHED = 50  # programs of a run that are compared with those of another, the ones that ran longest


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
    params, *nodes, outputs = read(text)
    return {
        "params": [[int(value), strings(kind), int(alias or -1)] for value, kind, alias in params],
        "nodes": [[strings(op), strings(line), strings(attributes), [int(value) for value in inputs if value],
                   [number for value, kind in results for number in (int(value or -1), strings(kind))]]
                  for op, line, attributes, inputs, results in nodes],
        "outputs": [int(value) for value in outputs if value],
    }  # fmt: skip


def ops(graph: dict, strings: Strings) -> list[str]:
    return [strings.all[node[0]] for node in graph["nodes"]]


def most_alike(some: dict[int, tuple[list[str], ...]], others: dict[int, tuple[list[str], ...]]) -> dict[int, int]:
    """Pairs, the most alike first: by the first lists, then by the next ones. None below ``ALIKE`` by the first."""
    found = sorted(((*map(likeness, own, other), -i, -k) for i, own in some.items() for k, other in others.items()), reverse=True)
    pairs: dict[int, int] = {}
    for like, *_, i, k in found:
        if like >= ALIKE and -i not in pairs and -k not in pairs.values():
            pairs[-i] = -k
    return pairs


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
