"""The operator sweep: a slice of it, and that it finds what it is for."""

import os
import sys
from types import SimpleNamespace

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import ltc

CONFORMANCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance")
sys.path.insert(0, CONFORMANCE)
from sweep import pool, run  # noqa: E402
from sweep.cases import MODES  # noqa: E402
from sweep.compare import same_picks  # noqa: E402
from sweep.place import Place  # noqa: E402
from sweep.report import Report  # noqa: E402

SLICES = 4
DTYPES = ["float32", "int64", "bool"]


def check_operators(part, monkeypatch, **common):
    from torch.testing._internal.common_methods_invocations import op_db

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([CONFORMANCE, *filter(None, [os.environ.get("PYTHONPATH")])]))
    requests = [{"op": op.formatted_name, **common} for op in op_db[part::SLICES]]
    report = Report()
    for request, tallies, crash in pool.run_all(requests, shards=1, timeout_s=300):
        report.add(request["op"], tallies, crash)
    assert len(report.ops) == len(requests)
    assert report.total("counted") > len(common["modes"]) * len(requests)
    assert not report.failed(), report.text(limit=3)


@pytest.mark.parametrize("part", range(SLICES))
def test_slice(part, monkeypatch):
    """One sample of each operator, three dtypes, all modes."""
    check_operators(part, monkeypatch, modes=list(MODES), dtypes=DTYPES, samples=1)


@pytest.mark.parametrize("part", range(SLICES))
def test_slice_in_random_layouts(part, monkeypatch):
    """Results and gradients."""
    monkeypatch.setenv("LTC_TORCHSCRIPT_LAYOUTS", "random:1")
    check_operators(part, monkeypatch, modes=["backward"], dtypes=["float32", "bfloat16"], samples=1)


# ---- the sweep itself, on operators that are wrong in one way each


def fake_op(function, **fields):
    sample = SampleInput(torch.arange(6.0).reshape(2, 3))
    defaults = {"name": "fake", "op": function, "inplace_variant": None, "supports_out": False, "supports_autograd": False,
                "error_inputs_func": None, "sample_inputs": lambda *args, **kwargs: [sample]}
    return SimpleNamespace(**{**defaults, **fields})


def tally_of(function, mode="forward", **fields):
    return run.Operator(fake_op(function, **fields), "ltc", ltc.metrics).run(mode, "float32", 1)


def on_ltc(tensor):
    return tensor.device.type == "ltc"


def messages(tally):
    return [failure["message"] for failure in tally["failures"]]


def test_a_right_operator_passes():
    tally = tally_of(lambda x: x.exp())
    assert (tally["counted"], tally["passed"], tally["failures"]) == (1, 1, [])
    assert tally["same_strides"] == tally["strides"] == 1


@pytest.mark.parametrize("wrong, message", [
    (lambda x: x + on_ltc(x), "values"),
    (lambda x: x.double() if on_ltc(x) else x.exp(), "dtype"),
    (lambda x: x[:1] if on_ltc(x) else x.exp(), "shape"),
    (lambda x: x.exp().cpu(), "on cpu"),
    (lambda x: (x, x) if on_ltc(x) else (x,), "tuple of 2"),
    (lambda x: x.sum().item() + on_ltc(x), "values"),
    (lambda x: x.view(7) if on_ltc(x) else x.exp(), "raises RuntimeError"),
    (lambda x: x.exp() if on_ltc(x) else x.view(7), "raises no error"),
    (lambda x: x[9] if on_ltc(x) else x.view(7), "raises IndexError"),
])
def test_a_wrong_operator_is_found(wrong, message):
    tally = tally_of(wrong)
    assert (tally["counted"], tally["passed"]) == (1, 0)
    assert message in messages(tally)[0]


@pytest.mark.parametrize("function, tolerances, passed", [
    (lambda x: x * 2, 1.5, 0),
    (lambda x: (x - 1) * 1e4, 1.5, 1),
    (lambda x: (x - 1) * 1e4, 100, 0),
])
def test_where_the_last_bits_of_operands_decide_more_is_allowed(function, tolerances, passed):
    def inexact(x):
        return function(x) + tolerances * (1e-5 + 1.3e-6 * function(x).abs()) * on_ltc(x)

    sample = SampleInput(torch.full((3,), 1.001))
    assert tally_of(inexact, sample_inputs=lambda *args, **kwargs: [sample])["passed"] == passed


