"""Calls of ops that no sample of PyTorch's operator database reaches: by rule, a function of a function that gives it tensors."""

import torch

aten = torch.ops.aten


def _padding(op, backward):
    amounts = [1, 1, 1, 0, 0, 1]
    if not backward:
        return lambda make: op(make(1, 2, 3, 4, 5), amounts)
    return lambda make: op(make(1, 2, 4, 5, 7), make(1, 2, 3, 4, 5), amounts)


def _nearest(op, backward):
    if not backward:
        return lambda make: op(make(1, 2, 3, 4, 5), [5, 6, 7])
    return lambda make: op(make(1, 2, 5, 6, 7), [5, 6, 7], [1, 2, 3, 4, 5])


def _targets(make):
    return make(2, 3, 3).abs().mul(10).long() % 4


def _loss2d_backward(make):
    target = _targets(make)
    weight = torch.tensor(float(target.numel()), device=target.device)
    return aten.nll_loss2d_backward(make(1)[0], make(2, 4, 3, 3), target, None, 1, -100, weight)


def _integers(make):
    return make(4, 5).mul(10).long()


def _masks(device):
    """By type: of pairs of steps, of steps of each sequence, of both and heads."""
    steps = torch.arange(5)
    masks = {0: torch.ones(5, 5, dtype=torch.bool).triu(1), 1: steps >= torch.tensor([[3], [5]]),
             2: steps.expand(2, 2, 5, 5) >= torch.tensor([[3], [4], [5], [5], [1]])}
    return [(None, None), *((kind, mask.to(device)) for kind, mask in masks.items())]


def _encoder_layers(make):
    x, shapes = make(2, 5, 8), [(8,), (8,), (8,), (8,), (16, 8), (16,), (8, 16), (8,)]
    attention, rest = [make(24, 8) / 3, make(24), make(8, 8) / 3, make(8)], [make(*sizes) / 3 for sizes in shapes]
    return [aten._transformer_encoder_layer_fwd(x, 8, 2, *attention, gelu, first, 1e-5, *rest, mask, kind)
            for kind, mask in _masks(x.device) for gelu, first in ((False, False), (True, True))]


def _multi_head_attention(make):
    q, kv, weights = make(2, 5, 8), make(2, 5, 8), [make(24, 8), make(24), make(8, 8), make(8)]
    return [result for averaged in (False, True) for kind, mask in _masks(q.device) for result in aten._native_multi_head_attention(
        q, kv, kv, 8, 2, *weights, mask, True, averaged, kind)]


def _grid_samples(op, sizes, methods, backward):
    """Places within, on and outside the edges."""
    def calls(make):
        x, grid = make(2, 3, *sizes), make(2, *(size + 1 for size in sizes), len(sizes))
        g = make(2, 3, *(size + 1 for size in sizes))
        for method in range(methods):
            for padding in range(3):
                for corners in (False, True):
                    how = (method, padding, corners)
                    yield from op(g, x, grid, *how, [True, True]) if backward else [op(x, grid, *how)]

    return lambda make: list(calls(make))


def _writes_by_mask(make):
    x, first, last = make(3, 4, 5), make(3, 4) > 0, make(4, 5) > 0
    values = make(1)[0], make(5), make(1, 5)
    written = [x.index_put((first,), value, accumulate) for accumulate in (False, True) for value in values]
    return written + [aten.index_put(x, [None, last], value) for value in (make(1)[0], make(3, 1))]


