"""Runs PyTorch's operator database, and calls of rule_calls.py, and writes which ops each operator calls on the device.

Run by test_rules.py in a process of its own: argument 1 is the file for the answer, {operator: {"ops": [...], "failures": [...]}}.
"""

import json
import sys

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

import ltc
from comparing import assert_close
from rule_calls import CALLS
from sweep import run

SAMPLES = 2
DTYPES = ["float32", "int64", "bool"]
MODES = ["forward", "backward"]


class Calls(TorchDispatchMode):
    def __init__(self, names):
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function._schema.name + ("." + function._schema.overload_name).rstrip("."))
        return function(*args, **(kwargs or {}))


class Outcome(run.Outcome):
    """Notes what a program on the device calls."""

    names = set()

    def __init__(self, program, device, seed=0):
        if device == "cpu":
            super().__init__(program, device, seed)
            return
        with Calls(Outcome.names):
            super().__init__(program, device, seed)


def run_operator(op):
    Outcome.names = set()
    operator, failures = run.Operator(op, "ltc", ltc.metrics), []
    for mode in MODES:
        for dtype in DTYPES:
            if getattr(torch, dtype) in op.dtypes:
                tally = operator.run(mode, dtype, SAMPLES)
                failures += [f"{op.formatted_name} {mode} {dtype} [{failure['sample']}] {failure['message']}" for failure in tally["failures"]]
    return {"ops": sorted(Outcome.names), "failures": failures}


def run_call(rule):
    def results(device):
        generator = torch.Generator().manual_seed(0)
        result = CALLS[rule](lambda *sizes: torch.randn(*sizes, generator=generator).to(device))
        return [tensor.cpu() for tensor in (result if isinstance(result, (tuple, list)) else [result])]

    try:
        for ours, expected in zip(results("ltc"), results("cpu")):
            assert_close(ours, expected)
        return {"ops": [rule], "failures": []}
    except Exception as error:  # noqa: BLE001  whatever it is, the rule is wrong
        return {"ops": [rule], "failures": [f"{rule}: {error}"]}


def main():
    run.prepare()
    run.Outcome = Outcome
    run.NEAR = 2  # rules add up a thousand products in another order than the CPU's one kernel
    found = {op.formatted_name: run_operator(op) for op in op_db} | {rule: run_call(rule) for rule in CALLS}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
