"""Streams and events of ``torch.ltc``. A device has one in-order queue, so it has one stream: all stream objects of a device mean
that one, and waiting for another stream's work is always in effect."""

import torch

from ._index import index_of


class _OfThisDevice(type):
    """``isinstance`` for classes whose constructor gives PyTorch's own type, which its functions accept no subclass of."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.base) and instance.device.type == "ltc"


class Stream(metaclass=_OfThisDevice):
    """``Stream(device=None, priority=0)``: the device's queue, as a ``torch.Stream``."""

    base = torch.Stream

    def __new__(cls, device=None, priority: int = 0):
        return torch.Stream(device=torch.device("ltc", index_of(device)), priority=priority)


class Event(metaclass=_OfThisDevice):
    """``Event(enable_timing=False)``: a point in a queue, as a ``torch.Event``. It is reached when all that was recorded before has
    run. To ask or to wait ends the step, as ``ltc.mark_step()`` does, if the point is in it; to record one does not. One with timing
    does, and makes the queue wait there for the device."""

    base = torch.Event

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        if interprocess:
            raise NotImplementedError("events of device ltc cannot be shared between processes")
        return torch.Event("ltc", enable_timing=enable_timing, blocking=blocking)


def current_stream(device=None) -> torch.Stream:
    return Stream(device)


default_stream = current_stream


def set_stream(stream: torch.Stream) -> None:
    """Nothing to set: the device has this stream only. Refuses one of another device."""
    if not isinstance(stream, Stream):
        raise ValueError(f"expected a stream of device ltc, not {stream!r}")


class StreamContext:
    """``with torch.ltc.stream(s):`` for programs that have it; there is one stream, so nothing changes. ``None`` is accepted."""

    def __init__(self, stream: torch.Stream | None):
        if stream is not None:
            set_stream(stream)
        self.stream = stream

    def __enter__(self):
        return self.stream

    def __exit__(self, *exception):
        return False


stream = StreamContext
