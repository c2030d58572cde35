"""The report as text: at most 30 lines."""

import shutil

from .causes import Finding
from .costs import spent_in_programs
from .record import Record

MOST_LINES = 30
SMALL = 0.01  # of the whole: less is not worth a line
LARGE = 64 << 20  # bytes: worth one at any rate


def render(record: Record, findings: list[Finding]) -> str:
    width = max(min(shutil.get_terminal_size((110, 0)).columns, 160), 60)
    lines = [*_summary(record), *_parts(record)]
    programs = _programs(record)
    room = MOST_LINES - len(lines) - len(programs) - 3
    lines += ["", "What cost most, and what to do:", *_findings(record, findings, room)]
    return "\n".join(_cut(text, width) for text in [*lines, *programs][:MOST_LINES]) + "\n"


def _cut(text: str, width: int) -> str:
    return text.rstrip() if len(text) <= width else f"{text[:width - 3]}..."


def _summary(record: Record) -> list[str]:
    compiled, found = record.counters.get("UncachedCompile", 0), record.counters.get("CachedCompile", 0)
    from_disk = record.counters.get("DiskCacheHits", 0)
    share = record.device_ms / max(record.seconds * 1e3, 1e-9)
    return [
        f"ltc explain: {record.title} on {record.device}, {time_text(record.seconds * 1e3)}",
        f"{record.steps} steps of {record.counters.get('OpsRecorded', 0)} ops; {compiled} programs compiled, {from_disk} from the disk, {found} steps from the cache",
        f"the device computed {share:.0%} of the time; the script's thread:",
        *([f"{record.dropped} events behind the first million are missing below"] if record.dropped else []),
    ]  # fmt: skip


def _parts(record: Record) -> list[str]:
    whole = record.seconds * 1e3
    parts = sorted(record.parts.items(), key=lambda part: -part[1])
    return [f"{time_text(ms):>9} {ms / whole:5.0%}  {name}" for name, ms in parts if ms >= SMALL * whole]


def _findings(record: Record, findings: list[Finding], room: int) -> list[str]:
    """Two or three lines each, as many as there is room for: those with something to do that are worth it."""
    whole = record.seconds * 1e3
    worth = [f for f in findings if f.cause.advice and (f.cost.kind == "run" or f.cost.ms >= SMALL * whole or f.cost.bytes >= LARGE)]
    lines: list[str] = []
    for index, finding in enumerate(worth):
        entry = _entry(finding)
        if len(lines) + len(entry) > room - (index + 1 < len(worth)):
            return [*lines, f"{'':18}and {len(worth) - index} more: --json FILE has all"]
        lines += entry
    return lines or [f"{'':9} nothing: no line cost more than {SMALL:.0%} of the time"]


def _entry(finding: Finding) -> list[str]:
    cost = finding.cost
    what = f"{finding.text()}{size_text(cost.bytes)}"
    if not cost.where:
        first = [f"{time_text(cost.ms) if cost.count else '':>9} {f'{cost.count}x' if cost.count else '':>7}  {what}"]
    else:
        first = [f"{time_text(cost.ms):>9} {cost.count:>6}x  {cost.where}  {cost.source}", f"{'':19}{what}"]
    return [*first, f"{'':19}-> {finding.cause.advice}"]


def _programs(record: Record) -> list[str]:
    """Those that ran longest."""
    spent = spent_in_programs(record.events)
    facts = {program["id"]: program for program in record.programs}
    longest = sorted(spent.items(), key=lambda item: -item[1][0])[:3]
    lines = []
    for id_, (ns, runs) in longest:
        program = facts.get(id_)
        parts = f", {program['host_steps']} parts of it on the CPU" if program and program["host_steps"] else ""
        lines.append(f"{time_text(ns / 1e6):>9} {runs:>6}x  program {id_}: {program['ops'] if program else '?'} ops{parts}")
    return ["", "Programs that ran longest:", *lines] if lines else []


def time_text(ms: float) -> str:
    return f"{ms / 1e3:.2f} s" if ms >= 1e3 else f"{ms:.1f} ms" if ms >= 0.1 else f"{ms * 1e3:.0f} us"


def size_text(count: int) -> str:
    if count < 1024:
        return f", {count} bytes" if count else ""
    for unit in ("KB", "MB", "GB"):
        count /= 1024
        if count < 1024:
            break
    return f", {count:.1f} {unit}"
