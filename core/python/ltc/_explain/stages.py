"""The graphs of a program before and after each pass, each as its differences from the next one."""

from .graphs import Strings, pair, parse


def differences(stages: list[dict], final: dict, strings: Strings) -> list[dict]:
    """``name``, ``nodes``, ``params`` and ``outputs`` of each of `stages`, in their order. `final`: the graph behind the last one.

    ``nodes`` has [first, count] for nodes that the next graph has too, and a node as :func:`parse` gives it for each other one. Behind its
    values, such a node has the position of its changed form in the next graph, or -1. Values have the numbers of `final`, or higher
    ones. Where ``params`` and ``outputs`` are None, they are those of the next graph."""
    made: list[dict] = []
    later, unused = final, _highest(final) + 1
    for stage in reversed(stages):
        graph = parse(stage["graph"], strings)
        found = pair(_keys(graph), _keys(later))
        unused = _rename(graph, later, found, unused)
        made.append({"name": strings(stage["name"]), "nodes": _rest(graph["nodes"], later["nodes"], found),
                     **{part: graph[part] if graph[part] != later[part] else None for part in ("params", "outputs")}})  # fmt: skip
        later = graph
    return made[::-1]


def in_full(stage: dict, later: list[list]) -> list[list]:
    """All nodes of a stage that :func:`differences` gives. `later`: those of the next one."""
    return [node for item in stage["nodes"] for node in (later[item[0] : sum(item)] if len(item) == 2 else [item[:5]])]


def _keys(graph: dict) -> list[tuple]:
    return [(op, line) for op, line, *_ in graph["nodes"]]


def _highest(graph: dict) -> int:
    return max([0, *(param[0] for param in graph["params"]), *(value for node in graph["nodes"] for value in node[4][::2])])


def _rename(graph: dict, later: dict, found: list[int], unused: int) -> int:
    """Gives values the numbers of their counterparts, and numbers from `unused` on to others. Returns the first number left."""
    numbers: dict[int, int] = {}

    def number(value: int, counterpart: int = -1) -> int:
        nonlocal unused
        if value >= 0 and value not in numbers:
            numbers[value] = unused if counterpart < 0 else counterpart
            unused += counterpart < 0
        return numbers.get(value, -1)

    counterparts = [param[0] for param in later["params"]] if len(later["params"]) == len(graph["params"]) else []
    for i, param in enumerate(graph["params"]):
        param[0] = number(param[0], counterparts[i] if counterparts else -1)
    for node, position in zip(graph["nodes"], found, strict=True):
        node[3] = [number(value) for value in node[3]]
        same = later["nodes"][position][4] if position >= 0 else []
        for k in range(0, len(node[4]), 2):
            node[4][k] = number(node[4][k], same[k] if k < len(same) else -1)
    graph["outputs"] = [number(value) for value in graph["outputs"]]
    return unused


def _rest(nodes: list[list], later: list[list], found: list[int]) -> list[list]:
    rest: list[list] = []
    for node, position in zip(nodes, found, strict=True):
        if position < 0 or node != later[position]:
            rest.append([*node, position])
        elif rest and len(rest[-1]) == 2 and sum(rest[-1]) == position:
            rest[-1][1] += 1
        else:
            rest.append([position, 1])
    return rest
