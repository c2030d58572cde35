"""When the host recorded and the device ran: spans of both, to look at or to open in a trace viewer."""

import json

from . import _C


def start() -> None:
    """Begin to collect spans; forgets earlier ones."""
    _C.timeline_start()


def stop(path: str | None = None) -> list[dict]:
    """End collecting. Returns spans in the order of their ends; with ``path`` also writes them in Chrome's trace format.

    ``name``: on threads that record, barrier, compile, load (of a program of the disk), read (of a value), send (of a value's bytes), fallback (an op on the CPU) or wait;
    on a device's queue, execute, host_step, upload, download, copy_from_peer, resize or recover; device: a run on an asynchronous device.
    ``reason`` and ``detail``: why. ``contents``: of a send, a hash of the bytes. ``where``: the Python line, if it is known. ``thread``, ``begin_ns`` and ``end_ns``: when. ``run``:
    the number of the run of a program. ``program``, ``ops`` and ``bytes``: 0 where they do not apply."""
    spans = collect()["events"]
    if path is not None:
        with open(path, "w") as file:
            json.dump({"traceEvents": [_event(span) for span in spans]}, file)
    return spans


def collect() -> dict:
    """The same with all around it: ``events``, ``programs`` that they name, ``begin_ns`` and ``end_ns`` of the timeline, ``thread`` that
    started it, and how many events were ``dropped`` behind the first million."""
    return _C.timeline_stop()


def _event(span: dict) -> dict:
    args = {key: span[key] for key in ("reason", "detail", "where", "run", "program", "ops", "bytes") if span[key]}
    return {"name": span["name"], "ph": "X", "pid": 0, "tid": span["thread"] % 2**31, "ts": span["begin_ns"] / 1e3,
            "dur": (span["end_ns"] - span["begin_ns"]) / 1e3, "args": args}
