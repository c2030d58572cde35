"""The OpenCL plugin beside the CPU: what its own kernels do differently from op to op and from size to size."""

import json
import os
from pathlib import Path

import pytest

import ltc
from comparing import output_of

PACKAGE = Path(ltc.__file__).parent

pytestmark = pytest.mark.skipif(
    not (PACKAGE / "plugins" / "libltc_opencl.so").exists(), reason="built where there were no OpenCL headers"
)

PROGRAM = """
import json, torch, torch.nn.functional as F, ltc

torch.manual_seed(0)
failures = []

def check(name, compute, *operands, tolerance=2e-4):
    expected = compute(*operands)
    got = compute(*[x.to("ltc") for x in operands]).cpu()
    scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    if got.shape != expected.shape or not torch.allclose(got, expected, atol=tolerance * scale, rtol=tolerance, equal_nan=True):
        failures.append(f"{name}: differs by {float((got - expected).abs().max()):.3g}")

def check_gradients(name, compute, *operands, tolerance=5e-4):
    results = []
    for device in ("cpu", "ltc"):
        leaves = [x.to(device).detach().requires_grad_() for x in operands]
        compute(*leaves).square().sum().backward()
        results.append([leaf.grad.cpu() for leaf in leaves])
    for i, (expected, got) in enumerate(zip(*results)):
        scale = max(1.0, float(expected.abs().max()))
        if not torch.allclose(got, expected, atol=tolerance * scale, rtol=tolerance):
            failures.append(f"{name}: gradient {i} differs by {float((got - expected).abs().max()):.3g}")

"""