def shifted(x, off):
    """x with the rounding of a large number, on the device of another one; there the first element is off by so much."""
    shift = -64 if on_ltc(x) else 64
    result = (x + shift) - shift
    result[0, 0] += off * on_ltc(x)
    return result


@pytest.mark.parametrize("layouts, name, off, passed", [("random:1", "addbmm", 0, 1), ("random:1", "addbmm", 30, 0),
                                                        ("random:1", "fake", 0, 0), ("", "addbmm", 0, 0)])
@pytest.mark.parametrize("mode", ["forward", "inplace"])
def test_in_random_layouts_some_operators_may_round_otherwise(layouts, name, off, passed, mode, monkeypatch):
    torch.ones(1, device="ltc").cpu()  # the plugin looks at the variable when it is opened
    monkeypatch.setenv("LTC_TORCHSCRIPT_LAYOUTS", layouts)
    fields = {"name": name, "sample_inputs": lambda *args, **kwargs: [SampleInput(torch.rand(2, 5000).half() / 10)]}
    tally = tally_of(lambda x: shifted(x, off), mode=mode, inplace_variant=lambda x: x.copy_(shifted(x, off)), **fields)
    assert (tally["counted"], tally["passed"]) == (1, passed)


def test_a_run_that_failed_is_found(monkeypatch):
    monkeypatch.setattr(ltc.metrics, "counter_value", lambda name: int(name == "RecoveredRuns"))
    assert "a run failed" in messages(tally_of(lambda x: x.exp()))[0]


def test_the_same_error_passes():
    assert tally_of(lambda x: x.view(7))["passed"] == 1


def test_other_strides_are_reported_apart():
    tally = tally_of(lambda x: x.t().contiguous().t() if on_ltc(x) else x.clone())
    assert tally["passed"] == 1
    assert (tally["strides"], tally["same_strides"]) == (1, 0)


def test_writing_outside_of_the_output_is_found():
    def exp(x, out=None):
        if out is None:
            return x.exp()
        result = torch.exp(x, out=out)
        if on_ltc(x) and out.storage_offset():
            out.as_strided((1,), (1,), 0).fill_(7)
        return result

    tally = tally_of(exp, mode="out_view", supports_out=True)
    assert tally["counted"] == 2 and len(tally["failures"]) == 2
    assert tally_of(torch.exp, mode="out_view", supports_out=True)["passed"] == 2


def test_an_output_may_hold_what_the_operator_gives_without_one():
    def exp_with(error):
        def exp(x, out=None):
            if out is None:
                return x.exp()
            return out.copy_(x.exp() * (1 + error if on_ltc(x) else 1 + 1e-5))  # the CPU's is 8 tolerances away

        return exp

    assert tally_of(exp_with(0), mode="out_view", supports_out=True)["passed"] == 2
    assert tally_of(exp_with(-1e-5), mode="out_view", supports_out=True)["passed"] == 0


@pytest.mark.parametrize("mode, cases", [("out", 2), ("out_view", 2), ("inplace", 1), ("inplace_view", 2)])
def test_memory_may_hold_what_is_as_near_to_double_precision_as_the_cpus(mode, cases):
    def exp_with(error):
        def exp(x, out=None):
            result = x.exp()
            if x.dtype == torch.float32:
                result = result * (1 + (error if on_ltc(x) else 1e-5))  # the CPU's is 8 tolerances away
            return result if out is None else out.copy_(result)

        return {"function": exp, "mode": mode, "supports_out": True, "inplace_variant": lambda x: exp(x, out=x)}

    assert tally_of(**exp_with(-1e-6))["failures"] == []
    assert len(tally_of(**exp_with(-3e-5))["failures"]) == cases


def test_an_in_place_operator_that_misses_its_view_is_found():
    def double_(x):
        return x.set_(x * 2) if on_ltc(x) else x.mul_(2)

    tally = tally_of(None, mode="inplace_view", inplace_variant=double_)
    assert tally["counted"] == 2 and tally["passed"] == 0
    assert tally_of(None, mode="inplace_view", inplace_variant=lambda x: x.mul_(2))["passed"] == 2


