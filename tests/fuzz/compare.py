"""Whether a program gives on the device what it gives on the CPU."""

import torch

EXACT_BELOW = {torch.float32: 2**22, torch.float64: 2**50}


def difference(program, kind, dtype):
    """None, or a sentence about the first difference."""
    expected = program.outcome("cpu", dtype)
    actual = program.outcome("ltc", dtype)
    if not isinstance(expected, dict):
        unread = isinstance(expected, IndexError) and isinstance(actual, dict)  # what nobody reads is not computed, and does not fail
        return None if unread or type(actual) is type(expected) else f"the CPU raises {expected!r}, the device {_said(actual)}"
    if not isinstance(actual, dict):
        return f"the device raises {_said(actual)}"
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
    """Whole numbers that a float holds are computed exactly; larger ones are rounded."""
    if not value.is_floating_point() or not value.numel():
        return 0
    largest = value.double().abs().nan_to_num(0, 0, 0).max().item()
    return 0 if largest < EXACT_BELOW.get(value.dtype, 128) else largest * 16 * torch.finfo(value.dtype).eps


class _Measured:
    """A few roundings, and some times what single precision changes on the CPU: of everything, or of what the program is given alone."""

    def __init__(self, program, dtype, expected):
        self.eps = torch.finfo(dtype).eps
        single, double = (expected if each == dtype else program.outcome("cpu", each) for each in (torch.float32, torch.float64))
        rounded = program.outcome("cpu", torch.float64, rounds=True)
        runs = (double, single, rounded)
        self.double, *self.others = runs if all(isinstance(run, dict) for run in runs) else ({},)

    def __call__(self, name, value):
        if not value.is_floating_point() or not value.numel():
            return 0
        largest = value.double().abs().nan_to_num(0, 0, 0).max().item()
        allowed = 64 * self.eps * (largest + 0.1)
        if self.eps > 1e-8:  # the CPU adds up in double precision here and there, so it loses less than single precision may
            allowed += 0.01 * largest + 2e-5
        if name in self.double:
            lost = max(_apart(self.double[name][0], other[name][0]).max().item() for other in self.others)
            allowed += 30 * lost * self.eps / torch.finfo(torch.float32).eps
        return allowed