PARTS = {
    # Sizes around those of a tile, operands of every layout.
    "products": """
for m in (1, 7, 8, 9, 33):
    for n in (1, 31, 32, 33, 70):
        for k in (1, 17, 64):
            a, b = torch.randn(m, k), torch.randn(k, n)
            check(f"mm {m} {n} {k}", torch.mm, a, b)
            check(f"mm of transposed {m} {n} {k}", lambda x, y: x.t() @ y.t(), torch.randn(k, m), torch.randn(n, k))
check("bmm", torch.bmm, torch.randn(3, 20, 30), torch.randn(3, 30, 40))
check("joined to an empty vector", lambda none, x: torch.cat([none, x], -2) * 2, torch.empty(0), torch.randn(2, 3, 8, 5))
check("one matrix for all", lambda a, b: a.expand(3, 20, 30) @ b, torch.randn(20, 30), torch.randn(3, 30, 40))
check("pieces", lambda a, b: a[:, 2:, ::3] @ b[1:].transpose(1, 2), torch.randn(3, 22, 60), torch.randn(4, 40, 20))
check("joined dims from the end", lambda x: (x * 2).reshape(5, 108).flip(1), torch.randn(5, 6, 6, 3))
""",
    "convolutions": """
for groups in (1, 2):
    for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (1, 2, 2)):
        how = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        check_gradients(f"1d {how}", lambda x, w: F.conv1d(x, w, **how), torch.randn(3, 4, 20), torch.randn(6, 4 // groups, 3))
        check_gradients(f"2d {how}", lambda x, w, b: F.conv2d(x, w, b, **how), torch.randn(3, 4, 9, 11),
                        torch.randn(6, 4 // groups, 3, 3), torch.randn(6))
        check_gradients(f"transposed {how}", lambda x, w: F.conv_transpose2d(x, w, **how), torch.randn(2, 4, 7, 6),
                        torch.randn(4, 6 // groups, 3, 3))
check_gradients("3d", lambda x, w: F.conv3d(x, w, padding=1), torch.randn(2, 3, 5, 6, 7), torch.randn(4, 3, 3, 3, 3))
""",
    "rows": """
x = torch.randn(12, 40, 9)
for dim in (0, 1, 2):
    check_gradients(f"softmax {dim}", lambda x: F.softmax(x, dim), x)
    check_gradients(f"log_softmax {dim}", lambda x: F.log_softmax(x, dim), x)
    check(f"argmax {dim}", lambda x: x.argmax(dim).float(), x)
    check(f"cumsum {dim}", lambda x: x.cumsum(dim), x)
    check(f"sort {dim}", lambda x: x.sort(dim=dim, stable=True)[0], x)
    check(f"var {dim}", lambda x: x.var(dim), x)
for size in ((40, 2048), (300, 100)):  # long enough for vectors and for several of them in a work item
    x = torch.randn(size)
    x[3, 70] = float("nan")
    for dim in (0, 1):
        check(f"sum {size} {dim}", lambda x: x.sum(dim), x)
        check(f"softmax {size} {dim}", lambda x: F.softmax(x, dim), x)
        check(f"amax {size} {dim}", lambda x: x.amax(dim), x, tolerance=0)
        check(f"amax of booleans {size} {dim}", lambda x: (x > 2.5).amax(dim).float(), x, tolerance=0)
x = torch.randn(12, 40, 9)
check_gradients("layer norm", lambda x, w, b: F.layer_norm(x, (9,), w, b), x, torch.randn(9), torch.randn(9))
check_gradients("batch norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, torch.randn(40), torch.randn(40))
check("a long sum", lambda x: x.sum(), torch.randn(1_000_000) + 1, tolerance=1e-6)
check("a few long rows", lambda x: F.softmax(x, 1), torch.randn(2, 30_000))
check("no rows", lambda x: x.sum(1), torch.randn(0, 5))
check("rows of nothing", lambda x: x.sum(1), torch.randn(5, 0))
""",
    "indices": """
i = torch.randint(0, 50, (7, 11))
check_gradients("embedding", lambda w: F.embedding(i.to(w.device), w), torch.randn(50, 16))
check("index_add", lambda x, y: x.index_add(0, torch.tensor([3, 3, 0], device=x.device), y), torch.randn(5, 4), torch.randn(3, 4))
check("many indices in a kernel", lambda x, i, s: x.index_reduce(1, i, s, "amax", include_self=False), torch.randn(5, 5),
      torch.arange(10) % 5, torch.randn(5, 10))
check_gradients("max pooling", lambda x: F.max_pool2d(x, 3, 2, 1), torch.randn(2, 3, 9, 10))
check_gradients("mean pooling", lambda x: F.avg_pool2d(x, 3, 2, 1), torch.randn(2, 3, 9, 10))
check_gradients("an empty part", lambda x: F.pad(x * x, [-1, -1]).mT.split(2, 1)[-1] * -1, torch.randn(1, 1, 2))
check_gradients("empty pieces, joined and padded", lambda x: F.pad(torch.cat([x[:, :0], x[:, 3:].exp()], 1), [0, 3]), torch.randn(2, 3))
check_gradients("pieces", lambda x: torch.cat([x[:, ::2].flip(1), x.roll(3, 1)[:, 1:]], 1), torch.randn(6, 20))
""",
    # Denormals and NaN where vectors and fast mathematics like to lose them.
    "special values": """
x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, -1e-45, 3.0])
for name in ("relu", "abs", "neg", "sqrt", "exp", "sign", "tanh", "sigmoid", "floor", "reciprocal"):
    check(name, getattr(torch, name), x, tolerance=1e-6)
check("maximum", lambda x: torch.maximum(x[:, None], x[None, :]), x, tolerance=0)
check("amax", lambda x: x.expand(3, 8).amax(1), x, tolerance=0)
check("signs of zero", lambda x: torch.copysign(torch.ones_like(x), x * 1.0)[3:], x, tolerance=0)
check("denormal sums", lambda x: x[5:7] + x[5:7], x, tolerance=0)
""",
}


@pytest.mark.parametrize("part", PARTS)
def test_agrees_with_the_cpu(part):
    end = "\nprint(json.dumps([failures, [n for n in ltc.metrics.counter_names() if '::' in n]]))"
    environment = {"LTC_BACKEND": "opencl", "PYTHONPATH": str(PACKAGE.parent), "POCL_CACHE_DIR": cache()}
    failures, fallbacks = json.loads(output_of(PROGRAM + PARTS[part] + end, **environment))
    assert failures == []
    assert fallbacks == []


def cache():
    """Kernels that the driver has compiled once stay there."""
    folder = os.environ.get("POCL_CACHE_DIR", str(PACKAGE.parent.parent / "pocl_cache"))
    os.makedirs(folder, exist_ok=True)
    return folder
