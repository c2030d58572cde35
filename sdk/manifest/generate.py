#!/usr/bin/env python3
"""Checks the headers against abi.toml, and writes what follows from it: layouts and signatures of each release, a stub plugin, and the
reference page.

usage: generate.py [--check]     --check writes nothing and fails where a file is out of date
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import header  # noqa: E402
import manifest  # noqa: E402
import reference  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ("1.0",)
WRITTEN = "Written by sdk/manifest/generate.py; do not edit."


def differences(abi, texts):
    """The differences between the headers and the manifest; sizes, types and values are compared by the compiler."""
    structs, prose = header.fields(texts), header.comments(texts)
    listed = {struct["name"]: [field["name"] for field in struct["fields"]] for struct in abi["struct"] + abi["union"]}
    for name in sorted(listed.keys() | structs.keys()):
        if listed.get(name) != structs.get(name):
            yield f"{name}: the manifest has the fields {listed.get(name)}, the header {structs.get(name)}"
    values = {value["name"] for enum in abi["enum"] for value in enum["values"]}
    values |= {entry["name"] for entry in abi["constant"] + abi["extension"]}
    for name in sorted(values ^ header.values(texts)):
        yield f"{name} is only in the {'manifest' if name in values else 'header'}"
    for function in abi["function"]:
        said = header.codes(prose.get(function["name"], ""))
        if function["table"] == "ltc_plugin_api" and function["name"] != "event_wait" and said != set(function["codes"]):
            yield f"{function['name']}: the manifest has the codes {sorted(function['codes'])}, the header {sorted(said)}"


def layout(abi, release):
    """FIELD and LAST lines for sdk/tests/layout.h."""
    of = manifest.Layout(abi, release)
    lines = [f"/* The layout of every struct of ABI {release} where long and pointers have 64 bits. {WRITTEN}",
             " * FIELD(struct, field, offset)   LAST(struct, last field, size up to it, sizeof) */"]
    for struct in abi["struct"]:
        if manifest.version(struct["since"]) > manifest.version(release):
            continue
        name, (fields, end, size, _) = struct["name"], of.of(struct["name"])
        lines += [f"FIELD({name}, {field}, {offset})" for field, offset in fields]
        lines += [f"LAST({name}, {fields[-1][0]}, {end}, {size})", ""]
    return "\n".join(lines[:-1]) + "\n"


def signatures(abi, release):
    """SLOT, TYPE, ALIAS and VALUE lines for sdk/tests/layout.h and layout_test.cpp."""
    now = manifest.version(release)
    lines = [f"/* Types of slots and fields, and values of enumerators, of ABI {release}. {WRITTEN}",
             " * SLOT(table, slot, returns, parameters)   TYPE(struct, field, type)   ALIAS(typedef, type)   VALUE(name, value) */"]
    for function in abi["function"]:
        if function["table"] != "export" and manifest.version(function["since"]) <= now:
            types = ", ".join(param["type"] for param in function["params"])
            lines.append(f"SLOT({function['table']}, {function['name']}, {function['returns']['type']}, ({types}))")
    for struct in abi["struct"] + abi["union"]:
        fields = manifest.fields_of(struct, release)
        members = [(f"{field['name']}.{member['name']}", member["type"]) for field in fields for member in field.get("members", [])]
        types = [(field["name"], field["type"]) for field in fields if field["type"] not in ("function", "union")]
        lines += [f"TYPE({struct['name']}, {name}, {type_name})" for name, type_name in types + members]
    lines += [f"ALIAS({enum['name']}, uint32_t)" for enum in abi["enum"] if re.fullmatch(r"ltc_\w+", enum["name"])]
    lines += [f"VALUE({value['name']}, {value['value']})" for enum in abi["enum"] for value in enum["values"]
              if manifest.version(value.get("since", enum["since"])) <= now]
    lines += [f"VALUE({entry['name']}, {entry['kind']})" for entry in abi["extension"] if manifest.version(entry["since"]) <= now]
    return "\n".join(lines) + "\n"


def stub(abi):
    """A plugin with every slot and no device."""
    slots = [function for function in abi["function"] if function["table"] == "ltc_plugin_api"]
    lines = [f"/* A plugin with every slot, all of which refuse, and no device. {WRITTEN} */", "/* clang-format off */", '#include "ltc/entry.h"', "",
             "static const ltc_host_api* host; /* the last host that entered */", "",
             "static ltc_status* refuse(const char* slot, size_t size) {",
             "  return host->status_create(host->host, LTC_UNSUPPORTED, LTC_NONE, slot, size);", "}", ""]
    for slot in slots:
        names = [param["name"] for param in slot["params"]]
        params = ", ".join(f"{param['type']} {param['name']}" for param in slot["params"])
        answer = f'return refuse("{slot["name"]}", {len(slot["name"])});' if slot["returns"]["type"] != "void" else ""
        if slot["name"] == "describe":
            names.remove("info")
            answer = ('const ltc_string name = {"stub", 4}, why = {"A stub has no device.", 21};\n'
                      "  info->name = info->version = name;\n  info->why_no_device = why;\n  return NULL;")
        lines.append(f"static {slot['returns']['type']} LTC_CALL stub_{slot['name']}({params}) {{")
        lines += [f"  (void){name};" for name in names] + ([f"  {answer}"] if answer else []) + ["}", ""]
    lines += ["static const ltc_plugin_api api = {", f"    .struct_size = LTC_SIZE_TO(ltc_plugin_api, {slots[-1]['name']}),"]
    lines += [f"    .{slot['name']} = stub_{slot['name']}," for slot in slots]
    lines += ["};", "", "bool LTC_CALL ltc_plugin_entry(ltc_entry_args* args) {", "  const ltc_version version = {LTC_ABI_MAJOR, 0};",
              "  if (!ltc_agree(args, version, version) || !ltc_has_no_options(args)) return false;", "  host = args->host;",
              "  args->api = &api;", "  return true;", "}"]
    return "\n".join(lines) + "\n"


def files(abi, texts):
    """By path: the text that belongs there."""
    made = {"sdk/tests/stub_plugin.c": stub(abi), "docs/abi.md": reference.page(abi, header.comments(texts), RELEASES[-1])}
    for release in RELEASES:
        name = release.replace(".", "_")
        made |= {f"sdk/tests/layout_{name}.inc": layout(abi, release), f"sdk/tests/signatures_{name}.inc": signatures(abi, release)}
    return made


def main():
    try:
        abi = manifest.read()
    except manifest.Error as error:
        sys.exit(f"the manifest is not complete:\n{error}")
    texts = header.read(abi)
    if faults := list(differences(abi, texts)):
        sys.exit("the headers and the manifest differ:\n" + "\n".join(faults))
    for place, text in files(abi, texts).items():
        path = ROOT / place
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv:
            sys.exit(f"{place} is out of date: run sdk/manifest/generate.py")
        path.write_text(text)
        print(f"wrote {place}")


if __name__ == "__main__":
    main()
