"""Compiled kernels of the torchscript plugin: the same bits as the interpreter's, when each is used, and what is said otherwise."""

from pathlib import Path

import pytest

import ltc
from comparing import output_of, run_program

HAS_COMPILER = (Path(ltc.__file__).parent / "libltc_host_compiler.so").exists()
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="built without LLVM")

# Random programs, and values at which functions have edges; prints a hash of all bits.
BITS = f"""
import hashlib, sys, torch, ltc
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_fusion import program
torch.set_num_threads(2)
torch.manual_seed(0)
digest = hashlib.sha256()
def take(*tensors):
    for tensor in tensors:
        digest.update(torch.nan_to_num(tensor.cpu().float(), nan=7.25).numpy().tobytes())
for seed in range(40):
    operands, run = program(seed)
    take(*run(*[x.to("ltc") for x in operands]))
edges = torch.tensor([0.0, -0.0, 1e-45, -1e-45, 1e-39, -1e-39, 87.0, 88.8, -87.5, -104.0, 3.4e38, float("inf"), -float("inf"), float("nan"), -1.0])
x = torch.cat([edges, torch.randn(3000) * 20, torch.randn(3000)])
y = x.flip(0)
F = torch.nn.functional
for f in [torch.exp, torch.expm1, torch.log, torch.log1p, torch.tanh, torch.erf, torch.sigmoid, F.silu, F.gelu, torch.rsqrt, torch.reciprocal,
          torch.round, lambda x: F.gelu(x, approximate="tanh"), torch.sin, lambda x: x**2, lambda x: F.dropout(x, 0.3)]:
    torch.manual_seed(1)
    a, b = x.to("ltc"), y.to("ltc").requires_grad_()
    value = f(a) * 0.5 + f(b) * torch.maximum(a, b)
    value.sum().backward()
    take(value.detach(), b.grad)
print(digest.hexdigest())
"""


@needs_compiler
@pytest.mark.parametrize("capability", [None, "avx2", "default"])
def test_the_same_bits_with_and_without(capability):
    """On machines without the instructions, too, as far as masking them shows it."""
    interpreted = output_of(BITS, LTC_TORCHSCRIPT_KERNELS="off", ATEN_CPU_CAPABILITY=capability)
    compiled = run_program(BITS, LTC_TORCHSCRIPT_KERNELS="sync", ATEN_CPU_CAPABILITY=capability, LTC_LOG="debug")
    assert compiled.returncode == 0, compiled.stderr
    assert compiled.stderr.count("host kernels, ") > 20
    assert compiled.stdout == interpreted


# Kernels compute vectors of 16, and tiles have 1024 elements: what is around whole ones.
LENGTHS = """
import torch, ltc
F = torch.nn.functional
torch.manual_seed(0)
def check(name, lazy, exact, length, **tolerance):
    torch.testing.assert_close(lazy.cpu(), exact.float(), msg=lambda text: f"{name} of {length}: {text}", **tolerance)
for length in (0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 65, 1023, 1024, 1025, 1039, 1041, 2047, 2049):
    a, b = torch.randn(length), torch.randn(length)
    x, y = a.to("ltc"), b.to("ltc")
    a, b = a.double(), b.double()
    check("chain", (x * y + 1).tanh() * x, (a * b + 1).tanh() * a, length, rtol=1e-6, atol=1e-6)
    check("whole, then a part", ((x + y) * x)[1:] * 2, ((a + b) * a)[1:] * 2, length, rtol=1e-6, atol=1e-6)
    check("where", torch.where(x < y, x.abs() * y, -x), torch.where(a < b, a.abs() * b, -a), length, rtol=1e-6, atol=0)
    for rows in (1, 3, 17):
        m, n = torch.randn(rows, length), torch.randn(length)
        u, v = m.to("ltc"), n.to("ltc")
        m, n = m.double(), n.double()
        check("rows", (u * v + v).exp(), (m * n + n).exp(), length, rtol=2e-6, atol=1e-6)
        check("sum", (u * 2).sum(1), (m * 2).sum(1), length, rtol=1e-5, atol=1e-5)
        check("sum of columns", (u * 2).sum(0), (m * 2).sum(0), length, rtol=1e-5, atol=1e-5)
        if length > 1:
            check("norm", F.layer_norm(u + v, (length,), v) * 2, F.layer_norm(m + n, (length,), n) * 2, length, rtol=1e-4, atol=1e-5)
"""


@needs_compiler
@pytest.mark.parametrize("capability", [None, "avx2"])
def test_lengths_around_whole_vectors(capability):
    run = run_program(LENGTHS, LTC_TORCHSCRIPT_KERNELS="sync", ATEN_CPU_CAPABILITY=capability, LTC_LOG="debug")
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("host kernels, ") >= 4


STEPS = """
import time, torch, ltc
x = torch.randn(1000)
y = x.to("ltc")
for _ in range(300):
    result = (y * 2 + 1).tanh()
    ltc.mark_step()
print(torch.equal(result.cpu(), (x * 2 + 1).tanh()) or (result.cpu() - (x * 2 + 1).tanh()).abs().max().item() < 1e-6)
time.sleep(2)
"""


@needs_compiler
def test_a_program_that_runs_often_gets_its_kernel():
    run = run_program(STEPS, LTC_LOG="debug")
    assert run.stdout == "True\n"
    assert run.stderr.count("host kernels, ") == 1


@needs_compiler
def test_a_program_that_ran_a_few_times_gets_none():
    run = run_program(STEPS.replace("300", "3"), LTC_LOG="debug")
    assert run.stdout == "True\n"
    assert run.stderr.count("host kernels, ") == 0


LAYERS = """
import torch, ltc
weight = torch.randn(64, 64).to("ltc")
x = torch.randn(64, 64).to("ltc")
for _ in range(3):
    x = (x * 2 + 1).tanh() @ weight
    x = x.sigmoid().exp() @ weight
print(x.cpu().isfinite().all().item())
"""


@needs_compiler
def test_the_kernels_of_a_program_are_compiled_together():
    """Those of equal layers are one."""
    run = run_program(LAYERS, LTC_TORCHSCRIPT_KERNELS="sync", LTC_LOG="debug")
    assert run.stdout == "True\n"
    assert run.stderr.count("host kernels, ") == run.stderr.count("host kernels, 2 of them, are ready") == 1


@needs_compiler
def test_another_process_finds_the_kernel(tmp_path):
    """Reading takes a millisecond, compiling ten."""
    about = "[torchscript] host kernels"
    for _ in range(2):
        run = run_program(STEPS, LTC_TORCHSCRIPT_KERNELS="sync", LTC_CACHE="1", LTC_CACHE_DIR=str(tmp_path))
        assert run.stdout == "True\n"
        assert sum(about.encode() in path.read_bytes() for path in tmp_path.glob("*.ltc")) == 1


def test_without_a_compiler_everything_is_interpreted(tmp_path):
    """A plugin that lies elsewhere does not find the library; it says so to those who ask."""
    plugin = Path(ltc.__file__).parent / "plugins" / "libltc_torchscript.so"
    alone = tmp_path / plugin.name
    alone.write_bytes(plugin.read_bytes())
    run = run_program(STEPS, LTC_BACKEND=str(alone), LTC_LOG="info")
    assert run.stdout == "True\n"
    assert "fused kernels are interpreted, not compiled: there is no libltc_host_compiler.so" in run.stderr


def test_an_unknown_setting_is_refused():
    run = run_program(STEPS, LTC_TORCHSCRIPT_KERNELS="sometimes")
    assert run.returncode != 0
    assert "kernels is 'sometimes'; it may be async, sync or off" in run.stderr
