"""The data of a report that the page's scripts draw, compressed: events in columns, programs with their graphs."""

import base64
import json
import zlib
from collections.abc import Iterator

from .costs import WORK, spent_in_programs
from .graphs import MOST_MATCHED, Strings, most_alike, ops, pair, parse
from .stages import differences, in_full

COLUMNS = ("name", "reason", "detail", "where", "lane", "row", "begin", "length", "self", "run", "program", "ops", "bytes")
ON_DEVICE = {"device": (-1, "Device"), "kernel": (-2, "Kernels")}  # their lanes, in the place of threads


def _pack(value) -> str:
    data = json.dumps(value, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(data, 9)).decode()


def pack_runs(runs: list[dict], names: list[str], room: int) -> tuple[list[str], list[str]]:
    """Data of each run in at most about `room` bytes before base64, and what was left out for that."""
    packed, notes, base = [], [], None
    for run, name in zip(runs, names, strict=True):
        strings = Strings()
        programs, left = _programs(run, strings, room * 2 // 3)
        if base is None:
            base = programs, strings
        else:
            _match(*base, programs, strings)
        data = {"name": name, "programs": programs, "sources": _sources(run, strings)}
        events = run["events"]
        while True:
            own = strings.copy()
            data["events"] = _events(events, run, own)
            data["strings"] = own.all
            text = _pack(data)
            size = len(text) * 3 // 4
            if size <= room or not events:
                break
            most = min(int(len(events) * 0.95 * room / size), len(events) - 1)
            events = sorted(events, key=lambda event: event["begin_ns"] - event["end_ns"])[:most]
        packed.append(text)
        at = f" of {name}" if len(runs) > 1 else ""
        if run["dropped"]:
            notes.append(f"The timeline{at} lacks {run['dropped']:,} events that came after the first million.")
        if len(events) < len(run["events"]):
            all_ = len(run["events"])
            notes.append(f"The timeline{at} leaves out the shortest {all_ - len(events):,} of {all_:,} events, to keep the page small.")
        if left:
            notes.append(f"The graphs or their stages of {left:,} of {len(programs):,} programs{at}, which ran for the shortest time, are left "
                         "out, to keep the page small.")
    return packed, notes


def _sources(run: dict, strings: Strings) -> list[int]:
    """Lines and their texts, in turn."""
    return [strings(text) for pair_ in run.get("sources", {}).items() for text in pair_]


def _programs(run: dict, strings: Strings, room: int) -> tuple[list[dict], int]:
    """Those that ran longest first, with what :func:`_parts` says of them as long as there is room; and how many lack some of it."""
    spent = spent_in_programs(run["events"])
    programs, left = [], 0
    for program in sorted(run["programs"], key=lambda program: -spent.get(program["id"], [0])[0]):
        ns, runs = spent.get(program["id"], (0, 0))
        made = {key: program[key] for key in ("id", "ops", "host_steps", "from_disk")} | {"runs": runs, "ns": ns, "graph": None}
        programs.append(made)
        if not program.get("graph"):
            continue
        known = len(strings.all)
        try:
            for parts in _parts(program, strings):
                new = "".join(strings.all[known:])
                size = len(zlib.compress((json.dumps(parts, separators=(",", ":")) + new).encode(), 1))
                if size > room:
                    strings.forget(known)
                    left += 1
                    break
                room -= size
                known = len(strings.all)
                made |= parts
        except ValueError as error:
            made["problem"] = str(error)
    return programs, left


def _parts(program: dict, strings: Strings) -> Iterator[dict]:
    """Its graph, its kernels with their memory, and its stages. A report has the last three only where they are known."""
    graph = parse(program["graph"], strings)
    yield {"graph": graph}
    kernels, buffers = program.get("kernels", ()), program.get("buffers", ())
    steps = [kernel["step"] for kernel in kernels]
    first = {step: steps.index(step) for step in steps}  # a buffer counts the kernels of its step
    yield {
        "kernels": [[strings(kernel["name"]), kernel["nodes"], strings(kernel["note"]), kernel["bytes"], kernel["runs"], kernel["ns"],
                     i - first[kernel["step"]]] for i, kernel in enumerate(kernels)],
        "buffers": [[strings(buffer["label"]), buffer["offset"], buffer["bytes"], *(first[buffer["step"]] + buffer[end] for end in ("first", "last"))]
                    for buffer in buffers if buffer["step"] in first],
    }  # fmt: skip
    yield {"stages": differences(program.get("stages", ()), graph, strings)}


def _match(base: list[dict], base_strings: Strings, programs: list[dict], strings: Strings) -> None:
    """Gives programs their counterparts in the first run, the most alike first. Programs of two plugins are alike as they are recorded.

    ``base``: its position. ``pairs``: for each node of the final graph, the position of the same one there or -1. ``recorded``: the same
    of the graphs as recorded, None where they have the same ops."""
    some, firsts = ({i: _ops(program, table) for i, program in enumerate(all_[:MOST_MATCHED]) if program["graph"]}
                    for all_, table in ((programs, strings), (base, base_strings)))
    recorded, base_recorded = ({i: (own,) for i, (own, _) in table.items()} for table in (some, firsts))
    for i, k in most_alike(recorded, base_recorded).items():
        (own, final), (first, base_final) = some[i], firsts[k]
        programs[i] |= {"base": k, "pairs": pair(final, base_final), "recorded": pair(own, first) if own != first else None}


def _ops(program: dict, strings: Strings) -> tuple[list[str], list[str]]:
    """As recorded, where that is known, and as it runs."""
    final = ops(program["graph"], strings)
    nodes = program["graph"]["nodes"]
    for stage in reversed(program.get("stages", ())):
        nodes = in_full(stage, nodes)
    return [strings.all[node[0]] for node in nodes], final


def _lanes(events: list[dict], run: dict) -> dict[int, str]:
    """Names of the threads that record, then of the queues, then of the device and its kernels."""
    threads: dict[int, set] = {}
    for event in events:
        if event["name"] not in ON_DEVICE:
            threads.setdefault(event["thread"], set()).add(event["name"])
    recording = sorted((thread for thread, names in threads.items() if names & set(WORK)), key=lambda thread: thread != run["thread"])
    lanes = {}
    for thread in recording:
        lanes[thread] = "Script: recording, compiling and waiting" if thread == run["thread"] else f"Thread {len(lanes) + 1}"
    for number, thread in enumerate([thread for thread in threads if thread not in lanes], 1):
        lanes[thread] = f"Queue {number}"
    names = {event["name"] for event in events}
    return lanes | {lane: title for name, (lane, title) in ON_DEVICE.items() if name in names}


def _events(events: list[dict], run: dict, strings: Strings) -> dict:
    """`columns` of numbers, in the order of begins, which are differences. `lanes`: the name and number of rows of each."""
    lanes = _lanes(events, run)
    numbers = {lane: i for i, lane in enumerate(lanes)}
    columns: dict[str, list] = {name: [] for name in COLUMNS}
    open_until: list[list[int]] = [[] for _ in lanes]  # of each row of each lane
    before = run["begin_ns"]
    for event in sorted(events, key=lambda event: (event["begin_ns"], -event["end_ns"])):
        begin, end = event["begin_ns"], event["end_ns"]
        lane = numbers[ON_DEVICE[event["name"]][0] if event["name"] in ON_DEVICE else event["thread"]]
        rows = open_until[lane]
        row = next((i for i, until in enumerate(rows) if until <= begin), len(rows))
        rows[row : row + 1] = [end]
        texts = (strings(event[name]) for name in ("name", "reason", "detail", "where"))
        rest = (event[name] for name in ("self_ns", "run", "program", "ops", "bytes"))
        for column, value in zip(columns.values(), (*texts, lane, row, begin - before, end - begin, *rest), strict=True):
            column.append(value)
        before = begin
    return {"lanes": [[name, len(rows)] for name, rows in zip(lanes.values(), open_until, strict=True)], "columns": columns}
