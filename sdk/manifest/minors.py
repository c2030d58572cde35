#!/usr/bin/env python3
"""Rehearses minor versions: makes headers of 1.1 to 1.3 from those of 1.0 and minors/*.toml, with the layouts that each must have.

usage: minors.py FOLDER     writes FOLDER/1.N/ltc/*.h, layout.h and core/host/sized.h, the host's list of last fields, for N from 0

These versions are not released. Their additions are such as vendors ask for, and show that a minor version can append them.
"""

import copy
import re
import shutil
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generate  # noqa: E402
import header  # noqa: E402
import manifest  # noqa: E402

MINORS = [path.stem for path in sorted((manifest.HERE / "minors").glob("*.toml"))]
SIZED = manifest.HERE.parents[1] / "core/host/sized.h"
FIRST_OF_ENUM = {"LTC_DEVICE_": "LTC_DEVICE_PEER_COPY"}
CHECKS = """/* Written by sdk/manifest/minors.py: the headers of ABI {release} have the layout of each version up to it. */
#include "ltc/plugin.h"
#include "ltc/precision.h"
#include "ltc/collective.h"
#include "ltc/profile.h"
#include "ltc/symbolic.h"

#define LTC_CHECK(condition) extern char ltc_layout_check[(condition) ? 1 : -1]
#define FIELD(type, field, offset) LTC_CHECK(offsetof(type, field) == (offset));
#define LAST(type, field, size_to, size) LTC_CHECK(LTC_SIZE_TO(type, field) == (size_to));
#define VALUE(name, value) LTC_CHECK(name == (value));
#define SLOT(table, name, returns, parameters)
#define TYPE(type, field, field_type)
#define ALIAS(name, type)
{older}
#undef LAST
#define LAST(type, field, size_to, size) \\
  LTC_CHECK(LTC_SIZE_TO(type, field) == (size_to) && sizeof(type) == (size) && (size) - (size_to) < 8);
#include "layout.inc"
#include "signatures.inc"
LTC_CHECK(LTC_ABI_MAJOR == 1 && LTC_ABI_MINOR == {minor});
"""


def read(name):
    with open(manifest.HERE / f"minors/{name}.toml", "rb") as file:
        return tomllib.load(file)


def insert(text, before, what, behind=0):
    """The text with an addition before a mark, which stands there once behind a place."""
    at = text.find(before, behind)
    if at < 0:
        raise manifest.Error(f"the header has no '{before.strip()}'")
    return text[:at] + what + text[at:]


def extended(abi, text, minor):
    """Manifest and header with what a minor version appends."""
    abi, release = copy.deepcopy(abi), minor["abi"]
    for addition in minor.get("struct", []):
        struct = next(struct for struct in abi["struct"] if struct["name"] == addition["name"])
        if struct["frozen"]:
            raise manifest.Error(f"{struct['name']} is frozen: {release} cannot append to it")
        struct["fields"] += [field | {"since": release} for field in addition["fields"]]
        text = insert(text, f"\n}} {struct['name']};", "\n" + addition["text"])
    for addition in minor.get("enum", []):
        enum = next(enum for enum in abi["enum"] if enum["name"] == addition["name"])
        enum["values"] += [value | {"since": release} for value in addition["values"]]
        text = insert(text, "\n};", addition["text"], text.index(FIRST_OF_ENUM[addition["name"]] + " ="))
    abi["function"] += [function | {"since": release} for function in minor.get("function", [])]
    if faults := list(manifest.empty_cells(abi)):
        raise manifest.Error("\n".join(faults))
    old, new = (f"#define LTC_ABI_MINOR {number}u" for number in (int(release[2:]) - 1, release[2:]))
    return abi, text.replace(old, new)


def versions(abi, texts):
    """By version: the manifest up to it, and its headers."""
    made = {"1.0": (abi, texts)}
    for name in MINORS:
        abi, text = extended(abi, texts["ltc/plugin.h"], read(name))
        texts = texts | {"ltc/plugin.h": text}
        made[name] = abi, texts
    return made


def sized(abi, text):
    """The host's list of last fields, as the host of this version has it."""
    last = {struct["name"]: struct["fields"][-1]["name"] for struct in abi["struct"]}
    return re.sub(r"(?m)^LTC_HOST_SIZED\((\w+), \w+\)", lambda row: f"LTC_HOST_SIZED({row[1]}, {last[row[1]]})", text)


def write(folder):
    abi, host = manifest.read(), SIZED.read_text()
    if sized(abi, host) != host:
        raise manifest.Error(f"{SIZED}: a row does not name the last field")
    folder.mkdir(parents=True, exist_ok=True)
    releases = []
    for release, (extended_abi, texts) in versions(abi, header.read(abi)).items():
        here = folder / release
        shutil.copytree(header.INCLUDE, here, dirs_exist_ok=True)
        if faults := list(generate.differences(extended_abi, texts)):
            raise manifest.Error("\n".join(faults))
        older = "\n".join(f'#include "../{name}/layout.inc"\n#include "../{name}/signatures.inc"' for name in releases)
        (here / "ltc/plugin.h").write_text(texts["ltc/plugin.h"])
        (here / "layout.inc").write_text(generate.layout(extended_abi, release))
        (here / "signatures.inc").write_text(generate.signatures(extended_abi, release))
        (here / "core/host").mkdir(parents=True, exist_ok=True)
        (here / "core/host/sized.h").write_text(sized(extended_abi, host))
        (here / "layout.h").write_text(CHECKS.format(release=release, minor=release[2:], older=older))
        releases.append(release)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        write(Path(sys.argv[1]))
    except manifest.Error as error:
        sys.exit(f"minors.py: {error}")
