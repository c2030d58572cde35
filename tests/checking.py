"""A row of the table of models, run on the CPU and on the device: what came out, and what it took."""

import time
from dataclasses import dataclass, field

import torch

import ltc
from comparing import LTC, to_device

STEPS, WARM_UP = 5, 2  # training steps, and how many of them may compile
TOKENS = 8  # that a text generator adds


@dataclass
class Trained:
    """What a few training steps of a model gave on one device; all values are on the CPU."""

    parameters: int
    evaluated: object = None  # the output in eval mode, before training
    output: object = None  # of the first training step
    gradients: dict = field(default_factory=dict)  # of the first training step
    losses: list = field(default_factory=list)
    seconds: list = field(default_factory=list)  # per step, each waited for


@dataclass
class Cost:
    """What the device did meanwhile."""

    ops: int  # recorded in the last step
    compiles: int
    steady_compiles: int  # after the first steps
    fallbacks: dict  # ops that the CPU ran instead, with their counts


def fallbacks():
    """The counters of ops that the CPU ran instead of the plugin."""
    names = ltc.metrics.counter_names()
    return {name: ltc.metrics.counter_value(name) for name in names if name.startswith("aten::") or name == "HostOps"}


def _to_cpu(tree):
    return tree.detach().cpu() if isinstance(tree, torch.Tensor) else tuple(_to_cpu(part) for part in tree)


def _fresh(row, dropout, device):
    torch.manual_seed(0)
    return row.make(dropout).to(device)


def _batches(row, count, device):
    torch.manual_seed(1)
    return to_device([row.batch() for _ in range(count)], device)


def train(row, device, dropout=0.0, steps=STEPS, after_step=lambda: None):
    """An evaluation and a plain training loop, with a barrier after each step."""
    module, batches = _fresh(row, dropout, device), _batches(row, steps, device)
    result = Trained(sum(parameter.numel() for parameter in module.parameters()))
    with torch.no_grad():
        result.evaluated = _to_cpu(row.run(module.eval(), batches[0])[0])
    optimizer = row.optimizer(module.train().parameters())
    losses = []
    for batch in batches:
        begin = time.perf_counter()
        optimizer.zero_grad()
        output, loss = row.run(module, batch)
        loss.backward()
        if not losses:
            result.output = _to_cpu(output)
            result.gradients = {name: p.grad.detach().cpu() for name, p in module.named_parameters() if p.grad is not None}
        optimizer.step()
        ltc.mark_step()
        after_step()
        losses.append(loss.detach())
        result.seconds.append(time.perf_counter() - begin)
    result.losses = [loss.item() for loss in losses]
    return result


def train_on_device(row, dropout=0.0, steps=STEPS):
    """The same on the device, and what it cost."""
    ops, compiles = [], []

    def after_step():
        ltc.wait_device_ops()
        ops.append(ltc.metrics.counter_value("OpsRecorded"))
        compiles.append(ltc.metrics.counter_value("UncachedCompile"))

    ltc.sync()
    ltc.metrics.reset()
    result = train(row, LTC, dropout, steps, after_step)
    return result, Cost(ops[-1] - ops[-2], compiles[-1], compiles[-1] - compiles[WARM_UP - 1], fallbacks())


def generate(make, prompt, device):
    """Greedy generation with the key-value cache, twice, from two prompts: the tokens, and the compiles of each."""
    torch.manual_seed(0)
    module = make(0.0).eval().to(device)
    prompts = to_device([prompt(), prompt()], device)
    tokens, compiles = [], []
    for inputs in prompts:
        before = ltc.metrics.counter_value("UncachedCompile")
        tokens.append(module.generate(**inputs, max_new_tokens=TOKENS, do_sample=False).cpu())
        compiles.append(ltc.metrics.counter_value("UncachedCompile") - before)
    return tokens, compiles
