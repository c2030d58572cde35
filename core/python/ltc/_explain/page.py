"""The report as one HTML page. It holds its style, scripts, libraries and data, and needs no network.

The summary and the tables are HTML; the scripts of `assets` draw the timeline and the graphs from data that is packed beside them.
"""

import base64
import json
import os
import re
import zlib
from html import escape

from .costs import QUEUE, WORK
from .graphs import ALIKE, Strings, likeness, ops, pair, parse
from .text import size_text, time_text

MOST_BYTES = 2_000_000  # of the page
MOST_FINDINGS = 400  # rows of a table
ASSETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "assets")
SCRIPTS = ("d3-zoom.min.js", "common.js", "timeline.js", "graph.js", "page.js")
_BACKWARD = " (in its backward)"
_KINDS = {part: name for name, part in WORK.items()} | {"running short programs": "execute", "Python and recording": "python"}
COUNTERS = {"OpsRecorded": "ops recorded", "UncachedCompile": "programs compiled", "CachedCompile": "steps from the cache",
            "DiskCacheHits": "programs from the disk", "BytesToDevice": "sent to the device", "BytesFromDevice": "read from the device"}  # fmt: skip


def render(report: dict, others: list[dict] = ()) -> str:
    """The page of ``Report.to_dict()``. With `others`, also of those reports, each compared with the first."""
    runs = [report, *others]
    names = _names(runs)
    parts = {
        "title": escape(report["title"]),
        "style": _asset("page.css"),
        "scripts": "\n".join(f"<script>\n{_asset(name)}</script>" for name in SCRIPTS),
        "summary": _summary(report),
        "bars": _bars(runs, names),
        "compare": _compare(runs, names) if others else "",
        "findings": _findings(report),
        "finding_count": str(len(report["findings"])),
    }
    template = _asset("page.html")
    room = MOST_BYTES - len(template.encode()) - sum(len(text.encode()) for text in parts.values()) - 20_000
    packed, notes = _pack_runs(runs, names, max(room, 100_000) // 4 * 3 // len(runs))
    parts["data"] = "\n".join(f'<script type="text/plain" class="run">{data}</script>' for data in packed)
    parts["notes"] = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _asset(name: str) -> str:
    with open(os.path.join(ASSETS, name), encoding="utf-8") as file:
        return file.read()


def _names(runs: list[dict]) -> list[str]:
    if len(runs) == 1:
        return [runs[0]["title"]]
    return [f"{chr(65 + i) if i < 26 else i}: {run['title']} on {run['device']}" for i, run in enumerate(runs)]


# ---- what is HTML


def _summary(report: dict) -> str:
    counters = report["counters"]
    tiles = [(time_text(report["seconds"] * 1e3), "in all"), (f"{report['steps']:,}", "steps"),
             (f"{report['device_ms'] / max(report['seconds'] * 1e3, 1e-9):.0%}", "of the time, the device is busy")]  # fmt: skip
    tiles += [(_size(counters[name]) if name.startswith("Bytes") else f"{counters[name]:,}", text) for name, text in COUNTERS.items() if name in counters]
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td class="n">{count:,}</td></tr>' for name, count in counters.items())
    rows += "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(value))}</td></tr>' for name, value in report["settings"].items())
    return (f"<p>On {escape(report['device'])}.</p>"
            f'<dl class="tiles">{"".join(f"<div><dt>{text}</dt><dd>{value}</dd></div>" for value, text in tiles)}</dl>'
            f"<details><summary>All counters and settings</summary><table>{rows}</table></details>")


def _size(count: int) -> str:
    return size_text(count).removeprefix(", ") or "0 bytes"


def _bars(runs: list[dict], names: list[str]) -> str:
    """Where the time of the script's thread went: a stacked bar for each run, all to one scale."""
    longest = max(sum(run["parts_ms"].values()) for run in runs) or 1
    parts = sorted({name for run in runs for name in run["parts_ms"]}, key=lambda part: -max(run["parts_ms"].get(part, 0) for run in runs))
    parts = [part for part in parts if any(run["parts_ms"].get(part, 0) >= 0.001 * longest for run in runs)]
    html = []
    for run, name in zip(runs, names, strict=True):
        spans = "".join(f'<span class="k-{_KINDS.get(part, "other")}" style="width:{100 * ms / longest:.3f}%" title="{escape(part)}: {time_text(ms)}"></span>'
                        for part in parts if (ms := run["parts_ms"].get(part, 0)))
        html.append((f"<p>{escape(name)}</p>" if len(runs) > 1 else "") + f'<div class="bar">{spans}</div>')
    head = '<tr><td></td>' + "".join(f'<th scope="col">{name.split(":")[0]}</th>' for name in names) + "</tr>" if len(runs) > 1 else ""
    rows = "".join(f'<tr><th scope="row"><span class="dot k-{_KINDS.get(part, "other")}"></span>{escape(part)}</th>'
                   + "".join(_part(run, part, runs[0] if i else None) for i, run in enumerate(runs)) + "</tr>" for part in parts)
    return f'{"".join(html)}<div class="scroll"><table class="parts">{head}{rows}</table></div>'


def _part(run: dict, part: str, base: dict | None) -> str:
    ms, whole = run["parts_ms"].get(part, 0), sum(run["parts_ms"].values()) or 1
    change = _change(ms, base["parts_ms"].get(part, 0)) if base else ""
    return f'<td class="n">{time_text(ms)} <small>{ms / whole:.0%}</small>{change}</td>'


def _change(ms: float, before: float) -> str:
    """How much more or less; nothing below a tenth of a millisecond."""
    if abs(ms - before) < 0.1:
        return ""
    return f' <b class="{"more" if ms > before else "less"}">{"+" if ms > before else "-"}{time_text(abs(ms - before))}</b>'


def _line(where: str) -> str:
    """A button that selects the line."""
    if not where:
        return ""
    path = where.removesuffix(_BACKWARD)
    return f'<button class="line" data-line="{escape(path)}" title="{escape(where)}">{escape(short(where))}</button>'


def short(where: str) -> str:
    """Without the folders, but for the last one of a long path."""
    parts = where.split("/")
    return where if len(where) <= 40 or len(parts) < 3 else ".../" + "/".join(parts[-2:])


def _findings(report: dict) -> str:
    head = "".join(f'<th scope="col" aria-sort="none"><button data-sort="{i}">{name}</button></th>'
                   for i, name in enumerate(("Time", "Count", "Bytes", "Line", "What it is, and what to do")))
    rows = "".join(_finding(finding) for finding in report["findings"][:MOST_FINDINGS])
    left = len(report["findings"]) - MOST_FINDINGS
    note = f"<p>{left} more findings took less time and are left out.</p>" if left > 0 else ""
    return f'<div class="scroll"><table id="findings-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}'


def _finding(finding: dict) -> str:
    ms, count, size = finding["ms"], finding["count"], finding["bytes"]
    advice = f'<br><span class="advice">{escape(finding["advice"])}</span>' if finding["advice"] else ""
    return (f'<tr data-line="{escape(finding["where"].removesuffix(_BACKWARD))}">'
            f'<td class="n" data-n="{ms:.6f}">{time_text(ms) if count else ""}</td><td class="n" data-n="{count}">{f"{count:,}" if count else ""}</td>'
            f'<td class="n" data-n="{size}">{_size(size) if size else ""}</td>'
            f'<td>{_line(finding["where"])}<code>{escape(finding["source"])}</code></td><td>{escape(finding["what"])}{advice}</td></tr>')


def _compare(runs: list[dict], names: list[str]) -> str:
    """Findings of all runs, matched by cause and line, or by cause and text where the line has moved. The largest change stands first."""
    table: dict[tuple, list[dict | None]] = {}
    for i, run in enumerate(runs):
        by_text = {(row[0]["cause"], row[0]["source"]): key for key, row in table.items() if row[0]}
        for finding in run["findings"]:
            key = finding["cause"], finding["where"]
            if key not in table and finding["source"]:
                moved = by_text.get((finding["cause"], finding["source"]))
                key = moved if moved and table[moved][i] is None else key
            table.setdefault(key, [None] * len(runs))[i] = finding
    rows = sorted(table.values(), key=lambda row: -max(abs(_ms(one) - _ms(row[0])) for one in row))
    head = "".join(f'<th scope="col" class="n">{name.split(":")[0]}</th>' for name in names)
    body = "".join(_compared(row) for row in rows[:MOST_FINDINGS])
    left = f"<p>{len(rows) - MOST_FINDINGS} rows with smaller changes are left out.</p>" if len(rows) > MOST_FINDINGS else ""
    return (f'<section id="compare"><h2>Comparison</h2><ul>{"".join(f"<li>{escape(name)}</li>" for name in names)}</ul>'
            f'<div class="scroll"><table><thead><tr>{head}<th scope="col">Line</th><th scope="col">What it is</th></tr></thead><tbody>{body}</tbody></table></div>{left}</section>')


def _ms(finding: dict | None) -> float:
    return finding["ms"] if finding else 0.0


def _compared(row: list[dict | None]) -> str:
    first = next(finding for finding in row if finding)
    cells = []
    for i, one in enumerate(row):
        time = f"{time_text(one['ms'])} <small>{one['count']:,}x</small>" if one and one["count"] else "yes" if one else "none"
        cells.append(f'<td class="n">{time}{_change(_ms(one), _ms(row[0])) if i else ""}</td>')
    line = f'<td>{_line(first["where"])}<code>{escape(first["source"])}</code></td>'
    return f'<tr data-line="{escape(first["where"].removesuffix(_BACKWARD))}">{"".join(cells)}{line}<td>{escape(first["what"])}</td></tr>'


# ---- what the scripts draw


def _pack(value) -> str:
    data = json.dumps(value, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _pack_runs(runs: list[dict], names: list[str], room: int) -> tuple[list[str], list[str]]:
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
            notes.append(f"The timeline{at} leaves out the shortest {len(run['events']) - len(events):,} of {len(run['events']):,} events, to keep the page small.")
        if left:
            notes.append(f"The graphs of {left:,} of {len(programs):,} programs{at} are left out, to keep the page small. They ran for the shortest time.")
    return packed, notes


def _sources(run: dict, strings: Strings) -> list[int]:
    """Lines and their texts, in turn."""
    found = {finding["where"].removesuffix(_BACKWARD): finding["source"] for finding in run["findings"] if finding["source"]}
    return [strings(text) for pair_ in found.items() for text in pair_]


def _programs(run: dict, strings: Strings, room: int) -> tuple[list[dict], int]:
    """Those that ran longest first, with their graphs as long as there is room; and how many have none."""
    spent: dict[int, list[int]] = {}
    asynchronous = {event["run"] for event in run["events"] if event["name"] == "device"}
    for event in run["events"]:
        if event["program"] and (event["name"] == "device" or (event["name"] == "execute" and event["run"] not in asynchronous)):
            runs = spent.setdefault(event["program"], [0, 0])
            runs[0] += event["self_ns"]
            runs[1] += 1
    programs, left = [], 0
    for program in sorted(run["programs"], key=lambda program: -spent.get(program["id"], [0])[0]):
        ns, runs = spent.get(program["id"], (0, 0))
        made = {key: program[key] for key in ("id", "ops", "device_steps", "host_steps", "from_disk")} | {"runs": runs, "ns": ns, "graph": None}
        programs.append(made)
        if not (text := program.get("graph")):
            continue
        size = len(zlib.compress(text.encode(), 1))
        if size > room:
            left += 1
            continue
        room -= size
        try:
            made["graph"] = parse(text, strings)
        except ValueError as error:
            made["problem"] = str(error)
    return programs, left


def _match(base: list[dict], base_strings: Strings, programs: list[dict], strings: Strings) -> None:
    """Gives each program that has one its counterpart in the first run: `base`, a position, and `pairs`, a node of it for each node."""
    free = {i: ops(program["graph"], base_strings) for i, program in enumerate(base) if program["graph"]}
    for program in programs:
        if not program["graph"] or not free:
            continue
        own = ops(program["graph"], strings)
        best = max(free, key=lambda i: likeness(free[i], own))
        if likeness(free[best], own) >= ALIKE:
            program["base"], program["pairs"] = best, pair(own, free.pop(best))


def _events(events: list[dict], run: dict, strings: Strings) -> dict:
    """Columns of numbers, in the order of begins, which are differences. `lanes`: name and number of rows of each."""
    threads: dict[int, set] = {}
    for event in events:
        threads.setdefault(event["thread"], set()).add(event["name"])
    recording = [thread for thread, names in threads.items() if names & set(WORK)]
    recording.sort(key=lambda thread: thread != run["thread"])
    queues = [thread for thread, names in threads.items() if thread not in recording and names & QUEUE]
    has_device = any(event["name"] == "device" for event in events)
    lanes = [*(("thread", thread) for thread in recording), *(("queue", thread) for thread in queues), *([("device", 0)] if has_device else [])]
    number = {lane: i for i, lane in enumerate(lanes)}
    numbers = {"thread": 0, "queue": 0}
    names = []
    for kind, thread in lanes:
        if kind == "device":
            names.append("Device")
            continue
        numbers[kind] += 1
        names.append("Script: recording, compiling and waiting" if thread == run["thread"] else f"Thread {numbers[kind]}" if kind == "thread" else f"Queue {numbers[kind]}")
    columns: dict[str, list] = {key: [] for key in ("name", "reason", "detail", "where", "lane", "row", "begin", "length", "self", "run", "program", "ops", "bytes")}
    open_ends: list[list[int]] = [[] for _ in lanes]
    before = run["begin_ns"]
    for event in sorted(events, key=lambda event: (event["begin_ns"], -event["end_ns"])):
        thread = event["thread"]
        key = ("device", 0) if event["name"] == "device" else ("thread" if thread in recording else "queue", thread)
        lane = number[key]
        row = next((i for i, end in enumerate(open_ends[lane]) if end <= event["begin_ns"]), len(open_ends[lane]))
        open_ends[lane][row : row + 1] = [event["end_ns"]]
        # Hashes of what was sent tell a reader nothing.
        detail = "" if event["name"] == "send" and event["detail"].startswith("contents ") else event["detail"]
        values = (strings(event["name"]), strings(event["reason"]), strings(detail), strings(event["where"]), lane, min(row, 5), event["begin_ns"] - before,
                  event["end_ns"] - event["begin_ns"], event["self_ns"], event["run"], event["program"], event["ops"], event["bytes"])
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        before = event["begin_ns"]
    depths = [0] * len(lanes)
    for lane, row in zip(columns["lane"], columns["row"], strict=True):
        depths[lane] = max(depths[lane], row + 1)
    return {"lanes": [[name, depth] for name, depth in zip(names, depths, strict=True)], "columns": columns}
