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


def cost_of(name, marks=False, **variables):
    return json.loads(output_of(f"NAME, MARKS, TESTS = {name!r}, {marks}, {str(Path(__file__).parent)!r}\n{PROGRAM}", LTC_CACHE="0", **variables).splitlines()[-1])


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


def test_a_step_that_does_not_end_by_itself():
    compiles, ops, *_ = cost_of("training", LTC_AUTO_STEP="0")["end"]
    assert compiles == 1 and ops == SHAPES["training"].ops


def test_two_threads_at_their_own_pace():
    """Their ops mix in one trace, and the results are those of the CPU."""
    program = """
import threading
import torch
import ltc
from torch import nn

def train(device, seed, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.linspace(-1, 1, 24).add(seed).reshape(4, 6).to(device)
    for _ in range(60):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

models = {}
for device in ("cpu", "ltc"):
    torch.manual_seed(0)
    models[device] = [nn.Linear(6, 3).to(device) for _ in range(2)]
    threads = [threading.Thread(target=train, args=(device, seed, model)) for seed, model in enumerate(models[device])]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
for ours, theirs in zip(models["ltc"], models["cpu"]):
    torch.testing.assert_close(ours.weight.detach().cpu(), theirs.weight.detach())
print("equal")
"""
    assert output_of(program, LTC_CACHE="0").split() == ["equal"]
