"""The report as one HTML page. It holds its style, scripts, libraries and data, and needs no network.

The summary and the tables are HTML; the scripts of `assets` draw the timeline and the graphs from data that is packed beside them.
"""

import base64
import json
import os
import re
import zlib
from html import escape

from .costs import WORK, spent_in_programs
from .graphs import ALIKE, Strings, likeness, ops, pair, parse
from .text import size_text, time_text

MOST_BYTES = 2_000_000  # of the page
MOST_FINDINGS = 400  # rows of a table
MOST_MATCHED = 50  # programs of a run that are compared with those of another, the ones that ran longest
ASSETS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "assets")
SCRIPTS = ("d3-zoom.min.js", "common.js", "timeline.js", "graph.js", "page.js")
COLUMNS = ("name", "reason", "detail", "where", "lane", "row", "begin", "length", "self", "run", "program", "ops", "bytes")
DEVICE = -1  # its lane, in the place of a thread
_BACKWARD = " (in its backward)"
_KINDS = {part: name for name, part in WORK.items()} | {"running short programs": "execute", "Python and recording": "python"}
COUNTERS = {"OpsRecorded": "ops recorded", "UncachedCompile": "programs compiled", "CachedCompile": "steps from the cache",
            "DiskCacheHits": "programs from the disk", "BytesToDevice": "sent to the device",
            "BytesFromDevice": "read from the device"}  # fmt: skip


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
    tiles += [(_size(counters[name]) if name.startswith("Bytes") else f"{counters[name]:,}", text)
              for name, text in COUNTERS.items() if name in counters]  # fmt: skip
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td class="n">{count:,}</td></tr>' for name, count in counters.items())
    rows += "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in report["settings"].items())
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
        shares = [(part, ms) for part in parts if (ms := run["parts_ms"].get(part, 0))]
        spans = "".join(f'<span class="{_kind(part)}" style="width:{100 * ms / longest:.3f}%" title="{escape(part)}: {time_text(ms)}">'
                        "</span>" for part, ms in shares)
        html.append((f"<p>{escape(name)}</p>" if len(runs) > 1 else "") + f'<div class="bar">{spans}</div>')
    head = '<tr><td></td>' + "".join(f'<th scope="col">{name.split(":")[0]}</th>' for name in names) + "</tr>" if len(runs) > 1 else ""
    rows = "".join(f'<tr><th scope="row"><span class="dot {_kind(part)}"></span>{escape(part)}</th>'
                   + "".join(_part(run, part, runs[0] if i else None) for i, run in enumerate(runs)) + "</tr>" for part in parts)
    return f'{"".join(html)}<div class="scroll"><table class="parts">{head}{rows}</table></div>'


def _kind(part: str) -> str:
    """The class that colours it like its events."""
    return f"k-{_KINDS.get(part, 'other')}"


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
    numbers = (ms, time_text(ms) if count else ""), (count, f"{count:,}" if count else ""), (size, _size(size) if size else "")
    cells = "".join(f'<td class="n" data-n="{number}">{text}</td>' for number, text in numbers)
    return (f'<tr data-line="{escape(finding["where"].removesuffix(_BACKWARD))}">{cells}'
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
            f'<div class="scroll"><table><thead><tr>{head}<th scope="col">Line</th><th scope="col">What it is</th></tr></thead>'
            f"<tbody>{body}</tbody></table></div>{left}</section>")


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
            all_ = len(run["events"])
            notes.append(f"The timeline{at} leaves out the shortest {all_ - len(events):,} of {all_:,} events, to keep the page small.")
        if left:
            notes.append(f"The graphs of {left:,} of {len(programs):,} programs{at}, which ran for the shortest time, are left out, "
                         "to keep the page small.")
    return packed, notes


def _sources(run: dict, strings: Strings) -> list[int]:
    """Lines and their texts, in turn."""
    found = {finding["where"].removesuffix(_BACKWARD): finding["source"] for finding in run["findings"] if finding["source"]}
    return [strings(text) for pair_ in found.items() for text in pair_]


def _programs(run: dict, strings: Strings, room: int) -> tuple[list[dict], int]:
    """Those that ran longest first, with their graphs as long as there is room; and how many have none."""
    spent = spent_in_programs(run["events"])
    programs, left = [], 0
    for program in sorted(run["programs"], key=lambda program: -spent.get(program["id"], [0])[0]):
        ns, runs = spent.get(program["id"], (0, 0))
        made = {key: program[key] for key in ("id", "ops", "host_steps", "from_disk")} | {"runs": runs, "ns": ns, "graph": None}
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
    """Gives programs their counterparts in the first run, the most alike first: `base`, its position, and `pairs`, for each node the
    position of the same one there or -1."""
    some, firsts = ([(i, ops(program["graph"], table)) for i, program in enumerate(all_[:MOST_MATCHED]) if program["graph"]]
                    for all_, table in ((programs, strings), (base, base_strings)))
    pairs = sorted(((likeness(own, first), -i, -k) for i, own in some for k, first in firsts), reverse=True)
    ops_of, base_ops_of = dict(some), dict(firsts)
    for like, i, k in pairs:
        if like >= ALIKE and -i in ops_of and -k in base_ops_of:
            programs[-i] |= {"base": -k, "pairs": pair(ops_of.pop(-i), base_ops_of.pop(-k))}


def _lanes(events: list[dict], run: dict) -> dict[int, str]:
    """Names of the threads that record, then of the queues, then of the device."""
    threads: dict[int, set] = {}
    for event in events:
        if event["name"] != "device":
            threads.setdefault(event["thread"], set()).add(event["name"])
    recording = sorted((thread for thread, names in threads.items() if names & set(WORK)), key=lambda thread: thread != run["thread"])
    lanes = {}
    for thread in recording:
        lanes[thread] = "Script: recording, compiling and waiting" if thread == run["thread"] else f"Thread {len(lanes) + 1}"
    for number, thread in enumerate([thread for thread in threads if thread not in lanes], 1):
        lanes[thread] = f"Queue {number}"
    if any(event["name"] == "device" for event in events):
        lanes[DEVICE] = "Device"
    return lanes


def _events(events: list[dict], run: dict, strings: Strings) -> dict:
    """`columns` of numbers, in the order of begins, which are differences. `lanes`: the name and number of rows of each."""
    lanes = _lanes(events, run)
    numbers = {lane: i for i, lane in enumerate(lanes)}
    columns: dict[str, list] = {name: [] for name in COLUMNS}
    open_until: list[list[int]] = [[] for _ in lanes]  # of each row of each lane
    before = run["begin_ns"]
    for event in sorted(events, key=lambda event: (event["begin_ns"], -event["end_ns"])):
        begin, end = event["begin_ns"], event["end_ns"]
        lane = numbers[DEVICE if event["name"] == "device" else event["thread"]]
        rows = open_until[lane]
        row = next((i for i, until in enumerate(rows) if until <= begin), len(rows))
        rows[row : row + 1] = [end]
        # Hashes of what was sent tell a reader nothing.
        detail = "" if event["name"] == "send" and event["detail"].startswith("contents ") else event["detail"]
        texts = (strings(text) for text in (event["name"], event["reason"], detail, event["where"]))
        rest = (event[name] for name in ("self_ns", "run", "program", "ops", "bytes"))
        for column, value in zip(columns.values(), (*texts, lane, row, begin - before, end - begin, *rest), strict=True):
            column.append(value)
        before = begin
    return {"lanes": [[name, len(rows)] for name, rows in zip(lanes.values(), open_until, strict=True)], "columns": columns}
