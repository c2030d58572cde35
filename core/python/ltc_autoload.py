"""Entry points. That of the group ``torch.backends`` is called by ``import torch``: it registers the device only where LTC_BACKEND asks for one,
since a registered device is not free: PyTorch then starts a backward thread for it."""

import os


def autoload() -> None:
    if os.environ.get("LTC_BACKEND"):
        import ltc  # noqa: F401


def compile_backend(graph, inputs, **options):
    """Entry point of the group ``torch_dynamo_backends``: ``torch.compile(model, backend="ltc")``."""
    from ltc._compile import backend

    return backend(graph, inputs, **options)
