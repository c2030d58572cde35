"""The reference page of the ABI, from the manifest and the comments of the headers."""

WORDS = """| cell | word | meaning |
|---|---|---|
| threads | any | from any thread at any time, beside other calls on the same objects |
| | submit | one `transfer` or `execute` of a device at a time; beside all else |
| | alone | while no other call uses the object |
| required | memory, computing, asynchronous | with all other slots of the group; memory always |
| | optional | may be NULL; then the host does what stands behind *Without it* |
| pass | in, out | an out parameter is unchanged after an error |
| owner | borrowed | stays the caller's |
| | given | the call ends it |
| | the caller's | who called ends it, by the slot that *lives* names |
"""


def anchor(name):
    return f'<a id="{name}"></a>'


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]) + "\n"


def quoted(comment):
    """The header's own text, as it is broken there."""
    return f"```text\n{comment}\n```\n" if comment else ""


def function(entry, prose):
    returns = entry["returns"]
    params = ", ".join(f"{param['type']} {param['name']}" for param in entry["params"])
    facts = [("since", entry["since"]), ("required", entry["required"]), ("threads", entry["threads"]), ("blocks", entry["blocks"]),
             ("codes", ", ".join(entry["codes"]) or "none but INTERNAL and DEVICE_LOST" if returns["type"] == "ltc_status*" else "none"),
             ("returns", f"`{returns['type']}`, {returns['owner']}")]
    if "without" in entry:
        facts.append(("without it", f"the host {entry['without']}"))
    rows = [(f"`{param['name']}`", f"`{param['type']}`", *(param.get(cell, "") for cell in ("pass", "null", "owner", "lives")))
            for param in entry["params"]]
    text = f"### {anchor(entry['name'])}`{entry['name']}`\n\n```c\n{returns['type']} {entry['name']}({params})\n```\n\n"
    return text + quoted(prose.get(entry["name"])) + "\n" + table(("", ""), facts) + "\n" + table(
        ("parameter", "type", "pass", "NULL", "owner", "lives"), rows)


def struct(entry, prose, layout):
    fields, end, size, _ = layout.of(entry["name"])
    offsets = dict(fields)
    kinds = {field["name"]: field for field in entry["fields"]}
    rows = [(offsets[name], f"`{name}`", f"`{kinds[name]['type']}`", kinds[name].get("null", "")) for name in offsets]
    facts = f"{entry['header']}, since {entry['since']}, {'frozen' if entry['frozen'] else 'may grow'}, {size} bytes, of which {end} count."
    return (f"### {anchor(entry['name'])}`{entry['name']}`\n\n{quoted(prose.get(entry['name']))}\n{facts} Filled by: {entry['filled_by']}. "
            f"Lives: {entry['lives']}.\n\n" + table(("offset", "field", "type", "NULL"), rows))


def enum(entry):
    kind = "bits" if entry["bits"] else "numbers"
    return (f"### {anchor(entry['name'])}`{entry['name']}`\n\n{entry['header']}, since {entry['since']}, {kind}. One that the reader does not "
            f"know: {entry['unknown']}.\n\n" + table(("name", "value"), [(f"`{v['name']}`", v["value"]) for v in entry["values"]]))


def page(abi, prose, release):
    """`release` is the last one; entries of the next one say so."""
    from manifest import Layout, version

    layout = Layout(abi, max((entry["since"] for entry in abi["struct"]), key=version))
    tables = ("ltc_plugin_api", "ltc_host_api", "ltc_sink", "ltc_run_profile", "export")
    titles = ("Functions of the plugin", "Functions of the host", "The sink", "The profile of a run", "The entry")
    parts = [f"# Reference of the ABI, version {release}\n\nWritten by `sdk/manifest/generate.py` from "
             "[`sdk/manifest/abi.toml`](../sdk/manifest/abi.toml) and the comments of the headers; do not edit. The rules for all calls stand at "
             "the head of [`ltc/plugin.h`](../sdk/include/ltc/plugin.h). Offsets are those of platforms with 64-bit pointers. An entry since a later "
             f"version than {release} is not released yet.\n\n" + WORDS]
    for name, title in zip(tables, titles):
        parts += [f"## {title}\n"] + [function(entry, prose) for entry in abi["function"] if entry["table"] == name]
    parts += ["## Structs\n"] + [struct(entry, prose, layout) for entry in abi["struct"] + abi["union"]]
    parts += ["## Enumerators\n"] + [enum(entry) for entry in abi["enum"]]
    parts += ["## Constants\n", table(("name", "value", "since"), [(f"`{e['name']}`", f"`{e['value']}`", e["since"]) for e in abi["constant"]])]
    rows = [(e["kind"], f"`{e['name']}`", e["version"], e["header"], ", ".join(f"`{s['name']}` in `{s['extends']}`" for s in e["structs"]),
             e["sent_by"], e["without"]) for e in abi["extension"]]
    parts += ["## Extensions\n", table(("kind", "name", "version", "header", "structs", "sent by", "without it"), rows)]
    return "\n".join(parts)
