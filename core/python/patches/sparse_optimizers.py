"""Optimizers of gradients that are rows of a table: SparseAdam and Adagrad.

PyTorch adds up the rows of one place first, which gives as many rows as a batch happens to name: their number is known to the host
only, and each number is a program of its own. Here the sums stay where they are, in as many rows as the gradient has; rows
that are left over add zero to the table's first row.
"""

import functools
import math

import torch
from torch.optim import _functional, adagrad

from .replacements import Replacement


def replacements() -> list[Replacement]:
    """Gradients of the device go the way below, all others PyTorch's."""
    return [
        Replacement(_functional, "sparse_adam", _around_sparse_adam,
                    "params grads exp_avgs exp_avg_sqs state_steps eps beta1 beta2 lr maximize"),
        # That of torch.optim._functional, which TorchScript compiles, stays as it is.
        Replacement(adagrad, "adagrad", _around_adagrad,
                    "params grads state_sums state_steps fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex lr "
                    "weight_decay lr_decay eps maximize"),
    ]  # fmt: skip


class _Rows:
    """The rows of a sparse gradient, those of one place added up."""

    def __init__(self, grad):
        places, values = grad._indices()[0], grad._values()
        self.values, self.places, self._is_row = values, places, None
        if grad.is_coalesced():
            return
        places, order = places.sort(stable=True)
        begins = torch.cat([torch.ones_like(places[:1], dtype=torch.bool), places[1:] != places[:-1]])
        run = begins.cumsum(0) - 1  # of equal places
        self.values = torch.zeros_like(values).index_add(0, run, values[order])
        self.places = torch.zeros_like(places).scatter(0, run, places)
        is_row = torch.arange(len(places), device=places.device) <= run[-1]
        self._is_row = is_row.reshape(-1, *[1] * (values.dim() - 1))

    def of(self, table):
        return table.index_select(0, self.places)

    def add_to(self, table, update):
        table.index_add_(0, self.places, update if self._is_row is None else torch.where(self._is_row, update, 0))


def _has_rows(grad) -> bool:
    return grad.device.type == "ltc" and grad.layout == torch.sparse_coo and grad.sparse_dim() == 1 and grad._values().numel() > 0


def _around_sparse_adam(sparse_adam):
    @functools.wraps(sparse_adam)
    def around(params, grads, exp_avgs, exp_avg_sqs, state_steps, *, eps, beta1, beta2, lr, maximize):
        for param, grad, exp_avg, exp_avg_sq, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
            if not _has_rows(grad):
                sparse_adam([param], [grad], [exp_avg], [exp_avg_sq], [step], eps=eps, beta1=beta1, beta2=beta2, lr=lr, maximize=maximize)
                continue
            rows = _Rows(grad)
            values = -rows.values if maximize else rows.values
            old, old_sq = rows.of(exp_avg), rows.of(exp_avg_sq)
            update, update_sq = (values - old) * (1 - beta1), (values.pow(2) - old_sq) * (1 - beta2)
            rows.add_to(exp_avg, update)
            rows.add_to(exp_avg_sq, update_sq)
            step_size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
            rows.add_to(param, -step_size * ((update + old) / ((update_sq + old_sq).sqrt() + eps)))

    return around


def _around_adagrad(original):
    @functools.wraps(original)
    def around(params, grads, state_sums, state_steps, *others, lr, weight_decay, lr_decay, eps, maximize, **named):
        settings = dict(lr=lr, weight_decay=weight_decay, lr_decay=lr_decay, eps=eps, maximize=maximize, **named)
        if weight_decay != 0 or isinstance(lr, torch.Tensor) or not any(map(_has_rows, grads)):
            return original(params, grads, state_sums, state_steps, *others, **settings)
        for param, grad, state_sum, step in zip(params, grads, state_sums, state_steps):
            if not _has_rows(grad):
                original([param], [grad], [state_sum], [step], *others, **settings)
                continue
            step += 1
            rows = _Rows(grad)
            values = -rows.values if maximize else rows.values
            rows.add_to(state_sum, values.pow(2))
            rate = lr / (1 + (step.item() - 1) * lr_decay)
            rows.add_to(param, -rate * (values / (rows.of(state_sum).sqrt() + eps)))

    return around
