"""The cost of each line of a script: the events of a timeline, summed by kind, reason and line."""

import bisect
import linecache
import re
from dataclasses import dataclass, field

QUEUE = {"execute", "host_step", "upload", "download", "copy_from_peer", "resize", "recover"}  # events of a device's queue
WORK = {"compile": "compiling", "load": "reading programs", "barrier": "queueing steps", "read": "waiting for values", "wait": "waiting for the device",
        "send": "sending values", "fallback": "ops on the CPU", "import": "importing modules"}  # events of threads that record


@dataclass
class Cost:
    """Events of one kind with one reason at one line. ``ms`` is without what other events took inside of them."""

    kind: str
    reason: str
    where: str
    detail: str = ""  # of the last one
    count: int = 0
    ms: float = 0.0
    bytes: int = 0
    ops: int = 0
    details: dict = field(default_factory=dict)  # how many had which, the first hundred
    contents: dict = field(default_factory=dict)  # likewise, of what was sent
    runs: int = 0  # of a compile: how often its programs ran
    steps: int = 0  # in how many it happened

    @property
    def source(self) -> str:
        return source_of(self.where)

    def add(self, other: "Cost") -> None:
        """Adds a cost of the same line."""
        self.count += other.count
        self.ms += other.ms
        self.bytes += other.bytes
        self.ops += other.ops
        self.runs += other.runs
        self.steps = max(self.steps, other.steps)


def without_backward(where: str) -> str:
    return where.removesuffix(" (in its backward)")


def source_of(where: str) -> str:
    """The text of a line such as "train.py:31"; empty where it cannot be read."""
    match = re.match(r"(.+):(\d+)$", without_backward(where))
    return linecache.getline(match[1], int(match[2])).strip() if match else ""


def sources(events: list[dict], programs: list[dict]) -> dict[str, str]:
    """The texts of all lines that events and ops name, where they can be read."""
    lines = {event["where"] for event in events}.union(*(re.findall("  # (.*)$", program["graph"], re.M) for program in programs))
    return {line: text for line in sorted(set(map(without_backward, lines))) if (text := source_of(line))}


def nest(events: list[dict]) -> None:
    """Adds ``self_ns``, the time of an event without that of those inside of it.

    A read or an op on the CPU has, of those inside of it, all but compiles and runs: they are its own, and get ``is_part``."""
    by_thread: dict[int, list[dict]] = {}
    for event in events:
        event["self_ns"] = event["end_ns"] - event["begin_ns"]
        event["is_part"] = event["name"] == "kernel"  # of the device's work
        if event["name"] not in ("device", "kernel"):
            by_thread.setdefault(event["thread"], []).append(event)
    for thread in by_thread.values():
        around: list[dict] = []
        for event in sorted(thread, key=lambda e: (e["begin_ns"], -e["end_ns"])):
            while around and around[-1]["end_ns"] <= event["begin_ns"]:
                around.pop()
            owner = next((e for e in reversed(around) if not e["is_part"]), None)
            event["is_part"] = owner is not None and owner["name"] in ("read", "fallback") and event["name"] not in ("compile", "load", "execute", "recover")
            if owner and not event["is_part"]:
                owner["self_ns"] -= event["end_ns"] - event["begin_ns"]
            around.append(event)


def device_runs(events: list[dict]) -> list[dict]:
    """Those of runs on devices. An asynchronous device says how long it computed; its queue only submits."""
    asynchronous = {event["run"] for event in events if event["name"] == "device"}
    return [event for event in events if event["name"] == "device" or (event["name"] == "execute" and event["run"] not in asynchronous)]


def spent_in_programs(events: list[dict]) -> dict[int, list[int]]:
    """By program: the time of its runs in ns, and how many there were."""
    spent: dict[int, list[int]] = {}
    for event in device_runs(events):
        if event["program"]:
            runs = spent.setdefault(event["program"], [0, 0])
            runs[0] += event["self_ns"]
            runs[1] += 1
    return spent


def _count(seen: dict, one) -> None:
    if len(seen) < 100 or one in seen:
        seen[one] = seen.get(one, 0) + 1


def sum_up(events: list[dict]) -> list[Cost]:
    """Costs in the order of their time. `events` are nested."""
    runs: dict[int, int] = {}
    for event in events:
        if event["name"] == "execute":
            runs[event["program"]] = runs.get(event["program"], 0) + 1
    ends = sorted(event["begin_ns"] for event in events if event["name"] == "barrier" and event["ops"])
    in_steps: dict[tuple, set[int]] = {}
    costs: dict[tuple, Cost] = {}
    for event in events:
        if event["is_part"]:
            continue
        key = event["name"], event["reason"], event["where"]
        cost = costs.setdefault(key, Cost(*key))
        cost.count += 1
        in_steps.setdefault(key, set()).add(bisect.bisect_right(ends, event["begin_ns"]))
        cost.steps = len(in_steps[key])
        cost.ms += event["self_ns"] / 1e6
        cost.bytes += event["bytes"]
        cost.ops += event["ops"]
        cost.detail = event["detail"] or cost.detail
        _count(cost.details, event["detail"])
        _count(cost.contents, event["contents"])
        if event["name"] in ("compile", "load"):
            cost.runs += runs.get(event["program"], 0)
    return sorted(costs.values(), key=lambda cost: -cost.ms)
