"""Archives that earlier versions wrote (tests/archives): they stay readable, and give the results that are in them."""

from pathlib import Path

import pytest

from comparing import output_of
from test_cli import command

ARCHIVES = sorted((Path(__file__).parent / "archives").glob("*.ltc"))


def test_there_is_one_of_each_format():
    assert {path.name for path in ARCHIVES} >= {"format_1.ltc", "format_1_sizes.ltc"}


@pytest.mark.parametrize("backend", ["minimal", "torchscript", "opencl"])
@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
def test_samples_of_old_archives(path, backend):
    checked = command("check", path, "--backend", backend)
    assert checked.returncode == 0, checked.stderr
    lines = checked.stdout.splitlines()[1:]
    assert {line.split(":")[0] for line in lines} == {"train", "predict"} and all(line.endswith(("the same bits", "near enough")) for line in lines), lines


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
def test_training_goes_on_from_old_archives(path):
    losses = output_of(
        f"""
import sys; sys.modules["torch"] = None
import numpy as np, ltc_runtime
session = ltc_runtime.load({str(path)!r}, backend="minimal").session()
x, labels = np.eye(5, 4, dtype=np.float32), np.arange(5) % 3
losses = [float(session.run("train", x, labels)) for _ in range(1500)]
print(sum(losses[:20]), sum(losses[-20:]))
"""
    ).split()
    first, last = map(float, losses)
    assert last < first / 1.5, losses
