"""Tells the core where an optimizer's step begins and ends, since the program's step may end behind it."""

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import _C


def install() -> None:
    """For all optimizers of the process, unless LTC_AUTO_STEP=0."""
    if _C.ends_steps():
        register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: _is_ours(optimizer) and _C.optimizer_begins() or None)
        register_optimizer_step_post_hook(lambda optimizer, args, kwargs: _is_ours(optimizer) and _C.optimizer_ends() or None)


def _is_ours(optimizer: torch.optim.Optimizer) -> bool:
    """Whether it has parameters of the device. Not while TorchDynamo traces it."""
    if torch.compiler.is_compiling():
        return False
    return any(group["params"] and group["params"][0].device.type == "ltc" for group in optimizer.param_groups)
