"""Snapshots of the device's memory and its history, as PyTorch's memory viewer reads them: https://pytorch.org/memory_viz."""

import pickle
import re
import sys
from functools import cache

from . import _C

_LINE = re.compile(r"(.+):(\d+) ?(.*)")
_LARGE = 1 << 20  # bytes: where PyTorch's large segments begin


def _record_memory_history(enabled: "str | None" = "all", context="all", stacks="all", max_entries: int = sys.maxsize, device=None,
                           clear_history: bool = False) -> None:
    """Record which line's values get and lose memory of the devices; the arguments are those of ``torch.cuda.memory``.

    ``enabled``: ``"all"`` keeps the last ``max_entries`` events, of all devices together. ``"state"`` keeps only the lines of values that
    have memory. ``None`` ends the recording and keeps its events. ``clear_history`` forgets earlier events. The history is one for all
    devices, and has the same frames for each ``context`` and ``stacks``: the line that recorded the value, with ``LTC_STACKS=1`` its
    whole stack."""
    if enabled not in (None, "state", "all"):
        raise ValueError(f"enabled is None, 'state' or 'all', not {enabled!r}")
    if enabled is None:
        _C.memory_history_stop()
    else:
        _C.memory_history_start(max_entries if enabled == "all" else 0, clear_history)


def _snapshot(device=None, augment_with_fx_traces: bool = False) -> dict:
    """``segments``, a list of the buffers that have memory now, and ``device_traces``, the events by device, in the format of
    ``torch.cuda.memory._snapshot``. Always of all devices in use. Waits for nothing; :func:`ltc.sync` does.

    A buffer is a segment of one block. Its address is a number that no other buffer of the device has. Frames are those of the user's
    program, also for graphs of ``torch.compile``, so that there is nothing to augment."""
    segments, traces = [], []
    for ordinal, held, events in _C.memory_snapshots():
        traces += [[] for _ in range(ordinal + 1 - len(traces))]
        segments += [_segment(ordinal, *buffer) for buffer in held if buffer[1] > 0]
        traces[ordinal] = [entry for event in events if event[2] > 0 or event[0] == "oom" for entry in _entries(*event)]
    return {"segments": segments, "device_traces": traces}


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Write a snapshot to a file that the memory viewer opens."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file, protocol=4)  # the viewer reads no later one


def memory_snapshot() -> list[dict]:
    """The buffers that have memory: the segments of :func:`_snapshot`."""
    return _snapshot()["segments"]


@cache
def _frames(where: str) -> list[dict]:
    """Frames of places such as "train.py:31", "train.py:31 (in its backward)", or "model.py:12 in forward, from train.py:31 in step"."""
    lines = filter(None, map(_LINE.fullmatch, where.split(", from ")))
    return [{"filename": line[1], "line": int(line[2]), "name": line[3].removeprefix("in ").strip("()")} for line in lines]


def _segment(ordinal: int, address: int, size: int, where: str) -> dict:
    block = {"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": _frames(where)}
    return {"device": ordinal, "address": address, "total_size": size, "allocated_size": size, "active_size": size, "requested_size": size,
            "stream": 0, "segment_type": "large" if size > _LARGE else "small", "segment_pool_id": (0, 0), "is_expandable": False,
            "frames": _frames(where), "blocks": [block]}


_ACTIONS = {"alloc": ("segment_alloc", "alloc"), "free": ("free_requested", "free_completed", "segment_free"), "oom": ("oom",)}


def _entries(kind: str, address: int, size: int, where: str, time_us: int, free: int) -> list[dict]:
    """A buffer's memory comes and goes at once, as far as the host knows."""
    more = {"device_free": free} if kind == "oom" else {"addr": address}
    return [{"action": action, **more, "size": size, "stream": 0, "time_us": time_us, "frames": _frames(where)}
            for action in _ACTIONS[kind]]
