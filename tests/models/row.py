"""A row of the table of models, and the losses that rows share."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Model:
    """A model of PyTorch's world, small, with random weights.

    make       dropout -> module: draws the weights from PyTorch's default generator.
    batch      () -> dict: a fresh batch on the CPU; every batch has the same shapes.
    run        module, batch -> (output, loss): output is a tensor, or a tuple of them; the loss is a scalar.
    optimizer  parameters -> optimizer.
    rtol, atol  of outputs and gradients.
    """

    name: str
    make: Callable[[float], nn.Module]
    batch: Callable[[], dict]
    run: Callable
    optimizer: Callable = lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)
    rtol: float = 1e-4
    atol: float = 1e-5


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def classify(module, batch):
    """Classes of whole examples: `x` to `target`."""
    scores = module(batch["x"])
    return scores, F.cross_entropy(scores, batch["target"])


def regress(module, batch):
    """Values to match: the other entries of the batch, by position, to `target`."""
    *inputs, target = batch.values()
    output = module(*inputs)
    return output, F.mse_loss(output, target)


def by_name(module, batch):
    """Models of `transformers`: they take the batch by name and compute the loss themselves."""
    result = module(**batch)
    return result.logits, result.loss
