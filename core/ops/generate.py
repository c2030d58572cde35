#!/usr/bin/env python3
"""Writes sdk/include/ltc/opset.h and docs/opset.md from the op table.

usage: generate.py [--check]     --check writes nothing and fails where a file is out of date

Refuses to give an id that the present header has to another op, or to take one away: ids are for ever.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADER = ROOT / "sdk/include/ltc/opset.h"
PAGE = ROOT / "docs/opset.md"
TEXT = r'"((?:[^"\\]|\\.)*)"'
ROW = re.compile(rf"LTC_OP\((\d+),\s*{TEXT},\s*(\w+),\s*[^,]+,\s*{TEXT},\s*{TEXT}\)")
HEADER_ROW = re.compile(rf"X\((\d+), \w+, \w+, {TEXT}")
ARGUMENT = re.compile(r"(?P<type>\w+)(?:\([^)]*\))?(?P<option>\??)(?P<list>\[\d*\])?(?P<list_option>\??) (?P<name>\w+)")
KINDS = {"Tensor": "T", "Scalar": "S", "float": "S", "int": "I", "SymInt": "I", "bool": "B", "str": "Z", "ScalarType": "D"}
LIST_KINDS = {"T": "T", "I": "I", "B": "I", "S": "F", "Z": "Z"}
NEVER_SENT = {"MemoryFormat", "Layout", "Device", "Generator"}  # ltc/plugin.h, "Operands", with the next line
NEVER_SENT_NAMES = {"pin_memory", "non_blocking"}


class Row(NamedTuple):
    id: int
    name: str
    schema: str
    tier: str
    doc: str

    @property
    def identifier(self):
        return re.sub(r"\W+", "_", self.name).upper()

    @property
    def operands(self):
        """The arguments as ltc_node_matches of ltc/entry.h reads them."""
        parts = []
        for argument in split_arguments(self.schema):
            found = ARGUMENT.match(argument)
            if not found:
                sys.exit(f"{self.name}: the argument '{argument}' is not of the form that this script reads")
            if found["type"] in NEVER_SENT or found["name"] in NEVER_SENT_NAMES:
                continue
            kind = KINDS[found["type"]]
            if found["list"]:
                kind = LIST_KINDS[kind] + "*"
            optional = "?" if found["option"] or found["list_option"] else ""
            parts.append(f"{kind}{optional}:{found['name']}")
        return " ".join(parts)


class Semantics(NamedTuple):
    types: str
    dtypes: str
    text: str


def split_arguments(schema):
    begin = schema.index("(") + 1
    depth, start, quoted = 0, begin, False
    for at in range(begin, len(schema)):
        c = schema[at]
        quoted ^= c == '"'
        if quoted:
            continue
        if (c == "," or c == ")") and depth == 0:
            argument = schema[start:at].strip()
            if argument not in ("", "*"):
                yield argument
            start = at + 1
            if c == ")":
                return
        depth += (c in "([") - (c in ")]")


def read_rows():
    source = (HERE / "op_table.inc").read_text()
    rows = []
    for number, schema, tier, _, doc in ROW.findall(source):
        schema = schema.replace('\\"', '"')
        rows.append(Row(int(number), schema.split("(", 1)[0], schema, tier, doc))
    if len(rows) != len(re.findall(r"^LTC_OP\(", source, re.M)):
        sys.exit("op_table.inc: a row is not of the form that this script reads")
    return sorted(rows)


def read_semantics():
    blocks = re.split(r"\n\s*\n", (HERE / "minimal_opset.txt").read_text().strip())
    lines = [block.splitlines() for block in blocks if not block.startswith("#")]
    return {name: Semantics(types, dtypes, " ".join(text)) for name, types, dtypes, *text in lines}


def check(rows, semantics):
    minimal = {row.name for row in rows if row.tier == "minimal"}
    if minimal != semantics.keys():
        sys.exit(f"minimal_opset.txt and op_table.inc differ in: {', '.join(sorted(minimal ^ semantics.keys()))}")
    identifiers = [row.identifier for row in rows]
    if len(set(identifiers)) != len(identifiers):
        sys.exit(f"two ops with one identifier: {max(identifiers, key=identifiers.count)}")
    names = {row.id: row.name for row in rows}
    if HEADER.exists():
        for number, name in HEADER_ROW.findall(HEADER.read_text()):
            if names.get(int(number)) != name:
                sys.exit(f"id {number} was {name} and is now {names.get(int(number), 'gone')}: ids are for ever")


def header(rows):
    entries = " \\\n".join(
        f'  X({row.id}, {row.tier.upper()}, {row.identifier}, "{row.name}", "{row.operands}")' for row in rows)
    return f"""/* Generated from core/ops/op_table.inc by core/ops/generate.py: do not edit.
 *
 * The op set: ids and names of ops. docs/opset.md defines each op. An id is never changed and never given to another op. */
