#!/usr/bin/env python3
"""Compares the ABI of two folders of headers with abidiff, under the rule that a minor version only appends.

usage: append_rule.py OLD NEW     folders with ltc/*.h; prints what is more than appended, and then exits with 1

It sees what asserts of offsets and types do not: tags of opaque structs, types behind typedefs. It does not see the values of anonymous
enumerators and a const in a parameter of a slot; those are asserted (sdk/tests/signatures_*.inc).
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import manifest  # noqa: E402

SIZE = re.compile(r"type size changed from (\d+) to (\d+) \(in bits\)")
INSERTED = re.compile(r"'.*', at offset (\d+) \(in bits\) at .*")
HARMLESS = re.compile(r"|".join((
    r"", r"Leaf changes summary: .*", r"Changed leaf types summary: .*", r"Removed/Changed/Added \w+ summary: .*",
    r"\d+ Changed variables?:", r"\[C\] '(\w+) object_\1' was changed at .*:", r"size of symbol changed from \d+ to \d+",
    r"type of variable changed:", r"underlying type 'struct \w+' at .* changed:", r"'struct \w+ at .*' changed:",
    r"details were reported earlier", r"\d+ data member insertions?:")))


def library(headers, folder, abi):
    """A library that has an object of each struct."""
    source, made = folder / "objects.c", folder / "objects.so"
    names = [struct["name"] for struct in abi["struct"] + abi["union"]]
    lines = [f'#include "{header}"' for header in sorted({struct["header"] for struct in abi["struct"]})]
    lines += [f"{name} object_{name};" for name in names]
    lines.append("bool LTC_CALL ltc_plugin_entry(ltc_entry_args* args) { return args != NULL; }")
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(["cc", "-g", "-shared", "-fPIC", f"-I{headers}", str(source), "-o", str(made)], check=True)
    return made


def more_than_appended(report):
    """The lines of abidiff's report that the rule does not allow."""
    size = 0
    for line in map(str.strip, report.splitlines()):
        if match := SIZE.fullmatch(line):
            size = int(match[1])
            if int(match[2]) < size:
                yield line
        elif match := INSERTED.fullmatch(line):
            if int(match[1]) < size:
                yield line
        elif not HARMLESS.fullmatch(line):
            yield line


def compare(old, new):
    abi = manifest.read()
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for name, headers in ("old", old), ("new", new):
            (Path(folder) / name).mkdir()
            made.append(str(library(headers, Path(folder) / name, abi)))
        done = subprocess.run(["abidiff", "--leaf-changes-only", *made], capture_output=True, text=True)
    if done.returncode & 3:  # its own failure, or wrong use
        raise manifest.Error(f"abidiff failed: {done.stderr}{done.stdout}")
    return list(more_than_appended(done.stdout))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit("\n".join(compare(sys.argv[1], sys.argv[2])) or 0)
