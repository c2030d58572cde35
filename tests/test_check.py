"""LTC_CHECK: wrong kernels are found, with their op and line; sound ones are not suspected."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SEEDS = """tanh/scale tanh/last tanh/nan tanh/zero exp/scale exp/last mul.Tensor/scale mul.Tensor/last add.Tensor/shift add.Tensor/last
    bmm/scale bmm/last bmm/zero sum.dim_IntList/scale sum.dim_IntList/last sqrt/scale sqrt/nan div.Tensor/last div.Tensor/scale
    where.self/shift where.self/last abs/last neg/last log/scale cos/last sin/scale erf/last cat/shift amax/scale permute/shift
    tanh/fused bmm/fused sum.dim_IntList/fused exp/fused""".split()


def wrong_plugin():
    import ltc

    plugin = Path(ltc.__file__).parents[2] / "tests" / "faults" / "libltc_fault_wrong_kernel.so"
    if not plugin.exists():
        pytest.skip(f"{plugin} was not built")
    return plugin


def run(*command, folder, timeout=300, **environment):
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, "LTC_CACHE": "0", "LTC_VERIFY": "0", **environment})  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The reports of LTC_CHECK, by seed, and the folder with its scripts."""
    folder = tmp_path_factory.mktemp("wrong")
    done = run(HERE / "wrong_kernels.py", json.dumps([f"aten::{seed}" for seed in SEEDS]), folder=folder, LTC_CHECK="1", LTC_BACKEND=str(wrong_plugin()))
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)["found"], folder


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_kernel_is_found(found, seed):
    reports, _ = found
    op, how = f"aten::{seed}".split("/")
    scripts = reports[f"aten::{seed}"]
    assert scripts, "nothing was reported"
    title = scripts[0].split('"""')[1]
    number = SEEDS.index(seed)
    assert re.search(rf"\] [\w:.]+ at seed{number}\.py:\d+", title), title
    assert f"= {op}(" in scripts[0] if how == "fused" else f"] {op} at " in title, title
    assert len(scripts[0].splitlines()) <= 50 or how == "fused"


def test_a_script_repeats_a_finding(found):
    _, folder = found
    script = next(path.name for path in folder.glob("ltc-check-*.py") if "] aten::tanh at" in path.read_text())
    wrong = run("-m", "ltc", "replay", script, folder=folder, LTC_BACKEND=str(wrong_plugin()), WRONG_KERNEL="aten::tanh/scale")
    assert "elements differ" in wrong.stdout, wrong.stderr
    sound = run(script, folder=folder, LTC_BACKEND="minimal")
    assert "as on the CPU" in sound.stdout, sound.stderr


SOUND = """
import json, torch, ltc, wrong_kernels
for number in range(40, 43):
    assert wrong_kernels.run("", number) == []
x = torch.randn(64, 300, device="ltc")
values = [x.sort()[0], x.cumsum(1), x.var(1), torch.fft.fft(x).abs(), x @ x.t(), x.half() * 3, x.bfloat16().softmax(1), x.round().int() // 3,
          torch.complex(x, x).exp(), x.double().erf(), torch.nn.functional.conv1d(x[:, None], torch.randn(4, 1, 5, device="ltc")),
          torch.full((3,), float("nan"), device="ltc") + 1, (x > 0) & (x < 1), x.argmax(1), torch.nn.functional.dropout(x)]
ltc.sync()
print(ltc.metrics.counter_value("WrongResults"))
"""


@pytest.mark.parametrize("plugin", ["torchscript", "minimal", "opencl"])
def test_sound_plugins_are_not_suspected(tmp_path, plugin):
    done = run("-c", SOUND, folder=tmp_path, LTC_CHECK="1", LTC_BACKEND=plugin, PYTHONPATH=f"{HERE}{os.pathsep}{os.environ['PYTHONPATH']}")
    if "no backend" in done.stderr or "no OpenCL device" in done.stderr:
        pytest.skip(f"{plugin} is not here")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0\n", done.stderr


NAN = """
import torch, ltc
x = torch.tensor([4.0, 1.0, -1.0], device="ltc")
y = (x * 2).sqrt()
z = (y + 1).sum() * 2
ltc.sync()
"""


def test_the_first_nan_is_named(tmp_path):
    (tmp_path / "script.py").write_text(NAN)
    done = run("script.py", folder=tmp_path, LTC_CHECK="nan")
    assert "aten::sqrt at script.py:4 makes the first NaN" in done.stderr
    assert done.stderr.count("makes the first NaN") == 1
    assert "has NaN" in run("ltc-check-1.py", folder=tmp_path).stdout


def test_a_folder_that_cannot_be_written_loses_the_script_only(tmp_path):
    (tmp_path / "script.py").write_text(NAN)
    for number in range(1, 1000):
        (tmp_path / f"ltc-check-{number}.py").touch()
    done = run("script.py", folder=tmp_path, LTC_CHECK="nan")
    assert done.returncode == 0 and "makes the first NaN" in done.stderr and "no script was written" in done.stderr
