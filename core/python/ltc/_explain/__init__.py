"""Where the time of a script or function went, by its lines, with what to do about it."""

import functools
import json
from typing import Any

from .causes import Finding, find
from .costs import sources
from .record import Record, Recording
from .text import render


class Report:
    """``str(report)`` is a text of at most 30 lines. ``result``: what the function returned."""

    def __init__(self, record: Record, result: Any = None):
        self.record, self.result = record, result
        self.findings: list[Finding] = find(record)

    def __str__(self) -> str:
        return render(self.record, self.findings)

    __repr__ = __str__

    def to_dict(self) -> dict:
        """All of it in numbers, strings, lists and dicts."""
        record = self.record
        return {
            "format": 1, "title": record.title, "device": record.device, "seconds": record.seconds, "steps": record.steps,
            "parts_ms": record.parts, "device_ms": record.device_ms, "counters": record.counters, "settings": record.settings,
            "versions": record.versions,
            "findings": [
                {"cause": f.cause.name, "what": f.text(), "advice": f.cause.advice, "kind": f.cost.kind, "reason": f.cost.reason,
                 "where": f.cost.where, "source": f.cost.source, "detail": f.cost.detail, "count": f.cost.count, "ms": f.cost.ms,
                 "bytes": f.cost.bytes}
                for f in self.findings
            ],
            "programs": record.programs, "sources": sources(record.events, record.programs), "begin_ns": record.begin_ns,
            "thread": record.thread, "dropped": record.dropped, "events": record.events,
        }  # fmt: skip

    def save(self, path: str) -> None:
        """Writes :meth:`to_dict` as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file)

    def save_page(self, path: str, others: list[dict] = ()) -> None:
        """Writes one HTML page that needs no network. ``others``: reports as :func:`read` gives them, to compare with."""
        from .page import render as render_page

        with open(path, "w", encoding="utf-8") as file:
            file.write(render_page(self.to_dict(), others))


def read(path: str) -> dict:
    """A saved report. Throws OSError, and ValueError for a file that is none."""
    with open(path, encoding="utf-8") as file:
        try:
            report = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path} is no report of ltc explain: {error}") from None
    if not isinstance(report, dict) or report.get("format") != 1:
        raise ValueError(f"{path} is no report of ltc explain that this version reads")
    return report


def explain(function):
    """``explain(function)(*args)`` calls it once and returns the :class:`Report` of that call, to the end of all that it queued.

    Programs that are in the cache are found there: call the function before, for the costs of a later call."""
    name = getattr(function, "__qualname__", None) or type(function).__name__

    @functools.wraps(function, updated=())
    def explained(*args, **kwargs) -> Report:
        with Recording(name) as recording:
            result = function(*args, **kwargs)
        return Report(recording.record, result)

    return explained
