"""A row of the table of models, run on the CPU and on the device: what came out, and what it took."""

from dataclasses import dataclass, field

import torch

import ltc
from comparing import LTC, to_device

STEPS, WARM_UP = 5, 2  # training steps, and how many of them may compile
TOKENS = 8  # that a text generator adds


@dataclass
class Trained:
    """The results of a few training steps of a model on one device; all values are on the CPU."""

    parameters: int
    evaluated: object  # the output in eval mode, before training
    output: object = None  # of the first training step
    gradients: dict = field(default_factory=dict)  # of the first training step
    losses: list = field(default_factory=list)


@dataclass
class Cost:
    """The device's counters meanwhile."""

    ops: int  # recorded in the last step
    compiles: int
    steady_compiles: int  # after the first steps
    fallbacks: dict  # ops that the CPU ran instead, with their counts


def fallbacks():
    """The counters of ops that the CPU ran instead of the plugin."""
    names = ltc.metrics.counter_names()
    return {name: ltc.metrics.counter_value(name) for name in names if name.startswith("aten::") or name == "HostStepOps"}


def _to_cpu(tree):
    return tree.detach().cpu() if isinstance(tree, torch.Tensor) else tuple(_to_cpu(part) for part in tree)


def batches(row, device):
    torch.manual_seed(1)
    return to_device([row.batch() for _ in range(STEPS)], device)


class Trainer:
    """A plain training loop, step by step, with a barrier after each."""

    def __init__(self, row, device, dropout=0.0):
        torch.manual_seed(0)
        self.run, self.module = row.run, row.make(dropout).to(device)
        self.optimizer = row.optimizer(self.module.parameters())

    def step(self, batch):
        """The output and the loss; gradients stay where they are until the next step."""
        self.optimizer.zero_grad()
        output, loss = self.run(self.module, batch)
        loss.backward()
        self.optimizer.step()
        ltc.mark_step()
        return output, loss.detach()


def train(row, device, dropout=0.0, after_step=lambda: None):
    """An evaluation, then training on fresh batches."""
    trainer, data = Trainer(row, device, dropout), batches(row, device)
    parameters = dict(trainer.module.named_parameters())
    with torch.no_grad():
        evaluated = _to_cpu(row.run(trainer.module.eval(), data[0])[0])
    result = Trained(sum(parameter.numel() for parameter in parameters.values()), evaluated)
    trainer.module.train()
    losses = []
    for batch in data:
        output, loss = trainer.step(batch)
        after_step()
        if not losses:
            result.output = _to_cpu(output)
            result.gradients = {name: p.grad.cpu() for name, p in parameters.items() if p.grad is not None}
        losses.append(loss)
    result.losses = [loss.item() for loss in losses]
    return result


def run_both_programs(row, device, dropout):
    """An evaluation and one training step, each a program of its own, to their end. No value is read."""
    trainer, data = Trainer(row, device, dropout), batches(row, device)
    with torch.no_grad():
        row.run(trainer.module.eval(), data[0])
    ltc.mark_step()
    trainer.module.train()
    trainer.step(data[0])
    ltc.wait_device_ops()


def train_on_device(row, dropout=0.0):
    """The same on the device, and what it cost."""
    ops, compiles = [], []

    def after_step():
        ltc.wait_device_ops()
        ops.append(ltc.metrics.counter_value("OpsRecorded"))
        compiles.append(ltc.metrics.counter_value("UncachedCompile"))

    ltc.sync()
    ltc.metrics.reset()
    result = train(row, LTC, dropout, after_step)
    return result, Cost(ops[-1] - ops[-2], compiles[-1], compiles[-1] - compiles[WARM_UP - 1], fallbacks())


def generate(make, prompt, device, **strategy):
    """Generation with the key-value cache from three prompts, greedy unless told otherwise: the tokens, and the compiles of each."""
    torch.manual_seed(0)
    module = make(0.0).eval().to(device)
    prompts = to_device([prompt(), prompt(), prompt()], device)
    tokens, compiles = [], []
    for inputs in prompts:
        before = ltc.metrics.counter_value("UncachedCompile")
        tokens.append(module.generate(**inputs, max_new_tokens=TOKENS, **{"do_sample": False} | strategy).cpu())
        compiles.append(ltc.metrics.counter_value("UncachedCompile") - before)
    return tokens, compiles
