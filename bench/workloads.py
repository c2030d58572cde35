"""What is measured: training steps and chains of small ops, written once and made for each device."""

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

FRESH_INPUTS = 8  # different batches, made before the clock starts and used in turn


@dataclass(frozen=True)
class Workload:
    """Something to time, step by step.

    make   device -> step: prepares everything, returns a function that records or runs one step and returns the result, which
           the caller keeps until the step's end, so that it has to be computed. Two devices get the same weights and inputs.
    block  steps timed together; long enough that the clock and the final wait weigh little.
    """

    name: str
    about: str
    make: Callable
    block: int


def _turns(*tensors):
    """Endless tuples of fresh values of the given CPU tensors' shapes, from a fixed seed."""
    generator = torch.Generator().manual_seed(0)

    def fresh(tensor):
        if tensor.dtype == torch.int64:
            return torch.randint(10, tensor.shape, generator=generator)
        return torch.randn(tensor.shape, generator=generator)

    pool = [tuple(fresh(tensor) for tensor in tensors) for _ in range(FRESH_INPUTS)]
    while True:
        yield from pool


def _training(model, make_optimizer, inputs, loss_of, device):
    model = model.to(device).train()
    optimizer = make_optimizer(model.parameters())

    def step():
        images, labels = next(inputs)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        return loss

    return step


def _mlp(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs = _turns(torch.empty(8, 64), torch.empty(8, dtype=torch.int64))
    return _training(model, lambda p: torch.optim.SGD(p, lr=0.01), inputs, F.cross_entropy, device)


def _mnist(batch):
    def make(device):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
            nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10), nn.LogSoftmax(dim=1),
        )  # fmt: skip
        inputs = _turns(torch.empty(batch, 1, 28, 28), torch.empty(batch, dtype=torch.int64))
        return _training(model, lambda p: torch.optim.Adadelta(p, lr=1.0), inputs, F.nll_loss, device)

    return make


def _chain200(device):
    inputs = _turns(torch.empty(16), torch.empty(16))

    @torch.no_grad()
    def step():
        x, y = (tensor.to(device) for tensor in next(inputs))
        for _ in range(50):
            x = x * 0.5
            x = x + y
            x = torch.relu(x)
            x = x - 0.1
        return x

    return step


WORKLOADS = [
    Workload("mlp", "64-64-10, batch 8, SGD training step", _mlp, block=200),
    Workload("chain200", "200 element-wise ops on 16 floats, no grad", _chain200, block=100),
    Workload("mnist64", "MNIST convolutional net, batch 64, Adadelta training step", _mnist(64), block=5),
    Workload("mnist4", "the same, batch 4", _mnist(4), block=20),
]

RECORD_OPS = 200


def _double(x):
    return x + x


def _scale(x):
    return x * 1.5


RECORDED = {"a+a": _double, "a*1.5": _scale, "relu": torch.relu}
