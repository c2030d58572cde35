"""The text form of graphs (core/ir/text.h) as Python objects."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_STRING = r'"(?:\\.|[^"\\])*"'
_PARAM = re.compile(r"%(\d+): (\w+(?:\[[^\]]*\])?)( scalar)?(?: -> (\d+))?")
_NODE = re.compile(rf"  (.*?) ?= ([^\s(]+)\(([^)]*)\)(?: \{{((?:{_STRING}|[^\"}}])*)\}})?(?:  # (.*))?")
_RESULT = re.compile(r"%(\d+): (\w+\[[^\]]*\])|_")
_VALUE = re.compile(r"%(\d+)|none")
_ATTRIBUTE = re.compile(rf"(\w+)=((?:{_STRING}|\w*\[(?:{_STRING}|[^\]\"])*\]|[^,\"\[])+)")
_TYPE = re.compile(r"(\w+)(?:\[([\d,]*)(?:;([\d,-]*))?\])?")


@dataclass(frozen=True)
class Param:
    value: int
    type: str  # "f32[2,3]", or "f64 scalar"
    alias: int | None  # the output that it may become


@dataclass(frozen=True)
class Node:
    op: str
    inputs: tuple[int | None, ...]  # values; None is an operand that is left out
    outputs: tuple[int | None, ...]  # None is a result that nobody reads
    types: tuple[str | None, ...]  # of the outputs
    attributes: str  # "dim=0, keepdim=false"
    line: str  # "train.py:31 (in its backward)"; may be empty

    @cached_property
    def attribute_texts(self) -> dict[str, str]:
        return dict(_ATTRIBUTE.findall(self.attributes))


@dataclass(frozen=True)
class Graph:
    params: tuple[Param, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int | None, ...]  # values; None is an output that is left out

    @cached_property
    def types(self) -> dict[int, str]:
        """By value."""
        results = ((value, kind) for node in self.nodes for value, kind in zip(node.outputs, node.types, strict=True) if value is not None)
        return {**{param.value: param.type for param in self.params}, **dict(results)}

    @cached_property
    def makers(self) -> dict[int, tuple[int, int]]:
        """By value: the position of the node that makes it, and which of its outputs it is. Params are not there."""
        return {value: (i, k) for i, node in enumerate(self.nodes) for k, value in enumerate(node.outputs) if value is not None}


def read(text: str) -> Iterator[tuple]:
    """The text in pieces: the list of params as (value, type, alias or ""), then (op, line, attributes, inputs, [(value, type), ...]) of each
    node, and last the list of outputs. A value is a string of digits, empty for none. Raises ValueError."""
    head, _, body = text.partition("\n")
    if not head.startswith("graph("):
        raise ValueError(f"no graph begins with {head[:80]!r}")
    yield [(value, kind + scalar, alias) for value, kind, scalar, alias in _PARAM.findall(head)]
    outputs: list[str] = []
    for line in body.splitlines():
        if line.startswith("  return"):
            outputs = _VALUE.findall(line)
        elif match := _NODE.fullmatch(line):
            results, op, inputs, attributes, where = match.groups()
            yield op, where or "", attributes or "", _VALUE.findall(inputs), _RESULT.findall(results)
        elif line.strip() not in ("", "}"):
            raise ValueError(f"this is no node of a graph: {line[:80]!r}")
    yield outputs


def parse(text: str) -> Graph:
    """Raises ValueError."""
    params, *nodes, outputs = read(text)
    return Graph(
        tuple(Param(int(value), kind, int(alias) if alias else None) for value, kind, alias in params),
        tuple(Node(op, _numbers(inputs), _numbers(value for value, _ in results), tuple(kind or None for _, kind in results), attributes, line)
              for op, line, attributes, inputs, results in nodes),
        _numbers(outputs),
    )  # fmt: skip


def _numbers(values) -> tuple[int | None, ...]:
    return tuple(int(value) if value else None for value in values)


def split_type(kind: str) -> tuple[str, list[int], list[int] | None]:
    """dtype, sizes, and strides where they are not row-major."""
    dtype, sizes, strides = _TYPE.match(kind).groups()
    return dtype, _ints(sizes), _ints(strides) if strides is not None else None


def _ints(text: str | None) -> list[int]:
    return [int(number) for number in (text or "").split(",") if number]
