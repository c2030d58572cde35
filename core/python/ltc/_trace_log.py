"""The answer to TORCH_TRACE: each program that a trace gets, as an artifact of PyTorch's structured log, which tlparse reads."""

import os
import threading
from contextlib import contextmanager

from torch._logging import trace_structured

from . import _C

_thread = threading.local()


def start() -> None:
    """To be called once, at import. Nothing is written, and nothing costs anything, without TORCH_TRACE."""
    if os.environ.get("TORCH_TRACE"):
        _C.set_compile_listener(_write)


@contextmanager
def compile_id(number):
    """Programs that the calling thread compiles meanwhile belong to that compile of TorchDynamo's; None: to none."""
    _thread.compile_id = number
    try:
        yield
    finally:
        _thread.compile_id = None


def _write(facts: dict) -> None:
    """Metadata: all but the graph, which is the payload."""
    graph = facts.pop("graph")
    about = "".join(f"# {name}: {value}\n" for name, value in facts.items() if value not in ("", 0))
    trace_structured("artifact", lambda: {"name": f"ltc_graph_{facts['program']}", "encoding": "string", **facts},
                     payload_fn=lambda: about + graph, expect_trace_id=False, compile_id=getattr(_thread, "compile_id", None))
