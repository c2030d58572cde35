"""Backwards run on the CPU and on the device, with what they give, log and raise compared."""

import torch
import torch.nn.functional as F
from torch import nn

import ltc
from comparing import LTC, assert_same

CPU = torch.device("cpu")


def inlined_nodes(function):
    """How many nodes the core evaluated itself while the function ran."""
    before = ltc.metrics.counter_value("InlinedBackwardNodes")
    function()
    return ltc.metrics.counter_value("InlinedBackwardNodes") - before


def mlp(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    return model, torch.randn(5, 4).to(device), torch.randint(0, 3, (5,)).to(device)


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def gradients(model):
    return [p.grad for p in model.parameters()]


def on_both(run):
    """Calls `run(device, log)` with both devices and compares what it returns and logs; how many nodes the core evaluated."""
    logs = {CPU: [], LTC: []}
    expected = run(CPU, logs[CPU].append)
    found = []
    count = inlined_nodes(lambda: found.append(run(LTC, logs[LTC].append)))
    assert_same(found[0], expected)
    assert logs[LTC] == logs[CPU]
    return count


def error_of(function):
    try:
        function()
    except Exception as error:
        return type(error), str(error).replace("ltc:0", "cpu").replace("[ltcFloatType", "[torch.FloatTensor")
    return None


def square(device):
    x = torch.arange(1.0, 4.0).to(device).requires_grad_()
    return x, (x * x).sum()


def within(context):
    def run(device):
        x, y = square(device)
        with context():
            y.backward()
        return x.grad

    return run
