"""Types that a device keeps in narrower ones: LTC_USE_BF16, and double on a device without it. Tensors report what they are."""

import json
import pathlib

import pytest

import ltc
from comparing import output_of, run_program

PLUGINS = pathlib.Path(ltc.__file__).parents[2] / "tests/plugins"
NO_DOUBLE = PLUGINS / "libltc_test_no_double.so"  # computes add, mul, neg, relu and mm in float, keeps all dtypes but double

needs_test_plugins = pytest.mark.skipif(not NO_DOUBLE.exists(), reason=f"{NO_DOUBLE} is not built")

BEGIN = """
import torch, torch.nn.functional as F, ltc
torch.manual_seed(0)
def bf16(x): return x.bfloat16().to(x.dtype)
def same(lazy, cpu, **tolerance):
    assert lazy.device.type == "ltc" and lazy.dtype == cpu.dtype, (lazy.dtype, cpu.dtype)
    torch.testing.assert_close(lazy.cpu(), cpu, **tolerance)
EXACT = {"rtol": 0, "atol": 0}
x, y = torch.randn(32, 32), torch.randn(32, 32)
"""


IN_BF16 = {
    "float_and_double_are_computed_as_bf16": """
for dtype in (torch.float32, torch.float64):
    a, b = x.to(dtype), y.to(dtype)
    u, v = a.to("ltc"), b.to("ltc")
    same(u, bf16(a), **EXACT)
    same(u @ v, (a.bfloat16() @ b.bfloat16()).to(dtype), **EXACT)
    same(u * 3 + v, (a.bfloat16() * 3 + b.bfloat16()).to(dtype), **EXACT)
    same(u.to(torch.float16), a.bfloat16().half(), **EXACT)
    same(u.sum(dtype=torch.float64), a.bfloat16().sum().double(), **EXACT)
    same(u > v, bf16(a) > bf16(b), **EXACT)
assert ltc.metrics.counter_value("HostStepOps") == 0
""",
    "half_the_bytes_travel": """
lazy = x.to("ltc")
lazy.cpu()
assert ltc.metrics.counter_value("BytesToDevice") == ltc.metrics.counter_value("BytesFromDevice") == 2 * x.numel()
""",
    "what_comes_from_elsewhere_becomes_bf16": """
n = torch.arange(1, 9)
same(n.to("ltc") / 3, bf16(n / 3), **EXACT)
same(n.to("ltc").sqrt(), bf16(n.sqrt()), **EXACT)
same(torch.arange(0, 1, 0.1, device="ltc"), bf16(torch.arange(0, 1, 0.1)), **EXACT)
same(torch.full((3,), 0.1, device="ltc", dtype=torch.float64), bf16(torch.full((3,), 0.1, dtype=torch.float64)), **EXACT)
same(torch.where(n.to("ltc") > 3, 0.1, 2.0), bf16(torch.where(n > 3, 0.1, 2.0)), **EXACT)
same(x.half().to("ltc").float(), bf16(x.half().float()), **EXACT)
same(F.softmax(x.half().to("ltc"), 1, dtype=torch.float32), bf16(F.softmax(x.half(), 1, dtype=torch.float32)), rtol=1e-2, atol=1e-3)
""",
    "what_cannot_be_bf16_is_right_all_the_same": """
lazy = x.to("ltc")
same(lazy.view(torch.int32), bf16(x).view(torch.int32), **EXACT)
same(torch.view_as_complex(lazy.view(32, 16, 2)), torch.view_as_complex(bf16(x).view(32, 16, 2)), **EXACT)
same(torch.fft.rfft(lazy), torch.fft.rfft(bf16(x)))
same(lazy + y.half().to("ltc"), bf16(bf16(x) + y.half()), **EXACT)
same(torch.linalg.inv(lazy), bf16(torch.linalg.inv(bf16(x))), rtol=2e-2, atol=1e-2)
""",
    "random_numbers_in_bf16": """
for dtype in (torch.float32, torch.float64):
    u = torch.rand(100_000, device="ltc", dtype=dtype)
    assert u.dtype == dtype and torch.equal(u.cpu(), bf16(u.cpu())) and abs(u.cpu().mean() - 0.5) < 0.01
    assert abs(torch.randn(100_000, device="ltc", dtype=dtype).cpu().std() - 1) < 0.02
kept = (F.dropout(torch.ones(100_000, device="ltc"), 0.25) != 0).sum().item()
assert abs(kept - 75_000) < 1000
""",
    "attention_in_bf16": """
q, k, v = (torch.randn(1, 2, 8, 16) for _ in range(3))
def attend(device):
    leaves = [t.to(device, copy=True).requires_grad_() for t in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, is_causal=True)
    out.square().sum().backward()
    return [out.detach(), *(leaf.grad for leaf in leaves)]
for lazy, cpu in zip(attend("ltc"), attend("cpu")):
    same(lazy, cpu, rtol=0.1, atol=0.05)
assert ltc.metrics.counter_value("HostStepOps") == 0
""",
    "training_in_bf16": """
def train(device):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(),
                                 torch.nn.Linear(144, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    images, target = torch.randn(8, 1, 8, 8).to(device), torch.arange(8).remainder(3).to(device)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = F.cross_entropy(module(images), target)
        loss.backward()
        optimizer.step()
        ltc.mark_step()
        losses.append(loss.detach())
        assert loss.dtype == module[0].weight.grad.dtype == torch.float32
    return torch.stack(losses).cpu()
lazy, cpu = train("ltc"), train("cpu")
assert lazy[-1] < 0.3 * lazy[0], lazy
torch.testing.assert_close(lazy[:4], cpu[:4], rtol=0.1, atol=0.05)
assert ltc.metrics.counter_value("HostStepOps") == 0
""",
}


