"""The CUDA plugin where there is no GPU: what it says then, and that the kernels of models and operators compile for one."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

import ltc
from models import ROWS
from test_cli import command
from test_operator_sweep import SLICES, check_operators

PACKAGE = Path(ltc.__file__).parent
PLUGIN = PACKAGE / "plugins" / "libltc_cuda.so"
COMPILE_ONLY = PACKAGE.parents[1] / "tests" / "libltc_cuda_compile_only.so"  # gives zeros, so only its compiler is tested

pytestmark = pytest.mark.skipif(not PLUGIN.exists(), reason="built where there were no headers of CUDA")

MODELS = """
import sys, ltc
from checking import fallbacks, run_both_programs
from comparing import LTC
from models import ROWS

for row in ROWS[int(sys.argv[1])::2]:
    ltc.metrics.reset()
    run_both_programs(row, LTC, dropout=0.1)
    assert fallbacks() == {}, (row.name, fallbacks())
    assert ltc.metrics.counter_value("UncachedCompile") > 0, row.name
    print(row.name)
"""


def run(program, *args, **environment):
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", program, *args], env=os.environ | {"PYTHONPATH": path, **environment}, capture_output=True, text=True
    )


@pytest.mark.parametrize("half", [0, 1])
def test_kernels_of_all_models_compile(half):
    """Evaluation and a training step of each. A process compiles each text once, so a half shares much."""
    if not COMPILE_ONLY.exists():
        pytest.skip("no unit tests in this build")
    result = run(MODELS, str(half), LTC_BACKEND=str(COMPILE_ONLY), LTC_CACHE="0")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [row.name for row in ROWS[half::2]]


def test_kernels_keep_to_the_registers():
    """Optimised as for users. The whole table: bench/cuda_resources.py without arguments."""
    if not COMPILE_ONLY.exists():
        pytest.skip("no unit tests in this build")
    table = Path(__file__).parents[1] / "bench" / "cuda_resources.py"
    result = subprocess.run([sys.executable, table, "--models", "attention", "--capabilities", "90"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    kernels, median, most = map(int, result.stdout.splitlines()[3].split("|")[2:5])
    assert kernels >= 36 and 16 <= median <= most <= 255, result.stdout


@pytest.fixture
def emulated():
    """The environment in which the plugin's own binary runs the PTX of its kernels on the host (plugins/cuda/emulator)."""
    driver = PACKAGE.parents[1] / "plugins" / "cuda" / "emulator" / "driver"
    nvrtc = next(Path(sysconfig.get_path("purelib")).glob("nvidia/*/lib/libnvrtc.so.*"), None)
    if not driver.exists() or nvrtc is None:
        pytest.skip("no emulator in this build, or no NVRTC in its package")
    return {"LTC_BACKEND": "cuda", "LTC_CACHE": "0", "LTC_CUDA_WITHOUT": "cublas,cudnn", "LTC_CUDA_PATH": f"{driver}:{nvrtc.parent}"}


def test_an_archive_is_compiled_without_the_device(emulated, tmp_path):
    archive, nvrtc = tmp_path / "net.ltc", emulated["LTC_CUDA_PATH"].split(":")[1]
    with torch.no_grad():
        ltc.export(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("ltc"), (torch.ones(2, 4),)).save(archive)
    for target in "sm_99,without=cublas+cudnn+nccl", "sm_90":  # the emulated device, and one that NVRTC knows
        compiled = command("compile", archive, "--backend", f"cuda:target={target}", LTC_CUDA_PATH=nvrtc, LTC_CACHE="0")
        assert compiled.returncode == 0 and f"device {target.split(',')[0]}, NVRTC" in compiled.stdout, compiled.stderr
    checked = command("check", archive, "--executables", **emulated)
    assert checked.returncode == 0 and "1 of 1 functions are executables" in checked.stdout, checked.stdout + checked.stderr
    with zipfile.ZipFile(archive) as entries:
        codes = {b"\x7fELF" in entries.read(name) for name in entries.namelist() if name.startswith("executables/")}
    assert codes == {False, True}  # PTX, and machine code


