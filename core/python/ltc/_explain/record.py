"""All that is known of a run: its timeline, costs, counters and settings."""

import builtins
import os
import platform
import sys
import sysconfig
import threading
import time
from dataclasses import dataclass, field

import torch

from .. import _C, metrics, timeline
from .._version import __version__
from .costs import QUEUE, WORK, Cost, device_runs, nest, sum_up


def _versions() -> dict[str, str]:
    return {"ltc": __version__, "torch": torch.__version__, "python": platform.python_version()}


@dataclass
class Record:
    title: str
    seconds: float
    events: list[dict]
    programs: list[dict]
    costs: list[Cost]
    counters: dict[str, int]
    settings: dict[str, str]  # the environment's LTC_*
    device: str
    begin_ns: int
    thread: int  # which ran the function or script
    dropped: int
    steps: int = 0  # barriers with ops
    parts: dict[str, float] = field(default_factory=dict)  # ms of the thread, by what it did
    device_ms: float = 0.0  # how long the devices computed
    versions: dict[str, str] = field(default_factory=_versions)


class Imports:
    """Notes the outermost imports of the calling thread: PyTorch imports parts of itself at their first use, for seconds."""

    def __init__(self):
        self.events: list[dict] = []
        self._thread, self._depth = threading.get_ident(), 0

    def start(self) -> None:
        self._import = builtins.__import__
        builtins.__import__ = self._timed

    def stop(self) -> None:
        builtins.__import__ = self._import

    def _timed(self, name, *args, **kwargs):
        if self._depth or name in sys.modules or threading.get_ident() != self._thread:
            return self._import(name, *args, **kwargs)
        self._depth += 1
        begin = time.monotonic_ns()
        try:
            return self._import(name, *args, **kwargs)
        finally:
            self._depth -= 1
            end = time.monotonic_ns()
            if end - begin >= LONG_IMPORT:
                self.events.append({"name": "import", "reason": "", "detail": name, "contents": 0, "where": _line_of_user(), "begin_ns": begin, "end_ns": end,
                                    "run": 0, "program": 0, "ops": 0, "bytes": 0})  # fmt: skip


LONG_IMPORT = 5_000_000  # ns
STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep


def _line_of_user() -> str:
    frame = sys._getframe(2)
    while frame:
        file = frame.f_code.co_filename
        if not file.startswith(("<frozen", STANDARD_LIBRARY)) and f"{os.sep}site-packages{os.sep}" not in file and os.path.dirname(__file__) not in file:
            return f"{os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Recording:
    """Collects from its entry to its exit, with an error too; then `record` is there."""

    def __init__(self, title: str):
        self._title = title
        self.record: Record | None = None

    def __enter__(self) -> "Recording":
        self._before = {name: metrics.counter_value(name) for name in metrics.counter_names()}
        self._start = time.perf_counter()
        self._imports = Imports()
        self._imports.start()
        timeline.start()
        return self

    def __exit__(self, *_) -> None:
        self._imports.stop()
        own_ns = time.monotonic_ns()  # what follows is no work of the script's
        try:
            _C.sync(None, True)
        except Exception as error:  # of a step that nobody has read: the report is worth more
            print(f"ltc: the last step failed: {error}", file=sys.stderr)
        seconds = time.perf_counter() - self._start
        collected = timeline.collect()
        events = [e for e in collected["events"] if e["begin_ns"] < own_ns or e["name"] not in ("barrier", "wait")]
        events += [{**event, "thread": collected["thread"]} for event in self._imports.events]
        nest(events)
        counters = {name: metrics.counter_value(name) - self._before.get(name, 0) for name in metrics.counter_names()}
        self.record = Record(
            self._title, seconds, events, collected["programs"], sum_up(events), {name: n for name, n in counters.items() if n},
            {name: value for name, value in os.environ.items() if name.startswith("LTC_")}, _device_name(), collected["begin_ns"],
            collected["thread"], collected["dropped"],
        )  # fmt: skip
        _measure(self.record)


def _device_name() -> str:
    try:
        return _C.device_properties(_C.current_device())["name"]
    except Exception:  # no device was used, or none can be opened
        return "no device"


def _measure(record: Record) -> None:
    events = record.events
    record.steps = sum(event["name"] == "barrier" and event["ops"] > 0 for event in events)
    spent = dict.fromkeys(WORK, 0.0)
    for event in events:
        if event["thread"] == record.thread and event["name"] in WORK and not event["is_part"]:
            spent[event["name"]] += event["self_ns"] / 1e6
    on_queue = sum(event["self_ns"] for event in events
                   if event["thread"] == record.thread and event["name"] in QUEUE and not event["is_part"]) / 1e6
    record.parts = {WORK[name]: ms for name, ms in spent.items()}
    record.parts["running short programs"] = on_queue
    record.parts["Python and recording"] = max(record.seconds * 1e3 - sum(record.parts.values()), 0.0)
    record.device_ms = sum(event["self_ns"] for event in device_runs(events)) / 1e6
