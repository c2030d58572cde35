"""A row of the table of models, run on the CPU and on the device: what came out, and what it took."""

from dataclasses import dataclass, field

import torch

import ltc
from comparing import LTC, to_device

STEPS, STEADY_AFTER = 5, 2  # training steps, and how many of them may compile


@dataclass
class Trained:
    """What a few training steps of a model gave on one device; all values are on the CPU."""

    evaluated: object = None  # the output in eval mode, before training
    output: object = None  # of the first training step
    gradients: dict = field(default_factory=dict)  # of the first training step
    losses: list = field(default_factory=list)
    parameters: int = 0


@dataclass
class Cost:
    """What the device did meanwhile."""

    ops: int  # recorded in the last step
    compiles: int
    steady_compiles: int  # after the first steps
    fallbacks: dict  # counters of ops that the CPU ran instead, in all steps


def fallbacks():
    """The counters of ops that the CPU ran instead of the plugin."""
    names = ltc.metrics.counter_names()
    return {name: ltc.metrics.counter_value(name) for name in names if name.startswith("aten::") or name == "HostOps"}


def to_cpu(tree):
    if isinstance(tree, torch.Tensor):
        return tree.detach().cpu()
    return tuple(to_cpu(part) for part in tree)


def batches(row):
    torch.manual_seed(1)
    return [row.batch() for _ in range(STEPS)]


def train(row, device, dropout=0.0, after_step=lambda k: None):
    """A plain training loop, after one evaluation; a barrier after each step."""
    torch.manual_seed(0)
    module = row.make(dropout).to(device)
    result = Trained(parameters=sum(p.numel() for p in module.parameters()))
    data = [to_device(batch, device) for batch in batches(row)]
    with torch.no_grad():
        result.evaluated = to_cpu(row.run(module.eval(), data[0])[0])
    module.train()
    optimizer = row.optimizer(module.parameters())
    losses = []
    for k, batch in enumerate(data):
        optimizer.zero_grad()
        output, loss = row.run(module, batch)
        loss.backward()
        if k == 0:
            result.output = to_cpu(output)
            result.gradients = {name: p.grad.detach().cpu() for name, p in module.named_parameters() if p.grad is not None}
        optimizer.step()
        ltc.mark_step()
        after_step(k)
        losses.append(loss.detach())
    result.losses = [loss.item() for loss in losses]
    return result


def train_on_device(row, dropout=0.0):
    """The same on the device, with what it cost."""
    counts = []

    def after_step(_):
        ltc.wait_device_ops()
        counts.append({name: ltc.metrics.counter_value(name) for name in ("OpsRecorded", "UncachedCompile")})

    ltc.sync()
    ltc.metrics.reset()
    result = train(row, LTC, dropout, after_step)
    last, before, steady = counts[-1], counts[-2], counts[STEADY_AFTER - 1]
    return result, Cost(
        ops=last["OpsRecorded"] - before["OpsRecorded"],
        compiles=last["UncachedCompile"],
        steady_compiles=last["UncachedCompile"] - steady["UncachedCompile"],
        fallbacks=fallbacks(),
    )


def difference(one, other):
    """The largest absolute difference between two trees of tensors or numbers."""
    if isinstance(one, dict):
        return max(difference(one[name], other[name]) for name in other)
    if isinstance(one, (tuple, list)):
        return max(map(difference, one, other))
    return (one - other).abs().max().item() if isinstance(one, torch.Tensor) else abs(one - other)
