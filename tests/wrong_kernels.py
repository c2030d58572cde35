"""Runs a network for each seed, `op/how`, of a plugin that computes that op wrong, and prints what LTC_CHECK reported as JSON.

In a process of its own, with LTC_CHECK=1 and LTC_BACKEND the plugin of conformance/faults/wrong_kernel.h, in an empty folder.
"""

import glob
import json
import os
import sys

import torch

import ltc

# A deep network, so that an error is far from what is read; dropout; an optimizer that writes parameters in place.
STEP = """
def step(model, optimizer, x, target):
    y = model[0](x)
    y = torch.tanh(y)
    y = model[1](y)
    y = F.gelu(y)
    for layer in model[2:8]:
        y = y + torch.sigmoid(layer(y))
        y = F.layer_norm(y, y.shape[-1:])
    y = F.dropout(y, 0.25)
    y = torch.where(y > 0, y, y.abs().sqrt())
    y = torch.cat([y, y.sin()], 1)
    y = model[8](y).log_softmax(1)
    loss = F.nll_loss(y, target) + y.amax() * 0.01
    loss.backward()
    optimizer.step()
    return loss
"""


def run(seed, number):
    torch.manual_seed(number)
    width = 8 + number  # sizes of their own: no program of another seed is found
    model = torch.nn.ModuleList([*(torch.nn.Linear(width, width) for _ in range(8)), torch.nn.Linear(2 * width, 4)]).to("ltc")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scope = {"torch": torch, "F": torch.nn.functional}
    exec(compile(STEP, f"seed{number}.py", "exec"), scope)  # lines of their own: each op is reported once per line
    os.environ["WRONG_KERNEL"] = seed
    before = set(glob.glob("ltc-check-*.py"))
    for _ in range(2):
        scope["step"](model, optimizer, torch.randn(6, width).to("ltc"), torch.arange(6, device="ltc") % 4)
        ltc.sync()
    os.environ["WRONG_KERNEL"] = ""
    return sorted(set(glob.glob("ltc-check-*.py")) - before)


if __name__ == "__main__":
    results = {}
    for number, seed in enumerate(json.loads(sys.argv[1])):
        results[seed] = [open(file, encoding="utf-8").read() for file in run(seed, number)]
    print(json.dumps({"found": results, "counted": ltc.metrics.counter_value("WrongResults")}))
