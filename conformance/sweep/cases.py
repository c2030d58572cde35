"""The cases of one operator: for each mode, programs that run on any device."""

import torch

from .layouts import LAYOUTS, changed, in_the_middle
from .place import map_tensors, tensors_in

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8,
                  torch.bool, torch.complex64, torch.complex128)
}


class Arguments:
    """The arguments of an operator; `call` is run with tensors on the device at hand."""

    def __init__(self, sample):
        self.tree = (sample.input, tuple(sample.args), dict(sample.kwargs))
        self.process = sample.output_process_fn_grad

    def with_tree(self, tree):
        other = object.__new__(Arguments)
        other.tree, other.process = tree, self.process
        return other

    def summary(self):
        return ", ".join(_summary(part) for part in self.tree if isinstance(part, torch.Tensor) or part)[:160]


def _summary(value):
    if isinstance(value, torch.Tensor):
        return str(list(value.shape)) + ("" if value.layout != torch.strided or value.is_contiguous() else f"@{value.stride()}")
    if isinstance(value, dict):
        return ", ".join(f"{key}={_summary(element)}" for key, element in value.items())
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(_summary, value)) + ")"
    return repr(value)


def forward(op, arguments):
    def program(place):
        first, args, kwargs = place(arguments.tree)
        return op.op(first, *args, **kwargs)

    yield program


def in_layout(layout):
    def cases(op, arguments):
        tree = changed(layout, arguments.tree)
        if tree is not None:
            yield from forward(op, arguments.with_tree(tree))

    return cases


def backward(op, arguments):
    def program(place):
        first, args, kwargs = tree = place(arguments.tree)
        result = op.op(first, *args, **kwargs)
        processed = arguments.process(result)
        roots = [tensor for tensor in tensors_in(processed) if tensor.requires_grad]
        leaves = [tensor for tensor in tensors_in(tree) if tensor.requires_grad]
        seeds = [place(_seed(root)) for root in roots]
        return result, torch.autograd.grad(roots, leaves, seeds, allow_unused=True) if roots else ()

    yield program


def _seed(tensor):
    """A gradient that tells the elements apart and can be had for every shape."""
    seed = torch.linspace(0.5, 1.5, max(tensor.numel(), 1), dtype=torch.float64)[: tensor.numel()].reshape(tensor.shape)
    return seed.to(tensor.dtype)


def out(op, arguments):
    """Into memory that fits, is empty, is of another dtype, is too large."""
    for shape_out in (lambda t: torch.ones_like(t), lambda t: torch.empty(0, dtype=t.dtype), _other_dtype,
                      lambda t: torch.ones((*t.shape, 2), dtype=t.dtype)):
        yield _into(op, arguments, shape_out)


def _other_dtype(tensor):
    wider = {torch.float32: torch.float64, torch.int64: torch.float32, torch.bool: torch.uint8, torch.int32: torch.int64}
    return torch.ones_like(tensor, dtype=wider.get(tensor.dtype, torch.int32))


def out_view(op, arguments):
    """Into a view with gaps and an offset, and into a transposed one; the whole base is compared."""
    yield _into(op, arguments, in_the_middle)
    yield _into(op, arguments, lambda t: in_the_middle(t.transpose(-1, -2)).transpose(-1, -2) if t.dim() > 1 else in_the_middle(t))


def _into(op, arguments, shape_out):
    with torch.no_grad():
        first, args, kwargs = arguments.tree
        functional = _plain(op.op(first, *args, **kwargs))
        outputs = map_tensors(shape_out, functional)

    def program(place):
        first, args, kwargs = place(arguments.tree)
        placed = place(outputs)
        result = op.op(first, *args, **kwargs, out=placed)
        return result, [one is other for one, other in zip(tensors_in(result), tensors_in(placed))], placed, list(place.bases.values())

    program.functional = functional
    return program


def _plain(result):
    """Results of a named tuple's type are given to out= as a tuple."""
    return tuple(result) if isinstance(result, tuple) else result


def inplace(op, arguments):
    def program(place):
        first, args, kwargs = place(arguments.tree)
        result = op.inplace_variant(first, *args, **kwargs)
        return result, result is first, first, list(place.bases.values())

    yield program


def inplace_view(op, arguments):
    """On a view with gaps; the whole base is compared, so are aliases of it."""
    first, args, kwargs = arguments.tree
    if isinstance(first, torch.Tensor) and first.layout == torch.strided and first.dim() > 0:
        yield from inplace(op, arguments.with_tree((in_the_middle(first).copy_(first), args, kwargs)))
        if first.dim() > 1:
            view = in_the_middle(first.transpose(-1, -2)).transpose(-1, -2).copy_(first)
            yield from inplace(op, arguments.with_tree((view, args, kwargs)))


MODES = {
    "forward": forward,
    "transposed": in_layout("transposed"),
    "channels_last": in_layout("channels_last"),
    "noncontiguous": in_layout("noncontiguous"),
    "backward": backward,
    "out": out,
    "out_view": out_view,
    "inplace": inplace,
    "inplace_view": inplace_view,
    "errors": forward,
}
STRIDE_MODES = ("forward", "transposed", "channels_last")
assert all(layout in MODES for layout in LAYOUTS)


def has_mode(op, mode, dtype):
    if mode.startswith("out"):
        return op.supports_out
    if mode.startswith("inplace"):
        return op.inplace_variant is not None
    if mode == "backward":
        return op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    if mode == "errors":
        return op.error_inputs_func is not None and dtype == torch.float32
    return True


def samples(op, dtype, mode, limit):
    """At most `limit` of the operator's samples, spread over them all: neighbours resemble each other."""
    if mode == "errors":
        return [Arguments(error.sample_input) for error in op.error_inputs("cpu")]
    every = list(op.sample_inputs("cpu", dtype, requires_grad=mode == "backward"))
    if limit and len(every) > limit:
        every = [every[i * len(every) // limit] for i in range(limit)]
    return [Arguments(sample) for sample in every]
