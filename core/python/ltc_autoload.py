"""Entry point of the group ``torch.backends``: ``import torch`` calls it. Registers the device only where LTC_BACKEND asks for one,
since a registered device is not free: PyTorch then starts a backward thread for it."""

import os


def autoload() -> None:
    if os.environ.get("LTC_BACKEND"):
        import ltc  # noqa: F401