def test_a_wrong_gradient_is_found():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * x * (3 if on_ltc(x) else 2)

    fields = {"supports_autograd": True, "supported_backward_dtypes": lambda device: {torch.float32},
              "sample_inputs": lambda *args, requires_grad: [SampleInput(torch.rand(3).requires_grad_(requires_grad))]}
    assert "values" in messages(tally_of(Square.apply, mode="backward", **fields))[0]
    assert tally_of(torch.square, mode="backward", **fields)["passed"] == 1


def test_indices_may_differ_among_equal_elements():
    x = torch.tensor([2.0, 1.0, 1.0])
    values, gradient = torch.tensor([1.0, 1.0, 2.0]), torch.tensor([3.0, 1.0, 2.0])
    one = ((values, torch.tensor([1, 2, 0])), (gradient,))
    other = ((values, torch.tensor([2, 1, 0])), (gradient[[0, 2, 1]],))
    wrong = ((values, torch.tensor([2, 0, 1])), (gradient,))
    assert same_picks(x, one, other)
    assert not same_picks(x, one, (other[0], (gradient,)))
    assert not same_picks(x, one, wrong)
    assert not same_picks(x, one[1], other[1])
    assert same_picks(x.long(), (values.long(), one[0][1]), (values.long(), other[0][1]))


def test_random_numbers_are_compared_by_distribution():
    def tally(function):
        return tally_of(function, sample_inputs=lambda *args, **kwargs: [SampleInput(torch.empty(20, 20))])

    assert tally(lambda x: x.uniform_())["random"] == tally(lambda x: x.uniform_())["passed"] == 1
    assert "distributions" in messages(tally(lambda x: x.uniform_(0, 2) if on_ltc(x) else x.uniform_()))[0]


def test_what_the_cpu_does_not_agree_on_is_not_counted():
    calls = []
    tally = tally_of(lambda x: x + (calls.append(x) or len(calls)))
    assert (tally["counted"], tally["uncounted"]) == (0, 1)


def test_each_temporary_is_placed_as_itself():
    place = Place("ltc")
    assert [place(torch.full((2,), i)).tolist() for i in range(50)] == [[i, i] for i in range(50)]


def test_what_never_reaches_the_device_is_not_counted():
    tally = tally_of(lambda end: torch.arange(end), sample_inputs=lambda *args, **kwargs: [SampleInput(3)])
    assert (tally["counted"], tally["uncounted"]) == (0, 1)


def test_fallbacks_are_counted():
    tally = tally_of(lambda x: x.nonzero())
    assert tally["fell_back"] == tally["passed"] == 1
    assert tally["fallbacks"] == {"aten::nonzero": 1}


WORKER = """
import json, os, sys, time
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    op = json.loads(line)["op"]
    print(json.dumps({"at": "forward float32"}), flush=True)
    if op == "crash": os.abort()
    if op == "exit": sys.exit(3)
    if op == "hang": time.sleep(60)
    print(json.dumps({"tally": op}), flush=True)
    print(json.dumps({"done": True}), flush=True)
"""


@pytest.mark.parametrize("shards", [1, 2])
def test_a_crash_or_a_hang_costs_one_operator(shards):
    names = ["first", "crash", "second", "exit", "hang", "last"]
    requests = [{"op": name} for name in names]
    command = [sys.executable, "-c", WORKER]
    ends = {request["op"]: (tallies, end) for request, tallies, end in pool.run_all(requests, shards, timeout_s=3, command=command)}
    assert {name for name, (tallies, end) in ends.items() if end is None and tallies == [{"tally": name}]} == {"first", "second", "last"}
    assert ends["crash"] == ([], "crashed with signal 6 in forward float32")
    assert ends["exit"] == ([], "exited with status 3 in forward float32")
    assert ends["hang"] == ([], "timed out in forward float32")


def test_a_worker_that_does_not_start_is_an_error():
    with pytest.raises(RuntimeError, match="does not start"):
        list(pool.run_all([{"op": "any"}], 1, 3, command=[sys.executable, "-c", "raise SystemExit(1)"]))
