#!/usr/bin/env python3
"""Runs every row of the table of models on the CPU and on the device, and writes docs/models.md.

    ./dev python tests/model_table.py

Its figures come from the machine that runs it; tests/test_models.py checks those that must hold everywhere.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch

import ltc
from checking import STEPS, TOKENS, WARM_UP, Trainer, batches, fallbacks, generate, train, train_on_device
from comparing import LTC
from models import ROWS, hugging_face

TIMED_BLOCKS = 10  # of STEPS training steps
HEADER = f"""\
# Models

Written by `./dev python tests/model_table.py`; change the models in `tests/models/`, not this file.

Each model is small and has random weights. It is compared with the same model on the CPU: one evaluation, then {STEPS} training steps on
fresh batches. The columns evaluation, gradients and losses give the largest absolute differences. Gradients are those of the first step.

- ops: number of ops recorded in one training step.
- compiles: number of programs compiled, none of them after step {WARM_UP}.
- fallbacks: ops that the CPU ran instead of the plugin, `torchscript`.
- time: time of one training step as a ratio to eager's, on one thread; the best of {TIMED_BLOCKS} blocks of {STEPS} steps. At these
  sizes a step spends its time on recording and starting ops.
- minimal, opencl: the same training on these plugins, which claim the minimal opset only: the largest relative difference of a
  loss, and the number of ops that the CPU ran instead.

## Training

"""
ELSEWHERE = ("minimal", "opencl")
TRAINING = ("model", "parameters", "ops", "compiles", "fallbacks", "evaluation", "gradients", "losses", "time", *ELSEWHERE)

GENERATION_HEADER = f"""
## Generation

Greedy, with the key-value cache, {TOKENS} new tokens. The table compares them with the CPU's. Every token makes the cache longer, so its
shapes are new. The first text compiles one to three programs for each length, as the loop reads values in between. A second text compiles none.

"""
GENERATION = ("model", "same tokens", "compiles, first text", "compiles, second text", "fallbacks")


def difference(one, other):
    """The largest absolute difference between two trees of tensors or numbers."""
    if isinstance(other, dict):
        return max(difference(one[name], other[name]) for name in other)
    if isinstance(other, (tuple, list)):
        return max(map(difference, one, other))
    return (one - other).abs().max().item() if isinstance(one, torch.Tensor) else abs(one - other)


def time_ratio(row):
    """The device's time for a training step as a share of the CPU's; blocks of both in turn, as other programs come and go."""
    trainers = [(Trainer(row, device), batches(row, device)) for device in (LTC, torch.device("cpu"))]
    best = [float("inf"), float("inf")]
    for block in range(1 + TIMED_BLOCKS):  # the first compiles
        for k, (trainer, data) in enumerate(trainers):
            begin = time.perf_counter()
            for batch in data:
                trainer.step(batch)
            ltc.wait_device_ops()
            if block > 0:
                best[k] = min(best[k], time.perf_counter() - begin)
    return best[0] / best[1]


def trained_on(plugin):
    """By model, its cell of the plugin's column."""
    program = Path(__file__).with_name("train_models.py")
    run = subprocess.run([sys.executable, program], env={**os.environ, "LTC_BACKEND": plugin}, stdout=subprocess.PIPE, check=True)
    cells = {}
    for name, found in json.loads(run.stdout.splitlines()[-1]).items():
        if "error" in found:
            sys.exit(f"{name} on {plugin}: {found['error']}")
        share = max(abs(ours - theirs) / abs(theirs) for ours, theirs in zip(*found["losses"]))
        cells[name] = f"{share:.0e}, {sum(found['fallbacks'].values())}"
    return cells


def training_line(row, elsewhere):
    expected = train(row, "cpu")
    actual, cost = train_on_device(row)
    differences = [
        difference(actual.evaluated, expected.evaluated),
        difference(actual.gradients, expected.gradients),
        difference(actual.losses, expected.losses),
    ]
    return (row.name, f"{actual.parameters:,}", cost.ops, cost.compiles, sum(cost.fallbacks.values()),
            *(f"{value:.0e}" if value else "0" for value in differences), f"{time_ratio(row):.1f}", *elsewhere)  # fmt: skip


def generation_line(name):
    ltc.metrics.reset()
    model = hugging_face.GENERATORS[name]
    (expected, _), (tokens, compiles) = generate(*model, "cpu"), generate(*model, LTC)
    same = all(map(torch.equal, tokens, expected))
    return name, "yes" if same else "no", *compiles[:2], sum(fallbacks().values())


def table(head, lines):
    lines = [[str(cell) for cell in line] for line in (head, *lines)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    lines.insert(1, ["-" * width for width in widths])
    return "".join("| " + " | ".join(map(str.ljust, line, widths)) + " |\n" for line in lines)


def main():
    torch.set_num_threads(1)
    cells = [trained_on(plugin) for plugin in ELSEWHERE]
    text = HEADER + table(TRAINING, [training_line(row, [of[row.name] for of in cells]) for row in ROWS])
    text += GENERATION_HEADER + table(GENERATION, map(generation_line, hugging_face.GENERATORS))
    (Path(__file__).parents[1] / "docs" / "models.md").write_text(text)


if __name__ == "__main__":
    main()
