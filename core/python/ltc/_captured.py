"""A function of a flat list that is recorded once per kind of call, and run from then on without being recorded."""

import os
import threading
import warnings
from collections.abc import Callable

from . import _C, _trace_log
from ._numbers import hand_out


class CapturedFunction:
    """``run`` takes and returns a list of tensors and other values. A call is of a kind that was met if its tensors have the dtypes,
    sizes, strides and aliasing of that one and its other values are equal. Numbers need not be: what was recorded for two values of
    a number tells what becomes of it, unless that is more than an operand of ops.

    may_look    whether ``run`` may depend on a number's value other than by handing it to ops
    on_refusal  called with the reason where ``run`` cannot be captured (it reads a value, say); from then on it is recorded at
                each call of a kind that was not met, as it is.
    """

    def __init__(self, run: Callable[[list], list], device: int, on_refusal: Callable[[str], None], may_look: bool):
        self.run, self.on_refusal, self.may_look = run, on_refusal, may_look
        self.captures = _C.Captures(device)
        self.call = self.captures.call
        self.lock = threading.RLock()
        self.compile_id = None  # of TorchDynamo's, for its log
        self._boxed_call = True  # AOTAutograd hands over a list, and frees what it holds
        if os.environ.get("LTC_EAGER") == "1":
            self._record_each_call()

    def entry(self) -> Callable[..., list]:
        """The function of its arguments one by one: where a call is of a kind that was met, no Python runs."""
        return self.captures.entry(lambda args: self._capture(args))

    def __call__(self, args: list) -> list:
        results = self.call(args)
        if results is None:
            results = self._capture(args)
        args.clear()
        return results

    def _capture(self, args: list) -> list:
        if _C.is_capturing():  # this call belongs to a larger function
            return self.run(args)
        with self.lock:
            if (results := self.call(args)) is not None:  # another thread was quicker
                return results
            try:
                with _trace_log.compile_id(self.compile_id):
                    return self._record(args)
            except Exception:
                reason = self.captures.abandon()
                if not reason:
                    raise
        self.on_refusal(reason)
        self._record_each_call()
        return self.run(args)

    def _record(self, args: list) -> list:
        given = self.captures.begin(args)
        if not self.may_look:
            return self.captures.finish(list(self.run(given)), [])
        watched = hand_out(given)
        try:
            results = list(self.run(given))
        except Exception:
            if not watched or self.captures.refusal():
                raise
            self.captures.abandon()  # perhaps it wants plain numbers
            return self.captures.finish(list(self.run(self.captures.begin(args))), list(watched))
        return self.captures.finish(results, [i for i, number in watched.items() if number.looked_at])

    def _record_each_call(self) -> None:
        self._capture = self.run


def warn_uncaptured(reason: str) -> None:
    warnings.warn(f"ltc records a compiled graph again at each call: {reason}", stacklevel=2)
