"""Tells the core where an optimizer's step has ended, since the program's step may end behind it."""

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from . import _C


def install() -> None:
    """For all optimizers of the process, unless LTC_AUTO_STEP=0."""
    if _C.ends_steps():
        register_optimizer_step_post_hook(_ended)


def _ended(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> None:
    # Not while TorchDynamo traces it.
    if not torch.compiler.is_compiling() and any(group["params"] and group["params"][0].device.type == "ltc" for group in optimizer.param_groups):
        _C.optimizer_ended()
