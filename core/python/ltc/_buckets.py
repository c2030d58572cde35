"""``ltc.jit(fn, buckets=...)``: batches of any size as batches of a few sizes."""

import torch
from torch.utils import _pytree as pytree

from . import _C
from ._jit import JitFunction


class BucketedFunction:
    """The function that :func:`ltc.jit` returns with ``buckets``. ``len()`` is how many kinds of calls it has met."""

    def __init__(self, function, buckets):
        self.run = JitFunction(function)
        self.name = f"ltc.jit({getattr(function, '__qualname__', type(function).__name__)}, buckets={buckets!r})"
        self.buckets = sorted(buckets)
        if not self.buckets or not all(type(rows) is int and rows > 0 for rows in self.buckets):
            raise ValueError(f"{self.name}: buckets are numbers of rows, at least one, each above 0")

    def __len__(self):
        return len(self.run)

    def __call__(self, *args, **kwargs):
        if _C.is_capturing():  # this call belongs to a larger function
            return self.run(*args, **kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        rows = self._rows_of(leaves)
        bucket = self._bucket_of(rows)
        args, kwargs = pytree.tree_unflatten([_with_rows(leaf, bucket) if _has_rows(leaf) else leaf for leaf in leaves], spec)
        results, spec = pytree.tree_flatten(self.run(*args, **kwargs))
        for result in results:
            self._check(result, bucket)
        cut = [_with_rows(result, rows) if isinstance(result, torch.Tensor) else result for result in results]
        return pytree.tree_unflatten(cut, spec)

    def _rows_of(self, leaves: list) -> int:
        sizes = [tuple(leaf.shape) for leaf in leaves if _has_rows(leaf)]
        if not sizes:
            raise ValueError(f"{self.name}: no argument is a tensor with a leading dim, so there is no batch to pad")
        if len({size[0] for size in sizes}) > 1:
            raise ValueError(
                f"{self.name}: the arguments' sizes are {', '.join(map(str, sizes))}, and the leading dim of each should be that of "
                "the batch. A tensor that is none belongs into the module, as a buffer"
            )
        return sizes[0][0]

    def _bucket_of(self, rows: int) -> int:
        for bucket in self.buckets:
            if rows <= bucket:
                return bucket
        raise ValueError(
            f"{self.name}: a batch of {rows} rows, and the largest bucket has {self.buckets[-1]}: add one, or split the batch"
        )

    def _check(self, result, bucket: int) -> None:
        if isinstance(result, torch.Tensor) and (result.dim() == 0 or result.shape[0] != bucket):
            raise ValueError(
                f"{self.name}: a result has sizes {tuple(result.shape)}, and its leading dim should be the {bucket} rows of the "
                "bucket. Return a result per row, and reduce it over the batch outside of the function: inside, zeros that fill the "
                "bucket would take part"
            )


def _has_rows(leaf) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dim() > 0


def _with_rows(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    return tensor if tensor.shape[0] == rows else _WithRows.apply(tensor, rows)


class _WithRows(torch.autograd.Function):
    """The first rows of a tensor, or all and zeros behind them."""

    @staticmethod
    def forward(ctx, tensor, rows):
        ctx.rows = tensor.shape[0]
        if tensor.device.type == "ltc":
            return _C.with_rows(tensor, rows)
        return torch.cat([tensor[:rows], tensor.new_zeros(max(rows - ctx.rows, 0), *tensor.shape[1:])])

    @staticmethod
    def backward(ctx, gradient):
        return _WithRows.apply(gradient, ctx.rows), None
