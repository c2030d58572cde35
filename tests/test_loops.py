"""Programs of many shapes without mark_step(): what is compiled, and when, and that no op is computed twice."""

import json
from pathlib import Path

import pytest

from comparing import output_of
from loops import SHAPES, TURNS

# Runs a loop on the CPU and on the device, in a process of its own, since programs are kept for its life.
PROGRAM = """
import json
import sys

import torch

import ltc
sys.path.insert(0, TESTS)
from comparing import LTC, assert_same
from loops import SHAPES

def counters():
    ltc.wait_device_ops()
    count = ltc.metrics.counter_value
    return [count("UncachedCompile"), count("OpsRun"), count("OpsRecorded"), count("MarkStep")]

def result(turns, after_turn=lambda: None):
    while True:
        try:
            next(turns)
        except StopIteration as end:
            return end.value
        after_turn()

run, by_turn = SHAPES[NAME].run, []
torch.set_num_threads(1)
found = result(run(LTC), lambda: (ltc.mark_step() if MARKS else None, by_turn.append(counters())))
expected = result(run(torch.device("cpu")))
if isinstance(expected, torch.Tensor) and found.device.type == "cpu":
    assert torch.equal(found, expected)
else:
    assert_same(found, expected)
print(json.dumps({"turns": by_turn, "end": counters()}))
"""


def cost_of(name, marks=False):
    return json.loads(output_of(f"NAME, MARKS, TESTS = {name!r}, {marks}, {str(Path(__file__).parent)!r}\n{PROGRAM}", LTC_CACHE="0").splitlines()[-1])


@pytest.mark.parametrize("name", SHAPES)
def test_a_loop_without_marks(name):
    shape, cost = SHAPES[name], cost_of(name)
    compiles = [compiled for compiled, *_ in cost["turns"]]
    last = next(turn for turn in range(TURNS) if compiles[turn] == compiles[-1])
    total, ops, recorded, marks = cost["end"]
    assert (total, last, ops) == (shape.compiles, shape.turns, shape.ops)
    assert ops <= recorded
    assert marks == 0


@pytest.mark.parametrize("name", SHAPES)
def test_as_many_ops_run_as_with_marks(name):
    """Nearly: a view that is read in two programs is an op of each."""
    marked = cost_of(name, marks=True)["end"][1]
    assert 0.85 * marked <= SHAPES[name].ops <= 1.03 * marked
