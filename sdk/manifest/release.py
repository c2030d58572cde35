#!/usr/bin/env python3
"""The released versions of the ABI: what each promises never changes again.

usage: release.py     adds the version of abi.toml to released.toml, with today's date
"""

import datetime
import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import manifest  # noqa: E402

HERE = Path(__file__).resolve().parent
OP = re.compile(r"^  X\((\d+), (.*)\)", re.MULTILINE)


def ops(header):
    """By id: the rest of the op's line in ltc/opset.h."""
    return {int(number): rest for number, rest in OP.findall(header)}


def contract(abi, header, release, last_op):
    """The parts that plugins and hosts of a release rely on: all cells of its entries, and its ops."""

    def belongs(entry, since):
        return manifest.version(entry.get("since", since)) <= manifest.version(release)

    def of_release(entry):
        lists = {name: [part for part in entry[name] if belongs(part, entry["since"])] for name in ("fields", "values") if name in entry}
        return entry | lists

    entries = {kind: [of_release(entry) for entry in abi[kind] if belongs(entry, release) and entry["name"] != "LTC_ABI_MINOR"]
               for kind in manifest.CELLS}
    return {"abi": entries, "ops": {number: rest for number, rest in ops(header).items() if number <= last_op}}


def digest(abi, header, release, last_op):
    text = json.dumps(contract(abi, header, release, last_op), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def released(path=HERE / "released.toml"):
    with open(path, "rb") as file:
        return tomllib.load(file).get("release", [])


def changed(abi, header, releases):
    """A sentence for each release that is no longer what it was."""
    for one in releases:
        if digest(abi, header, one["version"], one["last_op"]) != one["sha256"]:
            yield (f"ABI {one['version']} was released on {one['date']} and never changes: an entry, a cell or an op of it differs now. "
                   f"A new entry needs `since` of a later version")


def main():
    abi, header = manifest.read(), (HERE.parent / "include/ltc/opset.h").read_text()
    version, last_op = abi["abi"], max(ops(header))
    if any(one["version"] == version for one in released()):
        sys.exit(f"ABI {version} is released already")
    with open(HERE / "released.toml", "a") as file:
        file.write(f'\n[[release]]\nversion = "{version}"\ndate = {datetime.date.today()}\nlast_op = {last_op}\n'
                   f'sha256 = "{digest(abi, header, version, last_op)}"\n')
    print(f"ABI {version} is released: say so in ltc/plugin.h and CHANGELOG.md")


if __name__ == "__main__":
    main()
