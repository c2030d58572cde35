"""Plugins that do not do as plugin.h says, files that are no plugins, and bytes that are no text: what the user gets."""

import os

import pytest

from comparing import output_of
from test_fallback import PLUGINS


def plugin(name):
    """The path of a test plugin."""
    return PLUGINS[0].replace("libltc_test.so", f"libltc_{name}.so")


def error_of_use(**env):
    return output_of("""
    import torch, ltc
    try:
        (torch.ones(2, device="ltc") + 1).cpu()
    except RuntimeError as error:
        print(error)
    """, **env)


# ---- the numbers of the user's own thread


@pytest.mark.parametrize("name", ["test_fast_math", "test_changes_floats"])
def test_numbers_on_the_cpu_stay_as_they_are(name):
    assert output_of("""
    import math, torch, ltc
    small, third = torch.tensor(1e-38), torch.tensor(1.0)
    before = (small / 100).item(), (third / 3).item(), (-third / 3).item()
    assert before[0] > 0
    (torch.ones(3, device="ltc") + 1).cpu()
    assert ((small / 100).item(), (third / 3).item(), (-third / 3).item()) == before
    print("same")
    """, LTC_BACKEND=plugin(name)) == "same\n"


def test_a_programs_own_choice_about_small_numbers_stays():
    assert output_of("""
    import torch, ltc
    torch.set_flush_denormal(True)
    (torch.ones(3, device="ltc") + 1).cpu()
    print((torch.tensor(1e-38) / 100).item())
    """, LTC_BACKEND="torchscript") == "0.0\n"


# ---- devices


def test_more_devices_than_pytorch_can_number():
    error = error_of_use(LTC_BACKEND=plugin("test_too_many"))
    assert "[test_too_many]" in error and "4294967295 devices; PyTorch numbers at most 127" in error
    assert output_of("import torch, ltc; print(torch.ltc.device_count())", LTC_BACKEND=plugin("test_many")) == "100\n"


def test_a_device_without_dtypes():
    assert "[test_no_dtypes] device_open says that buffers may have no dtype" in error_of_use(LTC_BACKEND=plugin("test_no_dtypes"))


# ---- files


def test_a_pipe_is_no_backend(tmp_path):
    pipe = tmp_path / "libltc_pipe.so"
    os.mkfifo(pipe)
    for env in ({"LTC_BACKEND": str(pipe)}, {"LTC_BACKEND": "pipe", "LTC_PLUGIN_PATH": str(tmp_path)}):
        assert f"{pipe}: a pipe or a device, not a library" in error_of_use(**env)


# ---- bytes that are no UTF-8

BYTES = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize("variable", ["LTC_BACKEND", "LTC_PLUGIN_PATH", "LTC_TORCHSCRIPT_GEMM", "LTC_TORCHSCRIPT_KERNELS"])
def test_values_of_variables_are_shown(variable):
    """The error is the one of a value in plain letters, with U+FFFD for the byte."""
    env = {"LTC_BACKEND": "nonesuch" if variable == "LTC_PLUGIN_PATH" else "torchscript", "LTC_TORCHSCRIPT_KERNELS": "sync"}
    plain = error_of_use(**{**env, variable: "cafe"})
    assert "cafe" in plain
    assert error_of_use(**{**env, variable: BYTES}) == plain.replace("cafe", "caf\ufffd")


def test_names_and_messages_of_a_plugin_are_shown():
    assert output_of("""
    import torch, ltc
    print(torch.ltc.get_device_properties(0).name)
    try:
        (torch.ones(2, device="ltc") + 1).cpu()
    except RuntimeError as error:
        print(error)
    """, LTC_BACKEND=plugin("test_bad_bytes")) == "m\ufffdmoire\n<string>:5: aten::add.Tensor: ferm\ufffd le lundi [test_bad_bytes]\n"


# ---- indices out of range


@pytest.mark.parametrize("name", ["minimal", "minimal_async"])
def test_an_index_out_of_range_is_an_index_error(name):
    assert output_of("""
    import torch, ltc
    import torch.nn.functional as F
    def on(device):
        bad = torch.tensor([7], device=device)
        x = torch.ones(3, 2, device=device)
        return (lambda: x[bad], lambda: x.index_select(0, bad), lambda: F.embedding(bad, x), lambda: F.nll_loss(x[:1], bad),
                lambda: F.cross_entropy(x[:1], bad), lambda: x.index_put((bad,), x[:1]), lambda: x.take(bad))
    def caught(call):
        try:
            call().cpu()
        except Exception as error:
            return type(error).__name__
    assert [caught(call) for call in on("ltc")] == [caught(call) for call in on("cpu")] == 7 * ["IndexError"]
    print("the same")
    """, LTC_BACKEND=name) == "the same\n"