@pytest.fixture(scope="module")
def outcomes():
    """The output of each program under LTC_USE_BF16=1; all in one process."""
    runner = f"""
import json, traceback
said = {{}}
for name, program in {IN_BF16!r}.items():
    ltc.sync()
    ltc.metrics.reset()
    try:
        exec(program, dict(globals()))
        said[name] = ""
    except Exception:
        said[name] = traceback.format_exc()
print(json.dumps(said))
"""
    return json.loads(output_of(BEGIN + runner, LTC_USE_BF16="1"))


@pytest.mark.parametrize("name", IN_BF16)
def test_in_bf16(name, outcomes):
    assert outcomes[name] == ""


def without_double(program):
    return run_program(BEGIN + program, LTC_BACKEND=str(NO_DOUBLE))


def test_other_values_of_the_variable():
    assert output_of("import torch, ltc; print(torch.tensor([0.1], device='ltc').cpu().item() == torch.tensor(0.1).item())",
                     LTC_USE_BF16="0") == "True\n"
    wrong = run_program("import torch, ltc; torch.ones(1, device='ltc').cpu()", LTC_USE_BF16="yes")
    assert wrong.returncode != 0 and "LTC_USE_BF16 is 'yes'; it may be 0 or 1" in wrong.stderr


@needs_test_plugins
def test_a_device_without_bf16_says_so():
    run = run_program("import torch, ltc; torch.ones(1, device='ltc').cpu()", LTC_BACKEND=str(PLUGINS / "libltc_test.so"),
                      LTC_USE_BF16="1")
    assert run.returncode != 0 and "LTC_USE_BF16=1 needs a device with bf16; 'host memory' has none" in run.stderr


@needs_test_plugins
def test_a_device_without_double_computes_in_single():
    run = without_double("""
a, b = x.double(), y.double()
u, v = a.to("ltc"), b.to("ltc")
same(u, a.float().double(), **EXACT)
same(u * v + u, (x * y + x).double(), rtol=1e-6, atol=1e-6)
assert ltc.metrics.counter_value("HostStepOps") == 0  # the plugin claims them, as float
same(u.exp(), x.double().exp(), rtol=1e-6, atol=1e-6)  # the host does in double what the plugin does not claim
same(u.view(torch.int64), x.double().view(torch.int64), **EXACT)
same(torch.view_as_complex(u.view(32, 16, 2)), torch.view_as_complex(x.double().view(32, 16, 2)), **EXACT)
assert torch.rand(5, device="ltc", dtype=torch.float64).dtype == torch.float64
assert u.sum().item() == u.cpu().sum().float().item()
""")
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("double precision is computed as single") == 1


@needs_test_plugins
def test_a_program_without_double_is_not_warned():
    run = without_double("assert torch.equal((x.to('ltc') * 2.5).cpu(), x * 2.5)")
    assert run.returncode == 0 and run.stderr == ""
