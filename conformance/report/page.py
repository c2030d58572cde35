"""One HTML page of the results of one or several plugins. It holds its style, script and data, and needs no network."""

import json
import os
import re
from html import escape

from . import levels
from .failures import failures
from .results import GOOD

NO_RESULT = "-"
MOST_OPEN = 20  # failures of a plugin that are shown without a click
_BAD = ' class="bad"'
_CODES = "abcdefghijklmnopqrstuvwxyz"  # a letter per outcome in the data
_OP = re.compile(r"Ops\.(.+)_(\w*?\d\w*|bool)$")


def page(plugins):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html"), encoding="utf-8") as file:
        template = file.read()
    found = [(plugin, failures(plugin)) for plugin in plugins]
    parts = {
        "summary": "\n".join(_card(plugin, len(failed)) for plugin, failed in found),
        "failure_count": str(sum(len(failed) for _, failed in found)),
        "failures": "\n".join(_failures(plugin, failed) for plugin, failed in found if failed) or "<p>None.</p>",
        "tiers": _tiers(plugins),
        "data": json.dumps(_data(plugins), separators=(",", ":")).replace("<", "\\u003c"),  # no tag inside a script
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _facts(plugin, failed):
    result, tested, host, machine = (plugin.result, *(plugin.result[key] for key in ("plugin", "host", "machine")))
    tree = "clean tree" if host["clean"] else "changed or unknown sources"
    run = "complete" if not plugin.not_run() else "filtered or stopped: no statement of conformance"
    return {
        "Version": tested["version"],
        "Build": tested["build_id"] or "not given",
        "Device": tested["device"] or "none",
        "Conformance version": result["conformance_version"],
        "Run": f"{len(plugin.checks())} checks, {run}",
        "Failures": str(failed),
        "ABI": result["abi"],
        "Host": f"{host['version']}, commit {host['commit'][:12] or 'unknown'}, {tree}",
        "Machine": f"{machine['processor']}, {machine['processors']} processors, {machine['os']}, {machine['kernel']}",
        "Library": tested["path"],
    }


def _card(plugin, failed):
    level, following, missing = levels.assess(plugin)
    facts = "".join(f'<dt>{key}</dt><dd{_BAD if failed and key == "Failures" else ""}>{escape(value)}</dd>'
                    for key, value in _facts(plugin, failed).items())
    rows = "".join(f"<li><b>{one.count}</b> {escape(one.what)}{_names(one.names)}</li>" for one in missing)
    way = f"<details><summary>Missing to {following}: {len(missing)}</summary><ul>{rows}</ul></details>" if following else ""
    return (f'<article class="card"><h3>{escape(plugin.label)} <span class="level {(level or "none").lower()}">'
            f"{level or 'No level'}</span></h3><dl>{facts}</dl>{way}</article>")


def _names(names):
    return f': <span class="names">{escape(", ".join(names[:20]))}{" ..." if len(names) > 20 else ""}</span>' if names else ""


def _failures(plugin, failed):
    articles = "\n".join(_failure(plugin, failure) for failure in failed)
    return (f'<details class="failures"{" open" if len(failed) <= MOST_OPEN else ""}><summary>{escape(plugin.label)}: {len(failed)}'
            f"</summary>\n{articles}</details>")


def _failure(plugin, failure):
    return (f'<article class="failure" data-text="{escape(plugin.label)} {escape(failure.name)} {escape(failure.message[:400])}">'
            f'<h3>{escape(failure.name)} <span class="tag">{escape(plugin.label)}</span> <span class="tag">{escape(failure.kind)}</span></h3>'
            f"<pre>{escape(failure.message)}</pre><p><code>{escape(failure.command)}</code></p></article>")


def _tiers(plugins):
    tiers = list(dict.fromkeys(tier for plugin in plugins for tier in plugin.result["tiers"]))
    head = "".join(f'<th scope="col">{escape(plugin.label)}</th>' for plugin in plugins)
    rows = [f'<tr><th scope="row">{escape(tier)}</th>{"".join(_counts(plugin, tier) for plugin in plugins)}</tr>' for tier in tiers]
    return f'<thead><tr><th scope="col">Tier</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'


def _counts(plugin, tier):
    found = [check["outcome"] for check in plugin.checks(tier)]
    counts = {outcome: found.count(outcome) for outcome in dict.fromkeys(["passed", "failed", *found]) if outcome in found}
    if missing := plugin.not_run().get(tier):
        counts["without a result"] = missing
    lines = "".join(f'<span class="count {_kind(outcome)}">{count} {escape(outcome)}</span>' for outcome, count in counts.items())
    return f"<td>{lines}</td>"


def _kind(outcome):
    """How an outcome is coloured."""
    kinds = {"passed": "good", "failed": "bad", "not run": "bad", "unsupported": "plain", "not applicable": "plain", "without a result": "plain"}
    return kinds.get(outcome, "warn")


# ---- the data of the tables that the script draws: per plugin one letter for each cell


def _data(plugins):
    outcomes = list(dict.fromkeys([*GOOD, "failed", *(check["outcome"] for plugin in plugins for check in plugin.checks())]))
    tiers = {check["name"]: check["tier"] for plugin in plugins for check in plugin.checks()}
    names = list(tiers)
    code = dict(zip(outcomes, _CODES, strict=False))
    found = [{check["name"]: code[check["outcome"]] for check in plugin.checks()} for plugin in plugins]
    return {
        "plugins": [plugin.label for plugin in plugins],
        "outcomes": {code[outcome]: [outcome, _kind(outcome)] for outcome in outcomes},
        "checks": names,
        "tiers": [tiers[name] for name in names],
        "cells": ["".join(results.get(name, NO_RESULT) for name in names) for results in found],
        "ops": _ops(names, found),
        "sweep": _sweep(plugins),
    }


def _ops(names, found):
    """The tier ops as a matrix."""
    cells = {match.group(1, 2): name for name in names if (match := _OP.match(name))}
    ops, dtypes = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    rows = [["".join(results.get(cells.get((op, dtype)), NO_RESULT) for dtype in dtypes) for op in ops] for results in found]
    return {"rows": ops, "columns": dtypes, "cells": rows}


_SWEEP = {"p": ["passed", "good"], "c": ["passed, an op on the CPU", "warn"], "f": ["failed", "bad"], "u": ["not counted", "plain"]}


def _sweep(plugins):
    """PyTorch's operators as a matrix; a cell is the worst of its modes."""
    operators = list(dict.fromkeys(name for plugin in plugins if plugin.sweep for name in plugin.sweep["operators"]))
    dtypes = list(dict.fromkeys(dtype for plugin in plugins if plugin.sweep for dtype in plugin.sweep["choices"]["dtypes"]))
    cells = []
    for plugin in plugins:
        ran = plugin.sweep["operators"] if plugin.sweep else {}
        cells.append(["".join(_operator(ran[name], dtype) if name in ran else NO_RESULT for dtype in dtypes) for name in operators]
                     if plugin.sweep else [])
    return {"rows": operators, "columns": dtypes, "cells": cells, "outcomes": _SWEEP}


def _operator(op, dtype):
    tallies = [tally for tally in op["tallies"] if tally["dtype"] == dtype]
    if op["crash"] or any(tally["failures"] for tally in tallies):
        return "f"
    if any(tally["fell_back"] for tally in tallies):
        return "c"
    return "p" if any(tally["counted"] for tally in tallies) else "u" if any(tally["uncounted"] for tally in tallies) else NO_RESULT
