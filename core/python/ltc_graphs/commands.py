"""``ltc graph`` and ``ltc diff``."""

import argparse
import json
import sys

from .differences import Differences
from .files import Content, load, longest
from .graph import parse
from .pictures import form_of, save


def graph(options: argparse.Namespace) -> int:
    """Writes the picture, or the text of the graph to the standard output."""
    try:
        if options.to:
            form_of(options.to)
        content = load(options.file)
        text = content.graph or longest(content.report)
        if options.to:
            save(text, options.to)
        else:
            print(text, end="")
    except (OSError, ValueError) as error:
        print(f"ltc graph: {error}", file=sys.stderr)
        return 2
    return 0


def diff(options: argparse.Namespace) -> int:
    """1 where A and B differ."""
    try:
        a, b = load(options.a), load(options.b)
        found = _differences(a, b)
    except (OSError, ValueError) as error:
        print(f"ltc diff: {error}", file=sys.stderr)
        return 2
    if options.json:
        json.dump({"a": a.path, "b": b.path, "equal": not found, **found.to_dict()}, sys.stdout)
    else:
        print(f"A: {a.path}\nB: {b.path}\n" + "\n".join(found.text()))
    return int(bool(found))


def _differences(a: Content, b: Content):
    if a.graph and b.graph:
        return Differences(parse(a.graph), parse(b.graph))
    if a.report and b.report:
        from ltc._explain.differences import RunDifferences

        return RunDifferences(a.report, b.report)
    report = a.path if a.report else b.path
    raise ValueError(f"{report} is a report, and the other file is a graph; {report}:1 is the graph of the report's program 1")
