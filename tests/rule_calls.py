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


CALLS = {
    "aten::square": lambda make: torch.square(make(4, 5)),
    "aten::isfinite": lambda make: torch.isfinite(make(4, 5) / 0),
    "aten::remainder.Scalar_Tensor": lambda make: torch.remainder(7, make(4, 5)),
    "aten::fmod.Scalar": lambda make: torch.fmod(make(4, 5), 0.3),
    "aten::bitwise_and.Scalar": lambda make: aten.bitwise_and.Scalar(_integers(make), 6),
    "aten::bitwise_or.Scalar": lambda make: aten.bitwise_or.Scalar(_integers(make), 6),
    "aten::bitwise_xor.Scalar": lambda make: aten.bitwise_xor.Scalar(_integers(make), 6),
    "aten::clamp_max": lambda make: aten.clamp_max(make(4, 5), 0.1),
    "aten::mish_backward": lambda make: aten.mish_backward(make(4, 5), make(4, 5)),
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
