"""How two saved reports differ: settings, times, counts, lines, programs and kernels. Another time is no difference."""

from collections.abc import Callable

from ltc_graphs.differences import Differences, cut
from ltc_graphs.graph import Graph, parse

from .costs import spent_in_programs
from .graphs import MOST_MATCHED, most_alike, pair
from .text import time_text

TIMED_KINDS = ("run", "wait", "import")  # of findings that are there or not by time alone
TIMED_COUNTERS = ("InterimRuns",)
MOST_ROWS = 12  # of a table
MOST_OF_A_GRAPH = 12  # lines


class RunDifferences:
    """``facts`` and ``counters``: by name, what A has and what B has, where they differ. ``times_ms``: of both, all. ``lines``: findings of
    both, None where one lacks it. ``programs``: facts of each pair, and of those that only one has."""

    def __init__(self, a: dict, b: dict):
        self.a, self.b = a, b
        self.facts = _differing(_facts(a), _facts(b))
        self.counters = _differing(a["counters"], b["counters"], 0)
        self.times_ms = {name: [_times(a).get(name, 0.0), _times(b).get(name, 0.0)] for name in {**_times(a), **_times(b)}}
        self.lines = _lines(a["findings"], b["findings"])
        self.programs = _programs(a, b)

    def __bool__(self) -> bool:
        return bool(self.facts or self.counters.keys() - set(TIMED_COUNTERS) or any(map(_differ, self.lines))
                    or any(program["differ"] for program in self.programs))  # fmt: skip

    def to_dict(self) -> dict:
        programs = [{**program, "graph": None if program["graph"] is None else program["graph"].to_dict()} for program in self.programs]
        return {"facts": self.facts, "counters": self.counters, "times_ms": self.times_ms, "lines": self.lines, "programs": programs}

    def text(self) -> list[str]:
        said = [f"{name}: {report['title']} on {report['device']}" for name, report in (("A", self.a), ("B", self.b))]
        for name, (before, after) in self.facts.items():
            said.append(f"{name}: {before} -> {after}")
        said += ["", *_table("time", _rows(self.times_ms), time_text)]
        if self.counters:
            said += ["", *_table("counter", _rows(self.counters), "{:,}".format)]
        said += ["", *self._said_of_lines()]
        for program in self.programs[:MOST_ROWS]:
            said += ["", *_said_of_program(program)]
        more = [f"and {len(self.programs) - MOST_ROWS} more programs: --json has all"] if len(self.programs) > MOST_ROWS else []
        return [cut(line) for line in said + more]

    def _said_of_lines(self) -> list[str]:
        rows = sorted(self.lines, key=lambda row: -abs(_of(row[1], "ms") - _of(row[0], "ms")))
        said = [_numbers("line", "A", "B", "ratio")]
        for row in rows[:MOST_ROWS]:
            one = row[0] or row[1]
            before, after = (_of(finding, "ms") for finding in row)
            state = "" if all(row) else "only in A: " if row[0] else "only in B: "
            said.append(_numbers(f"{state}{one['where'] or 'all of it'}: {one['what']}", time_text(before), time_text(after), _ratio(before, after)))
            changes = [f"{_of(row[0], key):,}{unit} -> {_of(row[1], key):,}{unit}" for key, unit in (("count", "x"), ("bytes", " bytes"))
                       if _of(row[0], key) != _of(row[1], key)]  # fmt: skip
            said += [f"{'':33}{', '.join(changes)}"] if changes else []
        return said + ([f"and {len(rows) - MOST_ROWS} more: --json has all"] if len(rows) > MOST_ROWS else [])


def _facts(report: dict) -> dict[str, str]:
    versions = {f"version of {name}": version for name, version in report.get("versions", {}).items()}
    return {"command": report["title"], "device": report["device"], "steps": report["steps"], **versions, **report["settings"]}


def _times(report: dict) -> dict[str, float]:
    return {"in all": report["seconds"] * 1e3, **report["parts_ms"], "the device computes": report["device_ms"]}


def _differing(some: dict, others: dict, absent="unset") -> dict[str, list]:
    pairs = {name: [some.get(name, absent), others.get(name, absent)] for name in {**some, **others}}
    return {name: values for name, values in pairs.items() if values[0] != values[1]}


def _lines(some: list[dict], others: list[dict]) -> list[list[dict | None]]:
    """Matched by cause and line, then by cause and source, for a line that has moved."""
    rows: list[list[dict | None]] = [[finding, None] for finding in some]
    rest = list(others)
    for key in _by_line, _by_source:
        free = {key(row[0]): row for row in reversed(rows) if row[1] is None and row[0]}
        left = []
        for finding in rest:
            if row := free.pop(key(finding), None):
                row[1] = finding
            else:
                left.append(finding)
        rest = left
    return rows + [[None, finding] for finding in rest]


def _by_line(finding: dict) -> tuple:
    return finding["cause"], finding["where"]


def _by_source(finding: dict) -> tuple:
    return finding["cause"], finding["source"] or finding["where"]


def _differ(row: list[dict | None]) -> bool:
    kind = (row[0] or row[1])["kind"]
    return kind not in TIMED_KINDS and any(_of(row[0], key) != _of(row[1], key) for key in ("count", "bytes"))


def _of(finding: dict | None, key: str):
    return finding[key] if finding else 0


