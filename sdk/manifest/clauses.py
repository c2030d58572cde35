#!/usr/bin/env python3
"""Reads the clauses of the contract, clauses.toml, and writes docs/clauses.md.

A [[clause]] has:
  id          <paragraph, struct or slot>.<short name>; stable for ever. Clauses of one group stand together.
  side        who must keep it: plugin, host or both
  text        one sentence
  checks      checks of ltc-conformance that find a breach of the plugin; `*` stands for any characters
  host_tests  tests that find a breach of the host, or show that the host withstands or reports one of the plugin: names of
              googletest, with `*`, or tests/<file>.py::<function>
  faults      seeded faults that break it; one of `checks` finds each: conformance/suite_test.cpp
  unchecked   instead of checks and host_tests: why there are none
  missing     true, instead of them: there could be some, and there are none yet

An [[extra]] has checks that hold no clause, with their faults and the reason.

usage: clauses.py --document docs/clauses.md
"""

import argparse
import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("clauses.toml")
SIDES = ("plugin", "host", "both")
LISTS = ("checks", "host_tests", "faults")
NEEDED = {"plugin": ("checks",), "host": ("host_tests",), "both": ("checks", "host_tests")}
CELLS = {"clause": {"id", "side", "text", "unchecked", "missing", *LISTS}, "extra": {"checks", "faults", "reason"}}


class Invalid(Exception):
    pass


def require(condition, where, why):
    if not condition:
        raise Invalid(f"{where}: {why}")


def validate_cells(kind, row, where, needed):
    require(not row.keys() - CELLS[kind], where, f"unknown cells {sorted(row.keys() - CELLS[kind])}")
    for key in needed:
        require(key in row, where, f"has no {key}")
    for key, value in row.items():
        fits = value is True if key == "missing" else isinstance(value, list if key in LISTS else str) and value
        require(fits, where, f"{key} is empty or of another type")
    for key in LISTS:
        names = row.get(key, [])
        require(all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names), where, f"{key} repeats a name")


def validate_clause(row, where):
    validate_cells("clause", row, where, ("id", "side", "text"))
    require(re.fullmatch(r"[a-z_]+\.[a-z0-9_]+", row["id"]), where, "an id is <group>.<short name>, in lower case")
    require(row["side"] in SIDES, where, f"side is one of {', '.join(SIDES)}")
    require(row["text"].endswith(".") and ". " not in row["text"], where, "text is one sentence")
    reasons = [key for key in ("unchecked", "missing") if key in row]
    held = all(key in row for key in NEEDED[row["side"]])
    require(len(reasons) + held == 1, where, f"has {' and '.join(NEEDED[row['side']])}, or unchecked, or missing")
    require(not reasons or not any(key in row for key in LISTS), where, f"{reasons} goes without checks, host_tests and faults")
    require("checks" not in row or row["side"] != "host", where, "checks are of plugins")
    require("faults" not in row or "checks" in row, where, "a fault needs a check that finds it")


def read(text):
    """The clauses and the extra checks of a text of TOML; raises Invalid."""
    rows = tomllib.loads(text)
    require(not rows.keys() - CELLS.keys(), "the file", f"unknown tables {sorted(rows.keys() - CELLS.keys())}")
    clauses, extra, seen, groups = rows.get("clause", []), rows.get("extra", []), set(), []
    for number, row in enumerate(clauses, 1):
        where = row.get("id") or f"clause {number}"
        validate_clause(row, where)
        require(where not in seen, where, "is there twice")
        seen.add(where)
        if groups[-1:] != [group_of(row)]:
            require(group_of(row) not in groups, where, "stands apart from its group")
            groups.append(group_of(row))
    for number, row in enumerate(extra, 1):
        validate_cells("extra", row, f"extra {number}", ("checks", "reason"))
    return clauses, extra


def group_of(row):
    return row["id"].split(".")[0]


def matches(pattern, name):
    """As in the suite's lists: only `*` is special."""
    return fnmatchcase(name, re.sub(r"([?\[])", r"[\1]", pattern))


def is_held(row):
    return "unchecked" not in row and "missing" not in row


def names_of(rows, key):
    return [name for row in rows for name in row.get(key, [])]


# ---- the document


def code(names):
    return "<br>".join(f"`{name}`" for name in names)


def state_of(row):
    if "missing" in row:
        return "**missing**"
    if "unchecked" in row:
        return f"none: {row['unchecked']}"
    return code(row.get("checks", []) + row.get("host_tests", []))


def counts(clauses):
    yield "| clauses for | all | checked | with a seeded fault | not to be checked | missing |"
    yield "|---|---|---|---|---|---|"
    for side in (*SIDES, "all"):
        rows = [row for row in clauses if side in (row["side"], "all")]
        figures = (len(rows), sum(map(is_held, rows)), sum("faults" in row for row in rows), sum("unchecked" in row for row in rows),
                   sum("missing" in row for row in rows))
        yield f"| {side} | {' | '.join(map(str, figures))} |"


INTRODUCTION = """\
# The clauses of the contract

Each rule of [`sdk/include/ltc/plugin.h`](../sdk/include/ltc/plugin.h) that a plugin or the host could break, and what would find the breach: checks of
[the conformance suite](conformance.md) for plugins, tests of the host for the host. A test of the host in a clause of plugins shows that the
host withstands the breach, or, if it is one of `All/Clauses`, that `LTC_VALIDATE` reports it. A seeded fault is a plugin that breaks the clause;
the suite's own test proves that one of the checks finds it. `*` stands for any characters.

Written by `python sdk/manifest/clauses.py --document docs/clauses.md` from
[`sdk/manifest/clauses.toml`](../sdk/manifest/clauses.toml); do not edit.
"""


def document(clauses, extra):
    lines = [INTRODUCTION, *counts(clauses), "", f"Missing: {', '.join(code([row['id']]) for row in clauses if 'missing' in row) or 'none'}."]
    group = None
    for row in clauses:
        if group != group_of(row):
            group = group_of(row)
            lines += ["", f"## {group}", "", "| clause | side | checks and tests | seeded faults |", "|---|---|---|---|"]
        lines.append(f"| `{row['id'].split('.')[1]}`: {row['text']} | {row['side']} | {state_of(row)} | {code(row.get('faults', []))} |")
    lines += ["", "## Checks without a clause", "", "| checks | seeded faults | reason |", "|---|---|---|"]
    lines += [f"| {code(row['checks'])} | {code(row.get('faults', []))} | {row['reason']} |" for row in extra]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Writes the document of the clauses of the contract.")
    parser.add_argument("--document", type=Path, required=True)
    parser.parse_args().document.write_text(document(*read(FILE.read_text())))


if __name__ == "__main__":
    main()
