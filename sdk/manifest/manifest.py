"""Reads abi.toml: checks that no cell is empty, and computes layouts.

A layout is that of platforms whose long and pointers have 64 bits.
"""

import re
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
CELLS = {
    "struct": {"name", "header", "since", "frozen", "filled_by", "lives", "fields"},
    "union": {"name", "header", "since", "frozen", "filled_by", "lives", "fields"},
    "function": {"name", "table", "since", "required", "threads", "blocks", "codes", "returns", "params"},
    "enum": {"name", "header", "since", "bits", "unknown", "values"},
    "extension": {"name", "kind", "version", "header", "since", "sent_by", "structs", "without"},
    "constant": {"name", "since", "value"},
}
THREADS = {"any", "submit", "alone", "the thread that was given the sink"}
REQUIRED = {"memory", "computing", "asynchronous", "optional", "host", "sink", "always"}
SIZES = {"bool": 1, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8, "size_t": 8, "double": 8, "function": 8, "union": 8,
         "ltc_code": 4, "ltc_dtype": 4, "ltc_attr_kind": 4, "ltc_direction": 4}


class Error(Exception):
    pass


def is_pointer(type_name):
    return "*" in type_name


def version(text):
    return tuple(map(int, text.split(".")))


def empty_cells(abi):
    """Where the manifest says too little, or something that it has no cell for."""

    def compare(place, entry, wanted):
        for cell in sorted(wanted ^ entry.keys()):
            yield f"{place}: {'lacks' if cell in wanted else 'has an unknown cell'} '{cell}'"
        for cell in sorted(wanted & entry.keys()):
            if entry[cell] == "" or entry[cell] is None:
                yield f"{place}: '{cell}' is empty"

    for kind, cells in CELLS.items():
        for entry in abi[kind]:
            place = f"{kind} {entry.get('name')}"
            optional = {"without"} if entry.get("required") == "optional" else set()
            yield from compare(place, entry, cells | optional)
            for field in entry.get("fields", []):
                pointer = is_pointer(field.get("type", "")) or field.get("type") in ("function", "union")
                since = ({"since"} & field.keys()) | ({"members"} if field.get("type") == "union" else set())
                yield from compare(f"{place}.{field.get('name')}", field, {"name", "type"} | ({"null"} if pointer else set()) | since)
            for param in entry.get("params", []):
                pointer = {"pass", "null", "owner", "lives"} if is_pointer(param.get("type", "")) else set()
                yield from compare(f"{place}({param.get('name')})", param, {"name", "type"} | pointer)
            for value in entry.get("values", []):
                yield from compare(f"{place}.{value.get('name')}", value, {"name", "value"} | ({"since"} & value.keys()))
            if kind == "function" and (entry.get("threads") not in THREADS or entry.get("required") not in REQUIRED):
                yield f"{place}: unknown word in 'threads' or 'required'"


def read(path=HERE / "abi.toml"):
    """The manifest; raises Error with a line for each empty cell."""
    with open(path, "rb") as file:
        abi = tomllib.load(file)
    if faults := list(empty_cells(abi)):
        raise Error("\n".join(faults))
    return abi


def fields_of(struct, release):
    """The fields that a struct has in a release."""
    return [field for field in struct["fields"] if version(field.get("since", struct["since"])) <= version(release)]


class Layout:
    """Offsets, and sizes, of the structs of a release."""

    def __init__(self, abi, release):
        self.abi, self.release = abi, release
        self.structs = {struct["name"]: struct for struct in abi["struct"] + abi["union"]}
        self.unions = {union["name"] for union in abi["union"]}

    def size_and_alignment(self, type_name):
        if match := re.fullmatch(r"(\w+)\[(\d+)\]", type_name):
            size, alignment = self.size_and_alignment(match[1])
            return size * int(match[2]), alignment
        if is_pointer(type_name):
            return 8, 8
        if type_name in self.structs:
            return self.of(type_name)[2:]
        return (SIZES[type_name],) * 2

    def of(self, name):
        """[(field, offset)], size up to the last field, sizeof, alignment."""
        offset, end, alignment, fields = 0, 0, 1, []
        for field in fields_of(self.structs[name], self.release):
            size, of_field = self.size_and_alignment(field["type"])
            at = 0 if name in self.unions else -(-offset // of_field) * of_field
            fields.append((field["name"], at))
            offset, end, alignment = at + size, max(end, at + size), max(alignment, of_field)
        return fields, end, -(-end // alignment) * alignment, alignment
