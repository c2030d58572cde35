"""Which library computes the torchscript plugin's products of matrices: LTC_TORCHSCRIPT_GEMM."""

from pathlib import Path

import pytest
import torch

from comparing import output_of, run_program

# libtorch's entry to oneDNN's products wants more of a processor, and the plugin trusts it in one version of PyTorch.
HAS_ONEDNN = (torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
              and torch.__version__.startswith(("2.13.", "2.14.")))

# Products of the CPU and of the device side by side; prints the largest difference, in units of what rounding a sum may make.
PRODUCTS = """
import torch, ltc
torch.set_num_threads({threads})
torch.manual_seed(0)
worst = 0.0
def compare(made, expected, inner):
    global worst
    off = (made.cpu() - expected).abs().max()
    assert off.isfinite()
    worst = max(worst, (off / (inner**0.5 * 2**-22)).item())
for rows, inner, columns in [(64, 2048, 128), (256, 256, 256), (1, 4096, 512), (130, 70, 1030), (300, 80, 1), (3, 5, 7),
                              (4, 1000, 130), (8, 33, 9), (7, 100, 40), (90, 6, 70), (2000, 64, 5), (11, 2, 500), (4, 9000, 20)]:
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            a = torch.randn(inner, rows).t() if transpose_a else torch.randn(rows, inner)
            b = torch.randn(columns, inner).t() if transpose_b else torch.randn(inner, columns)
            lazy_a, lazy_b = (x.t().contiguous().to("ltc").t() if transposed else x.to("ltc") for x, transposed in [(a, transpose_a), (b, transpose_b)])
            compare(lazy_a @ lazy_b, a @ b, inner)
            for bias in (torch.randn(columns), torch.randn(rows, 1), torch.randn(rows, columns), torch.randn(())):
                compare(torch.addmm(bias.to("ltc"), lazy_a, lazy_b), torch.addmm(bias, a, b), inner)
            compare(torch.addmm(bias.to("ltc"), lazy_a, lazy_b, beta=0.5, alpha=2), torch.addmm(bias, a, b, beta=0.5, alpha=2), inner)
x = torch.ones(128, 128)
x[0, 0] = float("nan")
made = (x.to("ltc") @ torch.ones(128, 128, device="ltc")).cpu()
assert made.isnan().sum() == 128 and made[1:].eq(128).all()
print("worst", worst)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("gemm", ["blas", "onednn", "autotune"])
def test_products_are_right(gemm, threads):
    lines = output_of(PRODUCTS.format(threads=threads), LTC_TORCHSCRIPT_GEMM=gemm, ONEDNN_VERBOSE="1").splitlines()
    by_onednn = any(line.startswith("onednn_verbose") and ",matmul," in line for line in lines)
    assert by_onednn == (gemm != "blas" and HAS_ONEDNN)  # to be timed, it has to compute some
    assert float(lines[-1].split()[1]) < 100


def test_deterministic_algorithms_leave_products_to_the_blas():
    program = """
import torch, ltc
torch.use_deterministic_algorithms(True)
(torch.ones(512, 512, device="ltc") @ torch.ones(512, 512, device="ltc")).cpu()
"""
    assert ",matmul," not in output_of(program, ONEDNN_VERBOSE="1", LTC_TORCHSCRIPT_GEMM="autotune")
    assert (",matmul," in output_of(program.replace("True", "False"), ONEDNN_VERBOSE="1", LTC_TORCHSCRIPT_GEMM="autotune")) == HAS_ONEDNN


def test_another_word_is_refused():
    result = run_program("import torch, ltc; torch.ones(1, device='ltc')", LTC_TORCHSCRIPT_GEMM="fast")
    assert result.returncode != 0
    assert "gemm is 'fast'; it may be auto, autotune, blas or onednn" in result.stderr


def test_amds_processors_use_onednn_without_timing():
    program = "import torch, ltc; (torch.ones({0}, {0}, device='ltc') @ torch.ones({0}, {0}, device='ltc')).cpu()"
    is_amd = "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
    made = output_of(program.format(512), ONEDNN_VERBOSE="1").count("primitive,exec,cpu,matmul,")
    assert (made > 0) == (is_amd and HAS_ONEDNN)
    assert ",matmul," not in output_of(program.format(64), ONEDNN_VERBOSE="1")
