"""When the host recorded and the device ran: spans of both, to look at or to open in a trace viewer."""

import json

from . import _C


def start() -> None:
    """Begin to collect spans; forgets earlier ones."""
    _C.timeline_start()


def stop(path: str | None = None) -> list[dict]:
    """End collecting. Returns spans with ``name`` (barrier, compile, execute, upload, download, copy_from_peer, resize, recover),
    ``thread``, ``begin_ns``, ``end_ns`` and ``run``, the number of the program run. With ``path`` also writes them in Chrome's trace
    format."""
    spans = _C.timeline_stop()
    if path is not None:
        events = [
            {"name": s["name"], "ph": "X", "pid": 0, "tid": s["thread"] % 2**31, "ts": s["begin_ns"] / 1e3,
             "dur": (s["end_ns"] - s["begin_ns"]) / 1e3, "args": {"run": s["run"]}}
            for s in spans
        ]
        with open(path, "w") as file:
            json.dump({"traceEvents": events}, file)
    return spans
