"""Autocast with CUDA's lists of ops, and training with scaled gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.amp import GradScaler, custom_bwd, custom_fwd
from torch.nn.utils import clip_grad_norm_

import ltc
from comparing import LTC, assert_same, to_device

pytestmark = pytest.mark.filterwarnings("ignore:at::nuclear_norm is deprecated")

LOWER = [torch.bfloat16, torch.float16]


def floats(*sizes):
    return torch.rand(*sizes) + 0.25


# For each op of autocast's lists: the function to call, and its float32 tensors.
LOWER_PRECISION = {
    "conv1d": (F.conv1d, floats(2, 3, 8), floats(4, 3, 3)),
    "conv2d": (F.conv2d, floats(2, 3, 8, 8), floats(4, 3, 3, 3), floats(4)),
    "conv3d": (F.conv3d, floats(1, 2, 4, 4, 4), floats(3, 2, 2, 2, 2)),
    "conv_transpose1d": (F.conv_transpose1d, floats(2, 3, 8), floats(3, 4, 3)),
    "conv_transpose2d": (F.conv_transpose2d, floats(2, 3, 5, 5), floats(3, 4, 3, 3)),
    "prelu": (F.prelu, floats(2, 3) - 0.5, floats(3)),
    "addmm": (torch.addmm, floats(2, 4), floats(2, 3), floats(3, 4)),
    "addmv": (torch.addmv, floats(2), floats(2, 3), floats(3)),
    "addr": (torch.addr, floats(2, 3), floats(2), floats(3)),
    "matmul": (torch.matmul, floats(2, 3), floats(3, 4)),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), floats(2, 3), floats(3, 4)),
    "mm": (torch.mm, floats(2, 3), floats(3, 4)),
    "mv": (torch.mv, floats(2, 3), floats(3)),
    "linear": (F.linear, floats(2, 3), floats(4, 3), floats(4)),
    "addbmm": (torch.addbmm, floats(2, 4), floats(3, 2, 3), floats(3, 3, 4)),
    "baddbmm": (torch.baddbmm, floats(3, 2, 4), floats(3, 2, 3), floats(3, 3, 4)),
    "bmm": (torch.bmm, floats(3, 2, 3), floats(3, 3, 4)),
    "chain_matmul": (torch.linalg.multi_dot, [floats(2, 3), floats(3, 4), floats(4, 2)]),
    "vecdot": (torch.linalg.vecdot, floats(2, 3), floats(2, 3)),
    "attention": (F.scaled_dot_product_attention, floats(1, 2, 4, 8), floats(1, 2, 4, 8), floats(1, 2, 4, 8)),
}
FP32 = {
    "acos": (torch.acos, floats(4) / 2),
    "asin": (torch.asin, floats(4) / 2),
    "cosh": (torch.cosh, floats(4)),
    "erfinv": (torch.erfinv, floats(4) / 2),
    "exp": (torch.exp, floats(4)),
    "expm1": (torch.expm1, floats(4)),
    "log": (torch.log, floats(4)),
    "log10": (torch.log10, floats(4)),
    "log2": (torch.log2, floats(4)),
    "log1p": (torch.log1p, floats(4)),
    "reciprocal": (torch.reciprocal, floats(4)),
    "rsqrt": (torch.rsqrt, floats(4)),
    "sinh": (torch.sinh, floats(4)),
    "tan": (torch.tan, floats(4)),
    "pow_number": (lambda x: x**1.5, floats(4)),
    "pow": (torch.pow, floats(4), floats(4)),
    "number_pow": (lambda x: 2**x, floats(4)),
    "softplus": (F.softplus, floats(4)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (4,), w), floats(3, 4), floats(4)),
    "rms_norm": (lambda x: F.rms_norm(x, (4,)), floats(3, 4)),
    "group_norm": (lambda x: F.group_norm(x, 2), floats(3, 4, 5)),
    "norm": (lambda x: torch.norm(x, 2, 1), floats(3, 4)),
    "nuclear_norm": (torch.nuclear_norm, floats(3, 4)),
    "cosine_similarity": (F.cosine_similarity, floats(3, 4), floats(3, 4)),
    "nll_loss": (lambda x: F.nll_loss(x, torch.tensor([1, 0, 3]).to(x.device)), floats(3, 4)),
    "kl_div": (lambda a, b: F.kl_div(a, b, reduction="sum"), floats(3, 4), floats(3, 4)),
    "l1_loss": (F.l1_loss, floats(3, 4), floats(3, 4)),
    "smooth_l1_loss": (F.smooth_l1_loss, floats(3, 4), floats(3, 4)),
    "huber_loss": (F.huber_loss, floats(3, 4), floats(3, 4)),
    "mse_loss": (F.mse_loss, floats(3, 4), floats(3, 4)),
    "margin_ranking_loss": (F.margin_ranking_loss, floats(4), floats(4), floats(4)),
    "soft_margin_loss": (F.soft_margin_loss, floats(4), floats(4)),
    "triplet_margin_loss": (F.triplet_margin_loss, floats(3, 4), floats(3, 4), floats(3, 4)),
    "bce_with_logits": (F.binary_cross_entropy_with_logits, floats(3, 4), floats(3, 4)),
    "dist": (torch.dist, floats(4), floats(4)),
    "cdist": (torch.cdist, floats(3, 4), floats(2, 4)),
    "renorm": (lambda x: torch.renorm(x, 2, 0, 0.5), floats(3, 4)),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), floats(3, 4)),
    "upsample_nearest": (lambda x: F.interpolate(x, scale_factor=2), floats(1, 2, 3, 3)),
    "upsample_bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), floats(1, 2, 3, 3)),
}
FP32_BY_DTYPE = {
    "prod": (torch.prod, floats(4)),
    "softmax": (lambda x: torch.softmax(x, 1), floats(3, 4)),
    "log_softmax": (lambda x: F.log_softmax(x, 1), floats(3, 4)),
    "cumprod": (lambda x: torch.cumprod(x, 1), floats(3, 4)),
    "cumsum": (lambda x: torch.cumsum(x, 1), floats(3, 4)),
    "vector_norm": (torch.linalg.vector_norm, floats(4)),
    "matrix_norm": (torch.linalg.matrix_norm, floats(3, 4)),
    "sum": (torch.sum, floats(3, 4)),
    "sum_dim": (lambda x: x.sum(1), floats(3, 4)),
}
PROMOTE = {
    "addcdiv": (torch.addcdiv, floats(4), floats(4), floats(4)),
    "addcmul": (torch.addcmul, floats(4), floats(4), floats(4)),
    "atan2": (torch.atan2, floats(4), floats(4)),
    "bilinear": (F.bilinear, floats(2, 3), floats(2, 4), floats(5, 3, 4)),
    "cross": (lambda a, b: torch.cross(a, b, 1), floats(2, 3), floats(2, 3)),
    "dot": (torch.dot, floats(4), floats(4)),
    "grid_sampler": (lambda x, g: F.grid_sample(x, g - 0.5, align_corners=False), floats(1, 2, 3, 3), floats(1, 3, 3, 2)),
    "tensordot": (lambda a, b: torch.tensordot(a, b, 1), floats(2, 3), floats(3, 2)),
    "scatter_add": (lambda a, b: a.scatter_add(0, torch.tensor([0, 1, 0]).to(a.device), b), floats(3), floats(3)),
    "index_put": (lambda a, b: torch.index_put(a, (torch.tensor([2, 1, 0]).to(a.device),), b), floats(3), floats(3)),
    "cat": (lambda *t: torch.cat(t), floats(3), floats(3)),
    "stack": (lambda *t: torch.stack(t), floats(3), floats(3)),
}


def cast(tree, dtype):
    return [cast(item, dtype) for item in tree] if isinstance(tree, (list, tuple)) else tree.to(dtype)


def tolerance(dtype):
    return {torch.float32: {"rtol": 1e-4, "atol": 1e-5}}.get(dtype, {"rtol": 3e-2, "atol": 1e-2})


def check(row, given, computed, region):
    """Under autocast the op gets `given` tensors and answers as the CPU does for `computed` ones."""
    function, *args = row
    with torch.autocast("ltc", dtype=region):
        result = function(*to_device(cast(args, given)))
    expected = function(*cast(cast(args, given), computed))
    assert result.dtype == expected.dtype == computed
    assert_same(result, expected, **tolerance(computed))


@pytest.mark.parametrize("dtype", LOWER, ids=str)
@pytest.mark.parametrize("name", LOWER_PRECISION)
def test_ops_in_lower_precision(name, dtype):
    check(LOWER_PRECISION[name], torch.float32, dtype, dtype)


@pytest.mark.parametrize("dtype", LOWER, ids=str)
@pytest.mark.parametrize("name", FP32 | FP32_BY_DTYPE)
def test_ops_in_float32(name, dtype):
    check((FP32 | FP32_BY_DTYPE)[name], dtype, torch.float32, dtype)


def test_a_given_dtype_is_kept():
    x = floats(3, 4).to(LTC, torch.float16)
    with torch.autocast("ltc", dtype=torch.float16):
        assert torch.sum(x, dtype=torch.float16).dtype == torch.float16
        assert torch.softmax(x, 1, dtype=torch.float16).dtype == torch.float16
        assert torch.cumsum(x, 1, dtype=torch.float64).dtype == torch.float64


@pytest.mark.parametrize("name", PROMOTE)
def test_ops_in_the_widest_type(name):
    function, *args = PROMOTE[name]
    half = [tensor.half() for tensor in args]
    mixed = [args[0], *half[1:]]
    with torch.autocast("ltc", dtype=torch.float16):
        assert function(*to_device(half)).dtype == torch.float16
        result = function(*to_device(mixed))
    assert_same(result, function(*cast(mixed, torch.float32)), rtol=1e-4, atol=1e-5)


def test_other_ops_follow_their_operands():
    x, half = floats(4).to(LTC), floats(4).half().to(LTC)
    with torch.autocast("ltc", dtype=torch.float16):
        assert (x + half).dtype == torch.float32
        assert (half * 2).dtype == half.relu().dtype == torch.float16
        assert torch.mm(torch.ones(2, 2, device=LTC, dtype=torch.float64), torch.ones(2, 2, device=LTC, dtype=torch.float64)
                        ).dtype == torch.float64
        assert (torch.ones(2, 2, device=LTC, dtype=torch.int64) @ torch.ones(2, 2, device=LTC, dtype=torch.int64)
                ).dtype == torch.int64


def test_binary_cross_entropy_is_refused_as_on_cuda():
    p = torch.full((3,), 0.5, device=LTC)
    with torch.autocast("ltc"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(p, p)
    F.binary_cross_entropy(p, p)


# ---- regions


def test_state_of_a_region():
    assert not torch.is_autocast_enabled("ltc") and torch.get_autocast_dtype("ltc") == torch.float16
    with torch.autocast("ltc", dtype=torch.bfloat16):
        assert torch.is_autocast_enabled("ltc") and torch.get_autocast_dtype("ltc") == torch.bfloat16
        assert not torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("ltc") and torch.get_autocast_dtype("ltc") == torch.float16
    assert torch.amp.is_autocast_available("ltc")


def test_default_dtype_can_be_set():
    torch.set_autocast_dtype("ltc", torch.bfloat16)
    try:
        with torch.autocast("ltc"):
            assert (torch.ones(2, 2, device=LTC) @ torch.ones(2, 2, device=LTC)).dtype == torch.bfloat16
    finally:
        torch.set_autocast_dtype("ltc", torch.float16)


def test_an_unsupported_dtype_turns_it_off():
    x = torch.ones(2, 2, device=LTC)
    with pytest.warns(UserWarning, match="only supports"):
        region = torch.autocast("ltc", dtype=torch.float32)
    with region:
        assert (x @ x).dtype == torch.float32


def test_nested_and_disabled_regions():
    x = torch.rand(3, 3).to(LTC)
    with torch.autocast("ltc", dtype=torch.bfloat16):
        half = x @ x
        with torch.autocast("ltc", enabled=False):
            full = half.float() @ x
            with torch.autocast("ltc", dtype=torch.float16):
                inner = full @ x
        again = inner @ x
    outside = x @ x
    assert [t.dtype for t in (half, full, inner, again, outside)] == [
        torch.bfloat16, torch.float32, torch.float16, torch.bfloat16, torch.float32]
    assert_same(outside, x.cpu() @ x.cpu(), rtol=1e-5, atol=1e-5)


def test_other_devices_are_not_cast():
    with torch.autocast("ltc", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2, device=LTC) @ torch.ones(2, 2, device=LTC)).dtype == torch.float32


def test_decorator():
    @torch.autocast("ltc", dtype=torch.bfloat16)
    def product(x):
        return x @ x

    assert product(torch.ones(2, 2, device=LTC)).dtype == torch.bfloat16


def casts_of_a_weight(**region):
    ltc.sync()
    layer, x = nn.Linear(4, 4, bias=False).to(LTC), torch.ones(2, 4, device=LTC, dtype=torch.bfloat16)
    ltc.sync()
    with torch.autocast("ltc", dtype=torch.bfloat16, **region):
        held = layer(x), layer(x), layer(x)
        casts = ltc.graph().count("aten::_to_copy")
    del held
    return casts


def test_weights_are_cast_once_in_a_region():
    assert casts_of_a_weight() == 1
    assert casts_of_a_weight(cache_enabled=False) == 3


def test_the_cache_ends_with_the_region():
    layer, x = nn.Linear(3, 3, bias=False).to(LTC), torch.eye(3, device=LTC)
    for value in (1.0, 2.0):
        with torch.no_grad():
            layer.weight.fill_(value)
        with torch.autocast("ltc", dtype=torch.bfloat16):
            assert layer(x).unique().tolist() == [value]


def test_gradients_have_the_type_of_the_weights():
    layer = nn.Linear(4, 3).to(LTC)
    with torch.autocast("ltc", dtype=torch.bfloat16):
        out = layer(torch.ones(2, 4, device=LTC))
        loss = F.mse_loss(out, torch.zeros(2, 3, device=LTC))
    loss.backward()
    assert out.dtype == torch.bfloat16 and loss.dtype == torch.float32
    assert layer.weight.grad.dtype == layer.bias.grad.dtype == torch.float32


# ---- custom functions


class Product(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="ltc")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @custom_bwd(device_type="ltc")
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        assert torch.is_autocast_enabled("ltc") == ctx._fwd_used_autocast
        return gradient @ b.t(), a.t() @ gradient


class SingleProduct(Product):
    @staticmethod
    @custom_fwd(device_type="ltc", cast_inputs=torch.float32)
    def forward(ctx, a, b):
        assert not torch.is_autocast_enabled("ltc") and a.dtype == b.dtype == torch.float32
        ctx.save_for_backward(a, b)
        return a @ b


def test_custom_functions():
    a, b = torch.rand(2, 3).to(LTC).requires_grad_(), torch.rand(3, 2).to(LTC).requires_grad_()
    with torch.autocast("ltc", dtype=torch.bfloat16):
        assert Product.apply(a, b).dtype == torch.bfloat16
        out = SingleProduct.apply(a.bfloat16(), b)
        assert out.dtype == torch.float32
        Product.apply(a, b).float().sum().backward()
    assert a.grad.dtype == torch.float32
    assert_same(a.grad, torch.ones(2, 2) @ b.detach().cpu().t(), rtol=2e-2, atol=1e-2)
    out.sum().backward()


# ---- training


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 3))


def convnet():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 3))


INPUTS = {mlp: lambda: torch.randn(16, 6), convnet: lambda: torch.randn(8, 1, 8, 8)}


def batches(model, count):
    torch.manual_seed(1)
    data = [INPUTS[model]() for _ in range(count)]
    return [(x, x.flatten(1).sum(1).sign().long() + 1) for x in data]


@pytest.mark.parametrize("model", [mlp, convnet])
def test_training_matches_autocast_on_the_cpu(model, metrics):
    def run(device):
        module = model().to(device)
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
        losses = []
        for k, (x, target) in enumerate(batches(model, 12)):
            if k == 4 and device == "ltc":
                ltc.wait_device_ops()
                metrics.reset()
            optimizer.zero_grad()
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.cross_entropy(module(x.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
            ltc.mark_step()
            losses.append(loss.detach())
        compiles = metrics.counter_value("UncachedCompile")
        return torch.stack(losses).cpu(), compiles

    losses, compiles = run("ltc")
    assert compiles == 0
    torch.testing.assert_close(losses, run("cpu")[0], rtol=5e-2, atol=2e-2)


def scaled_training(device, model=mlp, steps=8, poison=(), fused=False, clip=None, **options):
    """The scale after every step, and the parameters. In poisoned steps a gradient is infinite."""
    module = model().to(device)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01, fused=fused)
    scaler = GradScaler(device, init_scale=2.0**10, growth_interval=3, **options)
    scales, norms = [], []
    for k, (x, target) in enumerate(batches(model, steps)):
        optimizer.zero_grad()
        loss = F.cross_entropy(module(x.to(device)), target.to(device))
        if k in poison:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            norms.append(clip_grad_norm_(module.parameters(), clip))
        scaler.step(optimizer)
        scaler.update()
        ltc.mark_step()
        scales.append(scaler._scale.clone())
    return torch.stack(scales).tolist(), [p.detach() for p in module.parameters()], norms


SCALED = {
    "growing": {},
    "poisoned": {"poison": (0, 4, 5)},
    "fused": {"fused": True},
    "fused_and_poisoned": {"fused": True, "poison": (2, 5)},
    "clipped": {"clip": 0.1},
    "other_factors": {"growth_factor": 4.0, "backoff_factor": 0.25, "poison": (6,)},
}


@pytest.mark.parametrize("name", SCALED)
def test_scaled_training(name):
    lazy, cpu = (scaled_training(device, **SCALED[name]) for device in ("ltc", "cpu"))
    assert lazy[0] == cpu[0]
    assert_same(lazy[1:], cpu[1:], rtol=1e-3, atol=1e-5)


def test_a_scaled_step_reads_once(metrics):
    """The scaler asks whether to skip the step; with a fused optimizer it does not even that."""
    for fused, reads in ((False, 1), (True, 0)):
        ltc.sync()
        metrics.reset()
        scaled_training("ltc", steps=8, fused=fused)
        assert metrics.counter_value("ReadBarrier") <= 8 * reads + 1  # and the scales, at the end
        assert [counter for counter in metrics.counter_names() if counter.startswith("aten::")] == []
        compiled = metrics.counter_value("UncachedCompile")
        scaled_training("ltc", steps=8, fused=fused)
        assert metrics.counter_value("UncachedCompile") <= compiled + 1


def test_training_in_float16_with_autocast_and_scaling():
    module = convnet().to(LTC)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    scaler, losses = GradScaler("ltc"), []
    x, target = to_device(batches(convnet, 1)[0])
    for _ in range(20):
        optimizer.zero_grad()
        with torch.autocast("ltc", dtype=torch.float16):
            loss = F.cross_entropy(module(x), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(module.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_state_of_a_scaler():
    scaler = GradScaler("ltc", init_scale=8.0)
    scaler.scale(torch.ones(1, device=LTC))
    again = GradScaler("ltc")
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 8.0 and again.scale(torch.ones(1, device=LTC)).item() == 8.0
    scaler.update(2.0)
    assert scaler.get_scale() == 2.0


def test_unscaling_twice_is_an_error():
    module = mlp().to(LTC)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    scaler = GradScaler("ltc")
    scaler.scale(module(torch.ones(1, 6, device=LTC)).sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)


def test_a_scale_does_not_grow_to_infinity():
    scaler = GradScaler("ltc", init_scale=3e38, growth_interval=1)
    p = nn.Parameter(torch.zeros(1, device=LTC))
    optimizer = torch.optim.SGD([p], lr=0.1)
    scaler.scale(torch.zeros(1, device=LTC))
    p.grad = torch.zeros(1, device=LTC)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == torch.tensor(3e38).item()
