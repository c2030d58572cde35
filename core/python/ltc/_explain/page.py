"""The report as one HTML page. It holds its style, scripts, libraries and data, and needs no network.

The summary and the tables are HTML; the scripts of `assets` draw the timeline and the graphs from data that is packed beside them.
"""

import os
import re
from html import escape

from .comparison import comparison, lines_table
from .costs import without_backward
from .costs import WORK
from .markup import MOST_ROWS, change, letter, line_button, size
from .pack import pack_runs
from .text import size_text, time_text

MOST_BYTES = 2_000_000  # of the page
ASSETS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "assets")
SCRIPTS = ("d3-zoom.min.js", "common.js", "timeline.js", "layout.js", "graph.js", "kernels.js", "memory.js", "details.js", "page.js",
           "start.js")  # fmt: skip
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
        "compare": comparison(runs, names) if others else "",
        "lines": lines_table(runs, names),
        "findings": _findings(report),
        "finding_count": str(len(report["findings"])),
    }
    template = _asset("page.html")
    room = MOST_BYTES - len(template.encode()) - sum(len(text.encode()) for text in parts.values()) - 20_000
    packed, notes = pack_runs(runs, names, max(room, 100_000) // 4 * 3 // len(runs))
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


def _summary(report: dict) -> str:
    counters = report["counters"]
    tiles = [(time_text(report["seconds"] * 1e3), "in all"), (f"{report['steps']:,}", "steps"),
             (f"{report['device_ms'] / max(report['seconds'] * 1e3, 1e-9):.0%}", "of the time, the device is busy")]  # fmt: skip
    tiles += [(size(counters[name]) if name.startswith("Bytes") else f"{counters[name]:,}", text)
              for name, text in COUNTERS.items() if name in counters]  # fmt: skip
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td class="n">{count:,}</td></tr>' for name, count in counters.items())
    rows += "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in report["settings"].items())
    return (f"<p>On {escape(report['device'])}.</p>"
            f'<dl class="tiles">{"".join(f"<div><dt>{text}</dt><dd>{value}</dd></div>" for value, text in tiles)}</dl>'
            f"<details><summary>All counters and settings</summary><table>{rows}</table></details>")


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
    head = '<tr><td></td>' + "".join(f'<th scope="col">{letter(name)}</th>' for name in names) + "</tr>" if len(runs) > 1 else ""
    rows = "".join(f'<tr><th scope="row"><span class="dot {_kind(part)}"></span>{escape(part)}</th>'
                   + "".join(_part(run, part, runs[0] if i else None) for i, run in enumerate(runs)) + "</tr>" for part in parts)
    return f'{"".join(html)}<div class="scroll"><table class="parts">{head}{rows}</table></div>'


def _kind(part: str) -> str:
    """The class that colours it like its events."""
    return f"k-{_KINDS.get(part, 'other')}"


def _part(run: dict, part: str, base: dict | None) -> str:
    ms, whole = run["parts_ms"].get(part, 0), sum(run["parts_ms"].values()) or 1
    more = change(ms, base["parts_ms"].get(part, 0)) if base else ""
    return f'<td class="n">{time_text(ms)} <small>{ms / whole:.0%}</small>{more}</td>'


def _findings(report: dict) -> str:
    head = "".join(f'<th scope="col" aria-sort="none"><button data-sort="{i}">{name}</button></th>'
                   for i, name in enumerate(("Time", "Count", "Bytes", "Line", "What it is, and what to do")))
    rows = "".join(_finding(finding) for finding in report["findings"][:MOST_ROWS])
    left = len(report["findings"]) - MOST_ROWS
    note = f"<p>{left} more findings took less time and are left out.</p>" if left > 0 else ""
    return f'<div class="scroll"><table id="findings-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}'


def _finding(finding: dict) -> str:
    ms, count, bytes_ = finding["ms"], finding["count"], finding["bytes"]
    advice = f'<br><span class="advice">{escape(finding["advice"])}</span>' if finding["advice"] else ""
    numbers = (ms, time_text(ms) if count else ""), (count, f"{count:,}" if count else ""), (bytes_, size(bytes_) if bytes_ else "")
    cells = "".join(f'<td class="n" data-n="{number}">{text}</td>' for number, text in numbers)
    return (f'<tr data-line="{escape(without_backward(finding["where"]))}">{cells}'
            f'<td>{line_button(finding["where"])}<code>{escape(finding["source"])}</code></td><td>{escape(finding["what"])}{advice}</td></tr>')