/* clang-format off */
#ifndef LTC_OPSET_H
#define LTC_OPSET_H

/* X(id, tier, IDENTIFIER, name, operands) for each op. Tiers: MINIMAL, a plugin that computes claims it, or says in its conformance
 * report that it does not; DERIVED, decomposed where a plugin does not claim it; WHOLE, run by the host where a plugin does not
 * claim it; HOST, never in a graph. Operands: the arguments in the schema's order, for ltc_node_matches of ltc/entry.h. */
#define LTC_OPSET(X) \\
{entries}

enum {{
#define LTC_OP_ID(id, tier, identifier, name, operands) LTC_OP_##identifier = id,
  LTC_OPSET(LTC_OP_ID)
#undef LTC_OP_ID
}};

#ifdef __cplusplus
extern "C" {{
#endif

/* The operands of an op; NULL for an id that is not here. */
static inline const char* ltc_op_operands(unsigned id) {{
  switch (id) {{
#define LTC_OP_OPERANDS(id, tier, identifier, name, operands) case id: return operands;
    LTC_OPSET(LTC_OP_OPERANDS)
#undef LTC_OP_OPERANDS
    default: return 0;
  }}
}}

#ifdef __cplusplus
}}
#endif
#endif /* LTC_OPSET_H */
"""


def code(text):
    return "`" + text.replace("|", "\\|") + "`"


def minimal_section(rows, semantics):
    for row in rows:
        types, dtypes, text = semantics[row.name]
        yield f"### {row.name}\n\nId {row.id}. {code(types)}, T: {dtypes}.\n\n{text}\n\n{code(row.schema)}\n"


def listing(rows, heading):
    table = "\n".join(f"| {row.id} | {code(row.schema)} | {row.doc} |" for row in rows)
    return f"| id | schema | {heading} |\n|---|---|---|\n{table}\n"


def page(rows, semantics):
    tiers = {tier: [row for row in rows if row.tier == tier] for tier in ("minimal", "derived", "whole", "host")}
    intro = (HERE / "opset_intro.md").read_text().format(
        **{tier: len(rows) for tier, rows in tiers.items()})
    return "\n".join([
        intro,
        *minimal_section(tiers["minimal"], semantics),
        "## Derived ops\n\nDecomposed, in the end into the ops above, where a plugin does not claim them.\n",
        listing(tiers["derived"], ""),
        "## Whole ops\n\nNot decomposed: where a plugin does not claim one, the host runs it as a step of the program.\n",
        listing(tiers["whole"], "why"),
        "## Host ops\n\nNever in a graph: the CPU runs them when they are called.\n",
        listing(tiers["host"], "why"),
    ])


def main():
    rows, semantics = read_rows(), read_semantics()
    check(rows, semantics)
    for path, text in ((HEADER, header(rows)), (PAGE, page(rows, semantics))):
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} is out of date: run core/ops/generate.py")


if __name__ == "__main__":
    main()
