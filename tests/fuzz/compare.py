"""Whether a program gives on the device what it gives on the CPU."""

import os

import torch

import ltc

EXACT_BELOW = {torch.float32: 2**22, torch.float64: 2**50}

# Tolerances of a network's results, relative to the largest element and absolute. The CPU adds up floats in double precision here and there, so it
# loses less than single precision may; a defect is seen in double precision.
NEAR = {torch.float32: (1e-2, 1e-4), torch.float64: (1e-12, 1e-12)}


def difference(program, kind, dtype):
    """None, or a sentence about the first difference."""
    expected = program.outcome("cpu", dtype)
    before = ltc.metrics.counter_value("RecoveredRuns")
    actual = program.outcome("ltc", dtype)
    if not isinstance(expected, dict):
        unread = isinstance(expected, IndexError) and isinstance(actual, dict)  # what nobody reads is not computed, and does not fail
        return None if unread or type(actual) is type(expected) else f"the CPU raises {expected!r}, the device {_said(actual)}"
    if not isinstance(actual, dict):
        return f"the device raises {_said(actual)}"
    if ltc.metrics.counter_value("RecoveredRuns") != before:
        return "a run failed on the device, and its ops did not when they ran one by one"
    if missing := expected.keys() ^ actual.keys():
        return f"one of the two has no {missing}"
    allowed = _exact if kind == "views" else _Measured(program, dtype, expected)
    for name, (value, geometry) in expected.items():
        ours, our_geometry = actual[name]
        compared = slice(None) if kind == "views" else slice(2)  # strides of views are PyTorch's
        if our_geometry[compared] != geometry[compared]:
            return f"{name} has dtype, sizes, strides and offset {our_geometry}, on the CPU {geometry}"
        if worst := _distance(ours, value, allowed(name, value)):
            return f"{name} is off by {worst}: {_excerpt(ours)} and on the CPU {_excerpt(value)}"
    return None


def _said(outcome):
    return repr(outcome) if isinstance(outcome, Exception) else "nothing"


def _excerpt(value):
    return value.flatten()[:8].tolist()


def _distance(ours, value, allowed):
    if not value.numel() or torch.equal(ours, value):
        return None
    if not value.is_floating_point():
        return "a whole number"
    worst = _apart(ours, value).max().item()
    return f"{worst:.3g}, more than {allowed:.3g}" if worst > allowed else None


def _apart(one, other):
    same = (one == other) | (one.isnan() & other.isnan())
    return (one.double() - other.double()).abs().masked_fill(same, 0).nan_to_num(torch.inf, torch.inf, torch.inf)


def _exact(_, value):
    """Whole numbers that a float holds are computed exactly; larger ones are rounded.

    The gradient of as_strided divides by how many elements share a place. In random layouts (LTC_TORCHSCRIPT_LAYOUTS) its parts are added up in
    another order than the CPU's."""
    if not value.is_floating_point() or not value.numel():
        return 0
    largest = value.double().abs().nan_to_num(0, 0, 0).max().item()
    is_exact = largest < EXACT_BELOW.get(value.dtype, 128) and not os.environ.get("LTC_TORCHSCRIPT_LAYOUTS")
    return 0 if is_exact else largest * 16 * torch.finfo(value.dtype).eps


class _Measured:
    """The tolerance NEAR, and some times the loss of the CPU: single beside double precision, and operands that are a last bit away."""

    TIMES = 30

    def __init__(self, program, dtype, expected):
        self.dtype, self.expected = dtype, expected
        self.other = program.outcome("cpu", torch.float64 if dtype == torch.float32 else torch.float32)
        self.nudged = program.outcome("cpu", dtype, nudges=True)

    def __call__(self, name, value):
        if not value.is_floating_point() or not value.numel():
            return 0
        largest = value.double().abs().nan_to_num(0, 0, 0).max().item()
        relative, absolute = NEAR[self.dtype]
        scale = torch.finfo(self.dtype).eps / torch.finfo(torch.float32).eps
        lost = scale * self.distance(self.other, name) + self.distance(self.nudged, name)
        return relative * largest + absolute + self.TIMES * lost

    def distance(self, run, name):
        return _apart(self.expected[name][0], run[name][0]).max().item() if isinstance(run, dict) and name in run else 0
