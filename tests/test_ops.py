"""Ordinary ops, forward and backward, against the CPU: one row per op or use."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

import ltc
from comparing import LTC, assert_both, assert_close, assert_same, to_device
from op_samples import b, check, f, forward_and_backward, i, pos, unit

# ---- the table

idx = torch.tensor([2, 0, 1])
table = torch.tensor([[1, 0, 3], [2, 4, 0]])

OPS = {
    # reductions
    "sum": (lambda x: (x.sum(), x.sum(0), x.sum((0, 2)), x.sum(-1, keepdim=True), x.sum(dtype=torch.float64)), [f(2, 3, 4)]),
    "mean": (lambda x: (x.mean(), x.mean(1), x.mean((0, 1), keepdim=True)), [f(2, 3, 4)]),
    "prod": (lambda x: (x.prod(), x.prod(1)), [pos(2, 3)]),
    "var_std": (lambda x: (x.var(), x.std(), x.var(1), x.std(0, correction=0), torch.var_mean(x, 1), torch.std_mean(x)), [f(3, 4)]),
    "max_min": (lambda x: (x.max(), x.min(), tuple(x.max(1)), tuple(x.min(0, keepdim=True))), [f(3, 4)]),
    "amax_amin": (lambda x: (x.amax(), x.amin(1), torch.aminmax(x)), [f(3, 4)]),
    "argmax_argmin": (lambda x: (x.argmax(), x.argmin(1), x.argmax(0, keepdim=True)), [f(3, 4)]),
    "any_all": (lambda m: (m.any(), m.all(), m.any(1), m.all(0), m.int().any()), [b(3, 4)]),
    "norm": (lambda x: (x.norm(), x.norm(1), x.norm(dim=1), torch.linalg.vector_norm(x, 3, dim=0), x.norm(float("inf"))), [f(3, 4)]),
    "logsumexp": (lambda x: (x.logsumexp(1), x.logsumexp((0, 1))), [f(3, 4)]),
    "cumulative": (lambda x: (x.cumsum(0), x.cumprod(1), x.logcumsumexp(1)), [pos(3, 4)]),
    "cummax": (lambda x: (tuple(x.cummax(1)), tuple(x.cummin(0))), [f(3, 4)]),
    "median": (lambda x: (x.median(), tuple(x.median(1)), x.nanmedian()), [f(3, 5)]),
    "quantile": (lambda x: (x.quantile(0.3), x.quantile(0.5, dim=1)), [f(3, 5)]),
    "nansum": (lambda x: ((x / x).nansum(), x.nanmean()), [torch.tensor([0.0, 1, 2])]),
    "count_nonzero": (lambda n: (n.count_nonzero(), n.count_nonzero(1)), [i(3, 4)]),
    "sum_of_integers": (lambda n: (n.sum(), n.prod(), n.max(), n.float().mean(), n.bool().sum()), [i(3, 4)]),
    "dist": (lambda x, y: (torch.dist(x, y), torch.cdist(x, y)), [f(3, 4), f(3, 4)]),
    "trace_diag": (lambda x: (x.trace(), x.diag(), x.diag(1), x[0].diag(), x.diag_embed()), [f(4, 4)]),
    "histc": (lambda x: x.histc(4, -2, 2), [f(20).detach()]),
    "bincount": (lambda n: n.bincount(minlength=8), [table.flatten()]),
    # products of matrices
    "mm": (lambda x, y: x.mm(y), [f(3, 4), f(4, 5)]),
    "mm_transposed": (lambda x, y: x.t() @ y.t(), [f(4, 3), f(5, 4)]),
    "matmul": (lambda x, y, v: (x @ y, x @ v, v @ y, v @ v, y[0].t() @ v), [f(2, 3, 4), f(2, 4, 5), f(4)]),
    "matmul_broadcast": (lambda x, y: x @ y, [f(2, 1, 3, 4), f(5, 4, 2)]),
    "bmm": (lambda x, y: torch.bmm(x, y), [f(2, 3, 4), f(2, 4, 5)]),
    "mv_dot": (lambda x, v: (x.mv(v), v.dot(v), torch.outer(v, v), torch.inner(x, x), torch.kron(x, x)), [f(3, 4), f(4)]),
    "addmm": (lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2), [f(5), f(3, 4), f(4, 5)]),
    "baddbmm": (lambda c, x, y: torch.baddbmm(c, x, y, beta=2), [f(2, 3, 5), f(2, 3, 4), f(2, 4, 5)]),
    "addmv_addr": (lambda c, x, v: (torch.addmv(c, x, v), torch.addr(x, c, v)), [f(3), f(3, 4), f(4)]),
    "einsum": (lambda x, y: torch.einsum("bij,bjk->ik", x, y), [f(2, 3, 4), f(2, 4, 5)]),
    "tensordot": (lambda x, y: torch.tensordot(x, y, dims=([1, 2], [0, 1])), [f(2, 3, 4), f(3, 4, 5)]),
    "linear": (lambda x, w, c: (F.linear(x, w, c), F.linear(x, w)), [f(2, 3, 4), f(5, 4), f(5)]),
    "bilinear": (lambda x, y, w: F.bilinear(x, y, w), [f(3, 4), f(3, 5), f(2, 4, 5)]),
    "matrix_power": (lambda x: (torch.matrix_power(x, 3), torch.matrix_exp(x)), [f(3, 3)]),
    "inverse": (lambda x: (torch.linalg.inv(x), torch.linalg.det(x), torch.linalg.slogdet(x)[1]), [torch.eye(3).mul_(3).add_(0.3).requires_grad_()]),
    "solve": (lambda x, y: torch.linalg.solve(x, y), [torch.eye(3).mul_(3).add_(0.3).requires_grad_(), f(3, 2)]),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.t() + torch.eye(3, device=x.device)), [f(3, 3)]),
    "svdvals": (lambda x: torch.linalg.svdvals(x), [f(3, 4)]),
    "eigvalsh": (lambda x: torch.linalg.eigvalsh(x + x.t()), [f(3, 3)]),
    "complex_matmul": (lambda x, y: (x @ y, x @ y.t().conj().t(), x.conj() @ y, x.mH @ x), [torch.randn(3, 4, dtype=torch.complex64), torch.randn(4, 2, dtype=torch.complex64)]),
    "integer_matmul": (lambda x, y: x @ y, [i(3, 4), i(4, 2)]),
    # convolution, pooling, resizing
    "conv1d": (lambda x, w, c: (F.conv1d(x, w, c), F.conv1d(x, w, stride=2, padding=1)), [f(2, 3, 8), f(4, 3, 3), f(4)]),
    "conv2d": (lambda x, w, c: F.conv2d(x, w, c, stride=2, padding=1), [f(2, 3, 8, 8), f(4, 3, 3, 3), f(4)]),
    "conv2d_dilated": (lambda x, w: F.conv2d(x, w, dilation=2, padding="same"), [f(1, 2, 8, 8), f(3, 2, 3, 3)]),
    "conv2d_groups": (lambda x, w, c: F.conv2d(x, w, c, groups=2), [f(2, 4, 6, 6), f(4, 2, 3, 3), f(4)]),
    "conv2d_unbatched": (lambda x, w: F.conv2d(x, w), [f(3, 6, 6), f(4, 3, 3, 3)]),
    "conv2d_channels_last": (lambda x, w: F.conv2d(x.contiguous(memory_format=torch.channels_last), w), [f(2, 3, 6, 6), f(4, 3, 3, 3)]),
    "conv3d": (lambda x, w: F.conv3d(x, w), [f(1, 2, 4, 4, 4), f(3, 2, 2, 2, 2)]),
    "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w, stride=2), [f(2, 3, 5), f(3, 4, 3)]),
    "conv_transpose2d": (lambda x, w, c: F.conv_transpose2d(x, w, c, stride=2, padding=1, output_padding=1), [f(2, 3, 5, 5), f(3, 4, 3, 3), f(4)]),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), [f(2, 3, 8)]),
    "max_pool2d": (lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, return_indices=True)), [f(2, 3, 8, 8)]),
    "avg_pool": (lambda x: (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool1d(x[0], 2)), [f(2, 3, 8, 8)]),
    "adaptive_avg_pool": (lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_avg_pool1d(x[0], 3)), [f(2, 3, 8, 8)]),
    "adaptive_max_pool": (lambda x: F.adaptive_max_pool2d(x, 2), [f(2, 3, 8, 8)]),
    "lp_pool": (lambda x: F.lp_pool2d(x, 2, 2), [pos(1, 2, 4, 4)]),
    "interpolate": (lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=7, mode="bilinear")), [f(1, 2, 4, 4)]),
    "pixel_shuffle": (lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2)), [f(1, 4, 4, 4)]),
    "pad": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 1, 0, 2), value=3.0), F.pad(x, (1, 1), "reflect"), F.pad(x, (2, 1), "replicate"), F.pad(x, (1, 1), "circular")), [f(2, 3, 4)]),
    "unfold_fold": (lambda x: F.fold(F.unfold(x, 2), (4, 4), 2), [f(1, 2, 4, 4)]),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), [f(1, 2, 4, 4), unit(1, 3, 3, 2)]),
    # normalisation
    "batch_norm_eval": (lambda x, m, v, w, c: F.batch_norm(x, m, v, w, c), [f(4, 3, 2), torch.randn(3), torch.rand(3) + 0.5, f(3), f(3)]),
    "batch_norm_train": (lambda x, w, c: F.batch_norm(x, None, None, w, c, training=True), [f(4, 3, 2), f(3), f(3)]),
    "layer_norm": (lambda x, w, c: (F.layer_norm(x, (4,), w, c), F.layer_norm(x, (3, 4))), [f(2, 3, 4), f(4), f(4)]),
    "group_norm": (lambda x, w, c: F.group_norm(x, 2, w, c), [f(2, 4, 3, 3), f(4), f(4)]),
    "instance_norm": (lambda x: F.instance_norm(x), [f(2, 3, 4, 4)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), [f(3, 4), f(4)]),
    "local_response_norm": (lambda x: F.local_response_norm(x, 2), [f(2, 3, 4, 4)]),
    "normalize": (lambda x: (F.normalize(x), F.cosine_similarity(x, x.flip(0))), [f(3, 4)]),
    "renorm": (lambda x: x.renorm(2, 0, 1.0), [f(3, 4)]),
    # softmax and activations
    "softmax": (lambda x: (F.softmax(x, 1), F.softmax(x, 0), F.softmax(x, 1, dtype=torch.float64), F.softmin(x, 1)), [f(3, 4)]),
    "log_softmax": (lambda x: (F.log_softmax(x, 1), F.log_softmax(x, 0)), [f(3, 4)]),
    "activations": (lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.elu(x), F.selu(x), F.celu(x, 0.5)), [f(3, 4)]),
    "more_activations": (lambda x: (F.leaky_relu(x, 0.2), F.softplus(x, 2), F.hardtanh(x), F.hardswish(x), F.hardsigmoid(x), F.relu6(x)), [f(3, 4)]),
    "other_activations": (lambda x: (F.logsigmoid(x), F.tanhshrink(x), F.softshrink(x), F.hardshrink(x), F.threshold(x, 0.1, 3), F.softsign(x)), [f(3, 4)]),
    "prelu_glu": (lambda x, w: (F.prelu(x, w), F.glu(x)), [f(3, 4), f(4)]),
    # losses
    "cross_entropy": (lambda x: (F.cross_entropy(x, torch.tensor([1, 0, 3], device=x.device)), F.cross_entropy(x, torch.tensor([1, -100, 3], device=x.device), reduction="sum"), F.cross_entropy(x, torch.tensor([1, 0, 3], device=x.device), label_smoothing=0.1)), [f(3, 4)]),
    "nll_loss_weighted": (lambda x, w: F.nll_loss(F.log_softmax(x, 1), torch.tensor([1, 0, 3], device=x.device), w), [f(3, 4), torch.rand(4)]),
    "nll_loss2d": (lambda x: F.nll_loss(F.log_softmax(x, 1), torch.zeros(2, 4, 4, dtype=torch.int64, device=x.device)), [f(2, 3, 4, 4)]),
    "mse_l1": (lambda x, y: (F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.mse_loss(x, y, reduction="none")), [f(3, 4), f(3, 4)]),
    "smooth_l1_huber": (lambda x, y: (F.smooth_l1_loss(x, y), F.huber_loss(x, y, delta=0.5)), [f(3, 4), f(3, 4)]),
    "bce": (lambda x, y: (F.binary_cross_entropy(x.sigmoid(), y), F.binary_cross_entropy_with_logits(x, y, pos_weight=y + 1)), [f(3, 4), torch.rand(3, 4)]),
    "kl_div": (lambda x, y: F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"), [f(3, 4), f(3, 4)]),
    "margin_losses": (lambda x, y: (F.margin_ranking_loss(x, y, torch.ones_like(x), 0.5), F.hinge_embedding_loss(x, torch.ones_like(x)), F.soft_margin_loss(x, torch.ones_like(x))), [f(3, 4), f(3, 4)]),
    "triplet": (lambda a, p, n: F.triplet_margin_loss(a, p, n), [f(3, 4), f(3, 4), f(3, 4)]),
    "multi_margin": (lambda x: F.multi_margin_loss(x, torch.tensor([1, 0, 3], device=x.device)), [f(3, 4)]),
    "poisson_gaussian": (lambda x, y: (F.poisson_nll_loss(x, y), F.gaussian_nll_loss(x, y, y)), [f(3, 4), torch.rand(3, 4) + 0.5]),
    "ctc": (lambda x: F.ctc_loss(x.log_softmax(2), torch.tensor([[1, 2], [2, 1]], device=x.device), torch.tensor([5, 5]), torch.tensor([2, 2])), [f(5, 2, 4)]),
    # indexing
    "index_tensor": (lambda x, n: (x[n], x[:, n], x[n, n], x[n][:, 1], x[n[:, None], n]), [f(3, 4), idx]),
    "index_list": (lambda x: (x[[0, 2]], x[[True, False, True]], x[:, [1, 1]], x[torch.tensor([0, 2])], x[..., torch.tensor([[0, 1]])]), [f(3, 4)]),
    "index_number_tensor": (lambda x, n: (x[n[0]], x[n[1], 2], x[-1, n[2]]), [f(3, 4), idx]),
    "index_mask": (lambda x, m: (x[m], x[m[:, 0]]), [f(3, 4), b(3, 4)]),
    "take_gather": (lambda x, n: (x.gather(1, n), x.take(n), torch.take_along_dim(x, n, 1), x.index_select(1, n[0])), [f(2, 5), table]),
    "embedding": (lambda w, n: (F.embedding(n, w), F.embedding(n, w, padding_idx=0)), [f(5, 3), table]),
    "embedding_bag": (lambda w, n: F.embedding_bag(n, w, mode="mean"), [f(5, 3), table]),
    "scatter": (lambda x, y, n: (x.scatter(1, n, y), x.scatter_add(1, n, y), x.scatter_reduce(1, n, y, "amax")), [f(2, 5), f(2, 3), torch.tensor([[0, 1, 3], [2, 4, 0]])]),
    "index_ops": (lambda x, y, n: (x.index_add(0, n, y), x.index_copy(0, n, y), x.index_fill(0, n[:1], 2.0)), [f(3, 4), f(3, 4), idx]),
    "index_put": (lambda x, y, n: (x.index_put((n,), y), x.index_put((n[:2], n[1:]), y[0, :2], accumulate=True)), [f(3, 4), f(3, 4), idx]),
    "masked": (lambda x, y, m: (x.masked_fill(m, -1.0), x.masked_fill(m, y[0, 0]), torch.where(m, x, y), torch.where(m, x, 2.0), x.masked_select(m), x.masked_scatter(m, y)), [f(3, 4), f(3, 4), b(3, 4)]),
    "where_index": (lambda m: (torch.where(m), m.nonzero(), torch.argwhere(m)), [b(3, 4)]),
    "select_scatter": (lambda x, y: (torch.select_scatter(x, y[0], 0, 1), torch.slice_scatter(x, y[:2], 0, 1, 3), torch.diagonal_scatter(x, y[0, :3])), [f(3, 4), f(3, 4)]),
    # order
    "sort": (lambda x: (tuple(x.sort()), tuple(x.sort(0, descending=True)), x.argsort(stable=True), torch.msort(x)), [f(3, 5)]),
    "topk": (lambda x: (tuple(x.topk(2)), tuple(x.topk(2, 0, largest=False)), tuple(x.kthvalue(2))), [f(3, 5)]),
    "unique": (lambda n: (torch.unique(n), torch.unique(n, return_inverse=True, return_counts=True), torch.unique_consecutive(n.flatten()), torch.unique(n, dim=0)), [table]),
    "searchsorted": (lambda x, n: (torch.searchsorted(x, n), torch.bucketize(n, x)), [torch.tensor([0.0, 1, 2, 3]), torch.tensor([0.5, 2.5])]),
    "isin": (lambda n, m: torch.isin(n, m), [table, idx]),
    "mode": (lambda n: tuple(n.mode()), [table]),
    # joining and moving
    "cat": (lambda x, y: (torch.cat([x, y]), torch.cat([x, y, x], 1), torch.hstack([x, y]), torch.vstack([x, y]), torch.dstack([x, y])), [f(3, 4), f(3, 4)]),
    "cat_promotes": (lambda x, n: torch.cat([x, n]), [f(3).detach(), i(2)]),
    "stack": (lambda x, y: (torch.stack([x, y]), torch.stack([x, y], -1), torch.column_stack([x, y])), [f(3, 4), f(3, 4)]),
    "split": (lambda x: (x.split(2), x.split([1, 3], 1), x.chunk(2), x.unbind(), x.tensor_split(2, 1)), [f(3, 4)]),
    "split_copy": (lambda x: [part * 2 for part in x.split(2)], [f(5, 4)]),
    "flip_roll": (lambda x: (x.flip(0), x.flip((0, 1)), x.roll(1), x.roll((1, 2), (0, 1)), x.rot90(), x.fliplr()), [f(3, 4)]),
    "repeat": (lambda x: (x.repeat(2, 3), x.tile(2), x.repeat_interleave(2, 0), x.repeat_interleave(3)), [f(3, 4)]),
    "repeat_by_tensor": (lambda x, n: x.repeat_interleave(n, 0), [f(3, 4), idx]),
    "triangles": (lambda x: (x.tril(), x.triu(1), x.tril(-1)), [f(4, 4)]),
    "permute_reshape": (lambda x: (x.permute(2, 0, 1).reshape(4, 6), x.transpose(0, 2).flatten(1), x.movedim(0, 2).contiguous()), [f(2, 3, 4)]),
    "expand_sum": (lambda x: (x.expand(3, 4) * 2).sum(0), [f(4)]),
    "broadcast_tensors": (lambda x, y: torch.broadcast_tensors(x, y), [f(3, 1), f(4)]),
    "diff_cross": (lambda x, y: (x.diff(), torch.linalg.cross(x, y), torch.trapezoid(x)), [f(4, 3), f(4, 3)]),
    "combinations": (lambda x: torch.combinations(x), [torch.arange(4)]),
    "as_strided": (lambda x: x.as_strided((2, 2), (1, 4), 1) * 2, [f(3, 4)]),
    # several tensors, compositions
    "lerp_addcmul": (lambda x, y, z: (torch.lerp(x, y, z), torch.addcmul(x, y, z, value=0.5), torch.addcdiv(x, y, z + 3)), [f(3, 4), f(3, 4), pos(3, 4)]),
    "clamp": (lambda x, y: (x.clamp(-0.5, 0.5), x.clamp(min=y), x.clamp_max(0.2), x.clip(y - 1, y + 1)), [f(3, 4), f(3, 4)]),
    "nan_to_num": (lambda x: (x.nan_to_num(), x.nan_to_num(1.0, 2.0, 3.0)), [torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])]),
    "heaviside_xlogy": (lambda x, y: (torch.heaviside(x, y), torch.xlogy(y, y), torch.special.entr(y)), [f(3, 4).detach(), torch.rand(3, 4)]),
    "complex_parts": (lambda x, y: (torch.complex(x, y).abs(), torch.polar(x, y).real, torch.view_as_complex(torch.stack([x, y], -1)).angle()), [pos(3, 4), f(3, 4)]),
    "fft": (lambda x: (torch.fft.fft(x).abs(), torch.fft.rfft(x).real, torch.fft.irfft(torch.fft.rfft(x)), torch.fft.fft2(x).imag), [f(4, 8)]),
    "dropout_off": (lambda x: (F.dropout(x, 0.5, training=False), F.dropout(x, 0.0), F.dropout(x, 1.0)), [f(3, 4)]),
    "multi_head_weights": (lambda x, w: F.softmax(x @ w @ x.transpose(-1, -2) / 2, -1) @ x, [f(2, 3, 4), f(4, 4)]),
    "foreach": (lambda x, y: (torch._foreach_add([x, y], 2.0), torch._foreach_mul([x, y], [y, x]), torch._foreach_norm([x, y])), [f(3), f(3)]),
}


@pytest.mark.parametrize("name", OPS)
def test_op(name):
    function, args = OPS[name]
    check(function, args, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["mm", "softmax", "layer_norm", "sum", "conv2d", "activations", "mse_l1", "cat"])
def test_op_in_other_precision(name, dtype):
    function, args = OPS[name]
    args = [arg.detach().to(dtype).requires_grad_(arg.requires_grad) for arg in args]
    check(function, args, **({} if dtype == torch.float64 else {"rtol": 2e-2, "atol": 2e-2}))


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    """Values only: which kernel computes it, and so the strides, differs from device to device."""
    args = [f(2, 2, 3, 4) for _ in range(3)]

    def results(args):
        out, gradients = forward_and_backward(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), args)
        return [tensor.contiguous() for tensor in (out, *gradients)]

    assert_same(results(to_device(args)), results(args), rtol=1e-4, atol=1e-5)


# ---- modules with state


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("module", [torch.nn.BatchNorm1d, torch.nn.BatchNorm2d])
def test_batch_norm_module(module, momentum):
    def results(x):
        torch.manual_seed(0)
        norm = module(3, momentum=momentum).to(x.device)
        outputs = [norm(x), norm(x * 2 + 1)]
        sum(out.sin().sum() for out in outputs).backward()
        norm.eval()
        outputs.append(norm(x))
        return [out.detach() for out in outputs], dict(norm.state_dict()), norm.weight.grad, norm.bias.grad, x.grad

    assert_both(results, f(4, 3, 2, 2) if module is torch.nn.BatchNorm2d else f(6, 3), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_native_batch_norm_into_outputs(training):
    """It writes its running statistics, which no schema says."""

    def results(x):
        mean, var = torch.zeros(3, device=x.device), torch.ones(3, device=x.device)
        before = mean.clone()
        outputs = [torch.empty(0, device=x.device) for _ in range(3)]
        given = torch.native_batch_norm(x, None, None, mean, var, training, 0.5, 1e-5, out=outputs)
        torch.native_batch_norm(x, None, None, None, None, True, 0.5, 1e-5, out=[torch.empty(0, device=x.device) for _ in range(3)])
        return list(given), mean, var, before

    assert_both(results, torch.randn(4, 3, 2), rtol=1e-4, atol=1e-5)


def test_multihead_attention_module():
    def results(x):
        torch.manual_seed(0)
        attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).to(x.device)
        out, weights = attention(x, x, x)
        out.sin().sum().backward()
        return out.detach(), weights.detach(), x.grad, attention.in_proj_weight.grad

    assert_both(results, f(2, 3, 8), rtol=1e-4, atol=1e-5)


def test_transformer_layer_module():
    def results(x):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to(x.device)
        out = layer(x)
        out.sin().sum().backward()
        gradient = x.grad.clone()
        layer.eval()
        with torch.no_grad():
            return out.detach(), gradient, layer(x)

    assert_both(results, f(2, 3, 8), rtol=1e-4, atol=1e-5)


# ---- half types: where the CPU computes in float in between, so must the device


HALF_TYPES = {
    "mish_backward": lambda x: torch.autograd.grad(F.mish(x.requires_grad_()).sum(), x)[0],
    "batch_norm": lambda x: F.batch_norm(x.view(8, 2, 16)[:, :, ::2].contiguous(), None, None, x[:2], x[2:4], training=True),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", HALF_TYPES)
def test_half_types_are_as_exact_as_on_the_cpu(name, dtype):
    assert_both(HALF_TYPES[name], f(256).detach().to(dtype))


@pytest.mark.patch("linear_cross_entropy")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_linear_cross_entropy_in_chunks_of_half_types(dtype):
    options = LinearCrossEntropyOptions(batch_chunk_size=2)
    assert_both(lambda x: F.linear_cross_entropy(x.view(16, 16), x.view(16, 16).flip(0), torch.arange(16, device=x.device),
                                                 reduction="none", options=options), f(256).detach().to(dtype))  # fmt: skip


# ---- index tensors on the CPU


def test_cpu_index_tensors():
    rows, columns, mask = torch.tensor([0, 2]), torch.tensor([3, 1]), torch.tensor([True, False, True])

    def results(x):
        x = x.clone()
        picked = x[rows], x[rows, columns], x[mask], x[:, columns]
        x[rows] = 1.0
        x[rows, columns] = torch.tensor([5.0, 6.0], device=x.device)
        x[mask] += 1
        x.index_put_((rows,), x[0].clone(), accumulate=True)
        return picked, x

    assert_both(results, f(3, 4).detach())


def test_put_by_mask_and_tensor():
    def results(x, n, m):
        x[m] = 0
        x[n] = x[n] * 2
        x[n, 1:3] = -1
        x[:, n] += 1
        x[x > 1] = 1.5
        x[0, n] = torch.arange(3.0, device=x.device)
        x.put_(n, torch.ones(3, device=x.device), accumulate=True)
        return x

    assert_both(results, f(3, 4).detach(), idx, b(3, 4))


def test_zero_dim_cpu_tensors():
    """PyTorch accepts them beside tensors of any device."""
    def results(x):
        return x + torch.tensor(2.0), torch.tensor(2.0, dtype=torch.float64) * x, x.pow(torch.tensor(2)), torch.where(x > 0, x, torch.tensor(0.5))

    assert_both(results, f(3, 4).detach())


# ---- autograd beyond one backward


def test_double_backward():
    def results(x):
        y = (x ** 3).sum()
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
        (second,) = torch.autograd.grad(gradient.pow(2).sum(), x)
        return gradient.detach(), second

    assert_both(results, f(3, 4))


def test_custom_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 3 * x * x * gradient

    check(Cube.apply, [f(3, 4)])


def test_functional_transforms():
    def results(x):
        function = lambda v: (v.sin() * v).sum()
        return (torch.func.grad(function)(x[0]), torch.func.vmap(function)(x), torch.func.vmap(torch.func.grad(function))(x),
                torch.func.jvp(function, (x[0],), (torch.ones_like(x[0]),)), torch.func.hessian(function)(x[0]))

    assert_both(results, f(3, 4).detach())


def test_gradcheck():
    x = torch.rand(2, 3, dtype=torch.float64, device=LTC, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.tanh(x @ x.t()).sum(), [x])


def test_backward_with_given_gradient():
    def results(x, g):
        y = x.exp()
        y.backward(g)
        y2 = x * 2
        y2.sum().backward()
        return x.grad

    assert_both(results, f(3, 4), torch.rand(3, 4))


def test_hooks_see_gradients():
    seen = []
    x = torch.ones(3, device=LTC, requires_grad=True)
    x.register_hook(lambda gradient: seen.append(gradient.sum().item()) or gradient * 2)
    (x * 5).sum().backward()
    assert seen == [15.0]
    assert_same(x.grad, torch.full((3,), 10.0))


def test_autocast():
    x, w = f(3, 4).detach(), f(5, 4).detach()
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("ltc", dtype=dtype):
            out = F.linear(x.to(LTC), w.to(LTC))
            assert out.dtype == dtype
        assert_close(out.cpu(), F.linear(x.to(dtype), w.to(dtype)), rtol=2e-2, atol=2e-2)


def test_ops_are_traced_not_run(metrics):
    """The purpose of the table's minimal rows: none of this ends the trace or runs on the CPU."""
    x, w = f(4, 8).detach().to(LTC).requires_grad_(), f(8, 8).detach().to(LTC)
    for _ in range(2):
        loss = F.cross_entropy(F.layer_norm(F.gelu(x @ w), (8,)), torch.zeros(4, dtype=torch.int64, device=LTC))
        loss.backward()
        ltc.mark_step()
    ltc.wait_device_ops()
    assert [name for name in metrics.counter_names() if name.startswith("aten::")] == []
    assert metrics.counter_value("FallbackBarrier") == 0