def _programs(a: dict, b: dict) -> list[dict]:
    """Pairs, and those that only one has. Those that ran longest stand first."""
    spent = [spent_in_programs(run["events"]) for run in (a, b)]
    facts = [{program["id"]: program for program in sorted(run["programs"], key=lambda program: -own.get(program["id"], [0])[0])}
             for run, own in zip((a, b), spent, strict=True)]  # fmt: skip
    graphs = [{id_: parse(program["graph"]) for id_, program in own.items() if program.get("graph")} for own in facts]
    pairs = _equal(*facts)
    pairs |= _alike(*({id_: graph for id_, graph in own.items() if id_ not in taken} for own, taken in zip(graphs, (pairs, pairs.values()), strict=True)))
    ids = [(i, pairs.get(i)) for i in facts[0]] + [(None, k) for k in facts[1] if k not in pairs.values()]
    return sorted((_program(both, facts, spent, graphs) for both in ids), key=lambda program: -max(program["ms"]))


def _equal(some: dict[int, dict], others: dict[int, dict]) -> dict[int, int]:
    free: dict[str | None, list[int]] = {}
    for k, program in others.items():
        free.setdefault(program.get("graph"), []).append(k)
    return {i: free[text].pop(0) for i, program in some.items() if free.get(text := program.get("graph"))}


def _alike(some: dict[int, Graph], others: dict[int, Graph]) -> dict[int, int]:
    """By ops and then by params, among those that ran longest."""
    return most_alike(*({id_: ([node.op for node in graph.nodes], [param.type for param in graph.params])
                         for id_, graph in list(own.items())[:MOST_MATCHED]} for own in (some, others)))  # fmt: skip


def _program(ids: tuple, facts: list[dict], spent: list[dict], graphs: list[dict]) -> dict:
    own = [facts[side].get(id_, {}) for side, id_ in enumerate(ids)]
    ran = [spent[side].get(id_, (0, 0)) for side, id_ in enumerate(ids)]
    both = all(id_ is not None for id_ in ids)
    graph = Differences(graphs[0][ids[0]], graphs[1][ids[1]]) if both and ids[0] in graphs[0] else None
    kernels = _kernels(*(one.get("kernels", []) for one in own)) if both else []
    runs = [count for _, count in ran]
    differ = not both or bool(graph) or runs[0] != runs[1] or any(None in kernel["runs"] for kernel in kernels)
    return {"ids": list(ids), "ops": [one.get("ops", 0) for one in own], "runs": runs, "ms": [ns / 1e6 for ns, _ in ran],
            "differ": differ, "graph": graph, "kernels": kernels}  # fmt: skip


def _kernels(some: list[dict], others: list[dict]) -> list[dict]:
    """Paired by name, in their order; `runs` and `ns` are of A and B, None where one lacks the kernel. Nothing where a program was not looked
    into."""
    if not some or not others:
        return []
    found = pair([kernel["name"] for kernel in some], [kernel["name"] for kernel in others])
    sides = [(kernel, others[k] if k >= 0 else None) for kernel, k in zip(some, found, strict=True)]
    sides += [(None, kernel) for k, kernel in enumerate(others) if k not in found]
    return [{"name": (one or other)["name"], "runs": [one and one["runs"], other and other["runs"]], "ns": [one and one["ns"], other and other["ns"]]}
            for one, other in sides]  # fmt: skip


def _said_of_program(program: dict) -> list[str]:
    ids = program["ids"]
    if None in ids:
        side = int(ids[0] is None)
        ops, runs, ms = (program[name][side] for name in ("ops", "runs", "ms"))
        return [f"program {ids[side]}, only in {'AB'[side]}: {ops} ops, {runs}x {time_text(ms)}"]
    (before, after), runs = program["ms"], program["runs"]
    head = f"program {ids[0]} of A and {ids[1]} of B: {runs[0]}x {time_text(before)} -> {runs[1]}x {time_text(after)}, ratio {_ratio(before, after)}"
    if not program["graph"]:
        return [f"{head}, the same graph", *_said_of_kernels(program["kernels"])]
    return [head, *(f"  {line}" for line in program["graph"].text(MOST_OF_A_GRAPH)), *_said_of_kernels(program["kernels"])]


def _said_of_kernels(kernels: list[dict]) -> list[str]:
    """Those whose time of a run differs most."""
    rows = []
    for kernel in kernels:
        times = [ns / max(runs, 1) / 1e6 if runs is not None else None for ns, runs in zip(kernel["ns"], kernel["runs"], strict=True)]
        state = "" if None not in times else "only in A: " if times[1] is None else "only in B: "
        rows.append((f"{state}{kernel['name']}", *(ms or 0.0 for ms in times)))
    return _table("kernel, time of a run", rows, time_text) if rows else []


def _rows(values: dict[str, list]) -> list[tuple]:
    return [(name, *both) for name, both in values.items()]


def _table(head: str, rows: list[tuple], said: Callable) -> list[str]:
    """The rows that differ most, without those of zeros."""
    shown = sorted((row for row in rows if any(row[1:])), key=lambda row: -abs(row[2] - row[1]))
    lines = [_numbers(name, said(before), said(after), _ratio(before, after)) for name, before, after in shown[:MOST_ROWS]]
    more = [f"and {len(shown) - MOST_ROWS} more: --json has all"] if len(shown) > MOST_ROWS else []
    return [_numbers(head, "A", "B", "ratio"), *lines, *more]


def _numbers(name: str, before: str, after: str, ratio: str) -> str:
    return f"{before:>11} {after:>11} {ratio:>7}  {name}"


def _ratio(before: float, after: float) -> str:
    return f"{after / before:.2f}" if before else ""
