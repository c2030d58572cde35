"""Files that hold graphs: what ``ltc.graph()`` returns, logs and messages with graphs in them, and reports of ``ltc explain``."""

import os
import re
from dataclasses import dataclass

_GRAPH = re.compile(r"^(.*?)(graph\(.*\) \{\n(?:  .*\n)*\}\n?)", re.MULTILINE)


@dataclass(frozen=True)
class Content:
    """The content of one file: a report, or the text of one graph."""

    path: str  # with the number behind it, as it was given
    report: dict | None = None
    graph: str | None = None


def load(given: str) -> Content:
    """``given`` is a path. ":3" behind it chooses the program 3 of a report, or the third graph in a text. Raises OSError, and ValueError for
    a file without graphs or with several."""
    path, number = _split(given)
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if text.lstrip()[:1] == "{":
        from ltc._explain import read  # imports PyTorch

        report = read(path)
        if missing := [name for name in ("findings", "programs", "events") if name not in report]:
            raise ValueError(f"{path} is no whole report of ltc explain: it has no {missing[0]}")
        return Content(given, report) if number is None else Content(given, graph=_program(report, path, number))
    graphs = _GRAPH.findall(text)
    if not graphs:
        raise ValueError(f"{path} has no graph as ltc.graph() writes it, and is no report of ltc explain")
    if number is None and len(graphs) > 1:
        names = "".join(f"\n  {path}:{i} {before.strip()[-60:]}" for i, (before, _) in enumerate(graphs[:20], 1))
        raise ValueError(f"{path} has {len(graphs)} graphs; choose one:{names}{chr(10) + '  ...' if len(graphs) > 20 else ''}")
    if not 1 <= (number or 1) <= len(graphs):
        raise ValueError(f"{path} has {len(graphs)} graphs, and none with the number {number}")
    return Content(given, graph=graphs[(number or 1) - 1][1])


def longest(report: dict) -> str:
    """The graph of the program that ran longest. Raises ValueError."""
    from ltc._explain.costs import spent_in_programs

    spent = spent_in_programs(report["events"])
    graphs = [program for program in report["programs"] if program.get("graph")]
    if not graphs:
        raise ValueError("the report has no program with a graph")
    return max(graphs, key=lambda program: spent.get(program["id"], [0])[0])["graph"]


def _split(given: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(.+):(\d+)", given)
    return (match[1], int(match[2])) if match and not os.path.exists(given) else (given, None)


def _program(report: dict, path: str, number: int) -> str:
    graphs = {program["id"]: program.get("graph") for program in report["programs"]}
    if not graphs.get(number):
        raise ValueError(f"{path} has no graph of a program {number}; it has: {', '.join(map(str, graphs)) or 'none'}")
    return graphs[number]
