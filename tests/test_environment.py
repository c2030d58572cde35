"""Variables of the environment: a wrong value is an error, and a name that nobody reads is told."""

import pytest

from comparing import output_of, run_program

USE = "import torch, ltc; print((torch.ones(2, device='ltc') + 1).tolist())"
FLAGS = ["LTC_EAGER", "LTC_CACHE", "LTC_STACKS", "LTC_USE_BF16"]


@pytest.mark.parametrize("variable, value, legal", [
    *((flag, "false", "0 or 1") for flag in FLAGS),
    ("LTC_FALLBACK", "ERROR", "allow, warn or error"),
    ("LTC_CLAIMS", "random:JUNK", "all, minimal or random:SEED"),
    ("LTC_LOG", "loud", "trace, debug, info, warn, error or off"),
])
def test_import_refuses_a_wrong_value(variable, value, legal):
    program = run_program("import torch, ltc", **{variable: value})
    assert program.returncode != 0
    assert f"{variable} is '{value}'; it may be {legal}" in program.stderr


def test_the_second_attempt_to_import_succeeds():
    assert output_of("""
        import os
        os.environ["LTC_EAGER"] = "on"
        try:
            import ltc
        except RuntimeError as error:
            print(error)
        del os.environ["LTC_EAGER"]
        import torch, ltc
        print((torch.ones(2, device="ltc") + 1).tolist())
    """) == "LTC_EAGER is 'on'; it may be 0 or 1\n[2.0, 2.0]\n"


@pytest.mark.parametrize("variable, value", [("LTC_TORCHSCRIPT_CUDA", "yes"), ("LTC_TORCHSCRIPT_GEMM", "mkl"), ("LTC_TORCHSCRIPT_KERNELS", "on")])
def test_the_plugin_refuses_a_wrong_value(variable, value):
    program = run_program(USE, LTC_BACKEND="torchscript", **{variable: value})
    assert program.returncode != 0
    option = variable.removeprefix("LTC_TORCHSCRIPT_").lower()
    assert f"{option} is '{value}'; it may be " in program.stderr


def test_options_are_given_with_the_backend():
    assert "right" in run_program(USE + "\nprint('right')", LTC_BACKEND="torchscript:kernels=off,device=0").stdout
    refused = run_program(USE, LTC_BACKEND="torchscript:kernel=off")
    assert "there is no option 'kernel'; there are: kernels, gemm, weights, cuda, layouts" in refused.stderr
    refused = run_program(USE, LTC_BACKEND="torchscript:device=7")
    assert "[torchscript] no device 7 (LTC_BACKEND): the plugin has 1, counted from 0" in refused.stderr
    first = run_program(USE, LTC_BACKEND="torchscript:kernels=on", LTC_TORCHSCRIPT_KERNELS="off")
    assert "kernels is 'on'; it may be" in first.stderr, "what LTC_BACKEND says comes before the environment"


def test_a_name_that_nobody_reads_is_told_once():
    program = run_program(USE + "\n" + USE, LTC_BACKEND="torchscript", LTC_FALBACK="error", LTC_LOG=None)
    assert program.returncode == 0, program.stderr
    told = [line for line in program.stderr.splitlines() if "nothing reads" in line]
    assert len(told) == 1
    assert told[0].endswith("nothing reads the environment variable LTC_FALBACK; the nearest that is read is LTC_FALLBACK")


def test_nothing_is_told_of_names_that_are_read():
    assert "nothing reads" not in run_program(USE, LTC_BACKEND="torchscript", LTC_LOG=None, LTC_TORCHSCRIPT_KERNELS="off").stderr