@pytest.mark.parametrize("target, text", [("h100", "the option target is 'h100', and is to be like sm_90"), ("sm_90", "it compiles, and runs nothing")])
def test_a_device_that_is_not_here_runs_nothing(emulated, tmp_path, target, text):
    ltc.export(lambda x: x * 2, (torch.ones(2),), name="double").save(tmp_path / "double.ltc")
    checked = command("check", tmp_path / "double.ltc", "--backend", f"cuda:target={target}", LTC_CUDA_PATH=emulated["LTC_CUDA_PATH"].split(":")[1])
    assert checked.returncode == 1 and text in checked.stderr


def test_models_on_the_emulated_device(emulated):
    """Losses and gradients are the CPU's."""
    models = [Path(__file__).parent / "test_models.py", "-k", "as_on_cpu and (GPT or LSTM or BERT)"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *models]
    result = subprocess.run(command, env=os.environ | emulated, capture_output=True, text=True)
    assert result.returncode == 0 and re.search(r"^8 passed", result.stdout, re.MULTILINE), result.stdout + result.stderr


@pytest.mark.parametrize("part", range(SLICES))
def test_operators_on_the_emulated_device(part, emulated, monkeypatch):
    """One sample of each operator, compared with the CPU."""
    for name, value in emulated.items():
        monkeypatch.setenv(name, value)
    check_operators(part, monkeypatch, modes=["forward"], dtypes=["float32", "int64"], samples=1)


LOSSES = """
import ctypes, os, torch, ltc

driver = ctypes.CDLL(os.environ["LTC_CUDA_PATH"].partition(":")[0] + "/libcuda.so.1")

def lose(error, for_good):
    driver.ltc_emulator_lose_device(0, ctypes.c_uint64(0), error, for_good)

def doubled(x):
    try:
        print((x * 2).tolist())
    except RuntimeError as error:
        print(error)

def fresh():
    return torch.arange(3.0).to("ltc")

kept = fresh()
doubled(kept)
lose(999, False)
doubled(kept)
doubled(fresh())
doubled(kept)
lose(46, True)
doubled(fresh())
for _ in range(2):
    try:
        fresh().cpu()
    except RuntimeError as error:
        print(error)
"""


def test_a_lost_device_is_opened_again(emulated):
    """A value that lived there fails with the reason. Where the device does not come back each use says so, and the process ends as usual."""
    result = run(LOSSES, **emulated)
    assert result.returncode == 0, result.stderr
    first, lost, again, kept, gone, *closed = result.stdout.splitlines()
    unknown, unavailable = "CUDA_ERROR_UNKNOWN (unknown error)", "CUDA_ERROR_DEVICE_UNAVAILABLE"
    assert first == again == "[0.0, 2.0, 4.0]"
    assert "emulator 0 failed at or before run" in lost and unknown in lost
    assert "the value lived on a device that was lost" in kept and unknown in kept
    assert "emulator 0 failed at or before run" in gone and unavailable in gone
    assert len(closed) == 2 and all(f"cuDevicePrimaryCtxRetain answered {unavailable}" in message for message in closed)
    assert "the device was lost and is open again" in result.stderr


def test_without_a_device_it_says_why(tmp_path):
    """A folder with something that is no driver stands before the system's, so that this is so on any machine."""
    (tmp_path / "libcuda.so.1").symlink_to(PLUGIN)
    program = "import torch, ltc; print(torch.ones(2, device='ltc').sum().item())"
    result = run(program, LTC_BACKEND="cuda", LTC_CUDA_PATH=str(tmp_path))
    assert result.returncode != 0
    assert f"no CUDA device: {tmp_path}/libcuda.so.1 has no function cuInit: it is too old" in result.stderr
    assert "available backends:" in result.stderr
    result = run(program, LTC_BACKEND="torchscript", LTC_CUDA_PATH=str(tmp_path))
    assert result.stdout == "2.0\n", result.stderr


PRECISION = """
import torch, ltc

a, b = torch.randn(64, 64).to("ltc"), torch.randn(64, 64).to("ltc")
ltc.wait_device_ops()
matmul = ltc.jit(torch.mm)

def compiled(multiply=torch.mm):
    before = ltc.metrics.counter_value("UncachedCompile")
    multiply(a, b).cpu()
    return ltc.metrics.counter_value("UncachedCompile") - before

counts = [compiled(), compiled(), compiled(matmul)]
for precision in ("high", "highest", "high"):
    torch.set_float32_matmul_precision(precision)
    counts += [compiled(), compiled(), compiled(matmul)]
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
counts.append(compiled())
torch.set_float32_matmul_precision("highest")
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
torch.backends.cudnn.allow_tf32 = False
counts.append(compiled())
torch.backends.cuda.matmul.fp32_precision = "tf32"  # the newer flags
counts.append(compiled())
torch.backends.cudnn.conv.fp32_precision = "tf32"
counts.append(compiled())
print(*counts)
"""


