"""A lazy device for PyTorch: ``import ltc``, then use device ``"ltc"`` (or ``"lazy"``).

Operations on it are recorded. A barrier (:func:`mark_step`, ``.item()``, printing, ``.cpu()``) compiles what was recorded, or finds
it in the cache, and hands it to the plugin that ``LTC_BACKEND`` names; the plugin is loaded when the device is first used.
"""

import torch

from ._version import TORCH as _BUILT_WITH
from ._version import __version__

if str(torch.__version__).split(".")[:2] != _BUILT_WITH.split(".")[:2]:
    raise ImportError(f"ltc {__version__} was built with PyTorch {_BUILT_WITH} and does not run with PyTorch {torch.__version__}: "
                      f"install the ltc that was built with that one, or PyTorch {'.'.join(_BUILT_WITH.split('.')[:2])}")

from . import _C, metrics, timeline
from ._buckets import BucketedFunction
from ._explain import explain
from ._export import Exported, export
from ._index import index_of as _index
from ._jit import JitFunction
from ._register import register as _register
from .checkpoint import load, save

__all__ = ["Exported", "explain", "export", "graph", "jit", "lazy_device", "load", "mark_step", "metrics", "replay", "save", "save_graph", "sync", "timeline",
           "wait_device_ops"]


def mark_step() -> None:
    """End the step on every device in use: queue what was recorded. Returns before it has run. Loops end their steps by themselves where
    they begin anew."""
    _C.sync()


def sync(device: "torch.device | str | int | None" = None, wait: bool = True) -> None:
    """Queue what was recorded on ``device`` (every device in use by default) and, with ``wait``, wait until it has run."""
    _C.sync(None if device is None else _index(device), wait)


def wait_device_ops() -> None:
    """Wait until everything that was queued has run. Does not queue what is only recorded."""
    _C.wait_device_ops()


def lazy_device(index: int | None = None) -> torch.device:
    """The lazy device of that ordinal, the current one by default."""
    return torch.device("ltc", _C.current_device() if index is None else index)


def graph(device: "torch.device | str | int | None" = None) -> str:
    """The program that a barrier on ``device`` would compile now, as text."""
    return _C.graph_text(_index(device))


def save_graph(path: str, graph: str | None = None, device: "torch.device | str | int | None" = None) -> None:
    """Write a graph for the program that the suffix of ``path`` names: ``.svg`` for a browser, ``.dot`` for Graphviz, ``.onnx`` for Netron, ``.json``
    for Model Explorer. ``graph``: a text as :func:`graph` returns it, by default that of ``device``."""
    from ltc_graphs.pictures import save

    save(_C.graph_text(_index(device)) if graph is None else graph, path)


def replay(graph: str, params: bytes, device: "torch.device | str | int | None" = None) -> str:
    """Compute a graph, as :func:`graph` writes it, on ``device`` and on the CPU, and say by output how they differ. ``params``: the bytes of
    the graph's params, one after the other, each dense and in row-major order. The scripts that ``LTC_CHECK=1`` writes call it."""
    return _C.replay(graph, params, _index(device))


def jit(function, *, buckets=None):
    """``function`` recorded once for each kind of call, and run from then on without being recorded; also a decorator.

    A kind of call: how the arguments are nested, the tensors' dtypes, sizes, strides and aliasing, and the values of all other
    arguments. Floats and ints that the function only hands to operations may have any value. Tensors may be written in place, and
    those of a module are read at each call: ``ltc.jit(model)``. Random numbers are drawn anew at each call. Numbers that are no
    arguments are constants, and tensors from outside are refused. A function is refused as well that resizes or reshapes an argument
    in place, puts it over another storage, or returns a generator. Where gradients are asked for, the function is
    ``torch.compile(function, backend="ltc", fullgraph=True)``.

    With ``buckets``, numbers of rows such as ``(8, 32, 128)``, batches of all sizes are calls of as many kinds as there are buckets:
    the tensors of the arguments, whose leading dims are equal, are filled up with rows of zeros to the next bucket, and the results
    are cut back. That is right where the function computes each row by itself, and nowhere else: no sum, mean or loss over the
    batch, no batch norm in training, no row that depends on where others are or how many. Models in
    ``eval()`` mostly are such functions. With gradients it is right where a row of zeros gives finite numbers too, as what it gives
    is cut off. A write to an argument is lost. A batch larger than the largest bucket is refused.
    """
    return JitFunction(function) if buckets is None else BucketedFunction(function, buckets)


_register()