CALLS = {
    "aten::square": lambda make: torch.square(make(4, 5)),
    "aten::isfinite": lambda make: torch.isfinite(make(4, 5) / 0),
    "aten::remainder.Scalar_Tensor": lambda make: torch.remainder(7, make(4, 5)),
    "aten::fmod.Scalar": lambda make: torch.fmod(make(4, 5), 0.3),
    "aten::bitwise_and.Scalar": lambda make: aten.bitwise_and.Scalar(_integers(make), 6),
    "aten::bitwise_or.Scalar": lambda make: aten.bitwise_or.Scalar(_integers(make), 6),
    "aten::bitwise_xor.Scalar": lambda make: aten.bitwise_xor.Scalar(_integers(make), 6),
    "aten::clamp_max": lambda make: aten.clamp_max(make(4, 5), 0.1),
    "aten::_upsample_bicubic2d_aa": lambda make: aten._upsample_bicubic2d_aa(make(1, 2, 9, 7), [4, 10], False),
    "aten::_upsample_bicubic2d_aa_backward": lambda make: aten._upsample_bicubic2d_aa_backward(
        make(1, 2, 4, 10), [4, 10], [1, 2, 9, 7], False),
    "aten::_transformer_encoder_layer_fwd": _encoder_layers,
    "aten::_native_multi_head_attention": _multi_head_attention,
    "aten::grid_sampler_2d": _grid_samples(aten.grid_sampler_2d, (4, 5), 3, False),
    "aten::grid_sampler_2d_backward": _grid_samples(aten.grid_sampler_2d_backward, (4, 5), 3, True),
    "aten::grid_sampler_3d": _grid_samples(aten.grid_sampler_3d, (3, 4, 5), 2, False),
    "aten::grid_sampler_3d_backward": _grid_samples(aten.grid_sampler_3d_backward, (3, 4, 5), 2, True),
    "aten::index_put": _writes_by_mask,
    "aten::mish_backward": lambda make: aten.mish_backward(make(4, 5), make(4, 5)),
    "aten::polygamma": lambda make: [torch.special.polygamma(n, make(8).mul(8).floor() - 0.5) for n in (2, 4)],
    "aten::_logcumsumexp": lambda make: aten._logcumsumexp(make(4, 5), 1),
    "aten::upsample_nearest3d": _nearest(aten.upsample_nearest3d, False),
    "aten::upsample_nearest3d_backward": _nearest(aten.upsample_nearest3d_backward, True),
    "aten::_upsample_nearest_exact3d": _nearest(aten._upsample_nearest_exact3d, False),
    "aten::_upsample_nearest_exact3d_backward": _nearest(aten._upsample_nearest_exact3d_backward, True),
    "aten::nll_loss2d_forward": lambda make: aten.nll_loss2d_forward(make(2, 4, 3, 3), _targets(make), None, 1, -100),
    "aten::nll_loss2d_backward": _loss2d_backward,
    "aten::fill.Tensor": lambda make: aten.fill.Tensor(make(4, 5), make(1)[0]),
    "aten::_fused_rms_norm": lambda make: aten._fused_rms_norm(make(4, 5), [5], make(5), 1e-5)[0],
    "aten::_weight_norm_interface": lambda make: aten._weight_norm_interface(make(4, 5), make(4, 1), 0),
    "aten::_weight_norm_interface_backward": lambda make: aten._weight_norm_interface_backward(
        make(4, 5), make(4, 5), make(4, 1), make(4, 1).abs() + 1, 0),
    "aten::reflection_pad3d": _padding(aten.reflection_pad3d, False),
    "aten::replication_pad3d": _padding(aten.replication_pad3d, False),
    "aten::reflection_pad3d_backward": _padding(aten.reflection_pad3d_backward, True),
    "aten::replication_pad3d_backward": _padding(aten.replication_pad3d_backward, True),
    "aten::select_copy.int": lambda make: aten.select_copy.int(make(4, 5), 1, -2),
    "aten::slice_copy.Tensor": lambda make: aten.slice_copy.Tensor(make(4, 5), 1, 1, 5, 2),
    "aten::scatter.value_reduce": lambda make: aten.scatter.value_reduce(
        make(4, 5), 0, make(3, 5).abs().mul(10).long() % 4, 2.0, reduce="multiply"),
    "aten::conj_physical": lambda make: aten.conj_physical(torch.complex(make(4, 5), make(4, 5))),
    "aten::_cholesky_solve_helper": lambda make: aten._cholesky_solve_helper(
        make(4, 2), torch.linalg.cholesky(make(4, 4).mm(make(4, 4).t()) * 0 + torch.eye(4).to(make(1).device) * 3), False),
}