def test_flags_of_precision_reach_the_plugin():
    """Each setting compiles once, and is found again; a function that was captured under another one is captured anew."""
    if not COMPILE_ONLY.exists():
        pytest.skip("no unit tests in this build")
    result = run(PRECISION, LTC_BACKEND=str(COMPILE_ONLY), LTC_CACHE="0", LTC_LOG="debug")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "1 0 0 1 0 0 0 0 0 0 0 0 1 1 1 0\n"
    assert result.stderr.count("// bmm: [1,64,64] by [1,64,64], by the library") == 2
    assert result.stderr.count("// bmm: [1,64,64] by [1,64,64], in TF32, by the library") == 3


SCALED_PRODUCTS = """
import torch, ltc

def product(scale_a, scale_b, out, bias=None, **how):
    a, b = torch.zeros(32, 48).to(torch.float8_e4m3fn), torch.zeros(32, 48).to(torch.float8_e5m2)
    rest = [None if x is None else x.to("ltc") for x in (scale_a, scale_b, bias)]
    torch._scaled_mm(a.to("ltc"), b.to("ltc").t(), *rest, out_dtype=out, **how).cpu()

one = torch.tensor(2.0)
product(one, one, torch.bfloat16)
product(one, one.reshape(1), torch.float16, torch.ones(32).half(), use_fast_accum=True)
product(one.reshape(1, 1), one, torch.float32)
print([row["op"] for row in ltc.metrics.fallbacks()])
"""


@pytest.mark.parametrize("capability, fallbacks", [("90", "[]"), ("80", "['aten::_scaled_mm']")])
def test_scaled_products_are_the_librarys_on_devices_that_have_them(capability, fallbacks):
    if not COMPILE_ONLY.exists():
        pytest.skip("no unit tests in this build")
    result = run(SCALED_PRODUCTS, LTC_BACKEND=f"{COMPILE_ONLY}:capability={capability}", LTC_CACHE="0", LTC_LOG="debug")
    assert result.returncode == 0, result.stderr
    assert result.stdout == fallbacks + "\n"
    for what in ("scaled_mm: [1,32,48] by [1,48,32], by", "scaled_mm+bias: [1,32,48] by [1,48,32], in fast sums, by"):
        assert (what in result.stderr) == (capability == "90"), result.stderr


def test_flags_of_precision_are_nothing_to_other_plugins():
    result = run(PRECISION, LTC_BACKEND="torchscript", LTC_CACHE="0")
    assert result.stdout == "1 " + "0 " * 14 + "0\n", result.stderr


@pytest.mark.parametrize("part", range(2))
def test_kernels_of_all_operators_compile(part, monkeypatch):
    """One sample of each operator and its gradient, for the older of the architectures: what it gives is zeros, so only a kernel that
    NVRTC refuses, or a worker that dies, is a failure."""
    if not COMPILE_ONLY.exists():
        pytest.skip("no unit tests in this build")
    from torch.testing._internal.common_methods_invocations import op_db

    conformance = str(Path(__file__).parents[1] / "conformance")
    monkeypatch.syspath_prepend(conformance)
    from sweep import pool

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([conformance, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("LTC_BACKEND", f"{COMPILE_ONLY}:capability=80")
    requests = [{"op": op.formatted_name, "modes": ["forward", "backward"], "dtypes": ["float32"], "samples": 1} for op in op_db[part::2]]
    counted, refused = 0, []
    for request, tallies, crash in pool.run_all(requests, shards=1, timeout_s=300):
        assert crash is None, (request["op"], crash)
        counted += sum(tally["counted"] for tally in tallies)
        refused += [failure for tally in tallies for failure in tally["failures"] if "does not compile" in failure["message"]]
    assert counted > 0.9 * len(requests)
    assert not refused
