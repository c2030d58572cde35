"""The digits sample as its user meets it: a process with flags, files and a last line."""

import gzip
import os
import re
import shutil
from pathlib import Path

import pytest
import torch

from comparing import run_program

SAMPLE = Path(__file__).parents[2] / "samples" / "digits"
DATA = SAMPLE / "data"
FEW, BATCH = 256, 16  # images and their batches where it does not matter how many there are
STEPS_PER_EPOCH = FEW // BATCH


def train(*flags, device="cpu"):
    arguments = [str(SAMPLE / "train.py"), "--device", device, "--quiet", *map(str, flags)]
    return run_program(f"""
        import runpy, sys
        sys.argv = {arguments!r}
        sys.path.insert(0, {str(SAMPLE)!r})
        runpy.run_path(sys.argv[0], run_name="__main__")
    """)


def trained(*flags, device="cpu"):
    """The lines that a successful run prints."""
    run = train(*flags, device=device)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def losses(tmp_path, *flags, device="cpu"):
    file = tmp_path / "losses"
    trained("--losses", file, *flags, device=device)
    return [float(line) for line in file.read_text().split()]


def line_about(word, lines):
    return next(line for line in lines if line.startswith(word))


def compiles(lines):
    return int(re.fullmatch(r"compiles (\d+), cache hits \d+", line_about("compiles", lines))[1])


@pytest.fixture
def data(tmp_path):
    """A private copy of the data, to spoil."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder, copy_function=shutil.copyfile)
    return folder


@pytest.fixture
def few(tmp_path):
    """Flags for training with the first images only, a quarter as many in a step."""
    folder = tmp_path / "few"
    folder.mkdir()
    for file in DATA.glob("digits-*"):
        content = file.read_bytes()
        header, size = (16, 64) if "images" in file.name else (8, 1)
        (folder / file.name).write_bytes(content[:4] + FEW.to_bytes(4, "big") + content[8 : header + FEW * size])
    return "--data", folder, "--batch-size", BATCH


def error_for(data):
    run = train("--data", data, "--steps", 1)
    assert run.returncode == 1
    assert run.stderr.startswith("error: ") and len(run.stderr.splitlines()) == 1, run.stderr
    return run.stderr


def test_missing_folder(tmp_path):
    assert f"{tmp_path / 'none'}: no such folder" in error_for(tmp_path / "none")


def test_folder_without_data(tmp_path):
    assert "no train file *-images-idx3-ubyte" in error_for(tmp_path)


def test_truncated_file(data):
    file = data / "digits-train-images-idx3-ubyte"
    os.truncate(file, 1000)
    assert f"{file}: its header promises 91984 bytes (1437 x 8 x 8), it has 1000" in error_for(data)


def test_truncated_header(data):
    os.truncate(data / "digits-train-labels-idx1-ubyte", 5)
    assert "truncated, 5 bytes cannot hold a header of 8" in error_for(data)


def test_wrong_magic(data):
    shutil.copyfile(data / "digits-test-labels-idx1-ubyte", data / "digits-test-images-idx3-ubyte")
    assert "its magic number is 2049, expected 2051" in error_for(data)


def test_counts_that_differ(data):
    shutil.copyfile(data / "digits-test-labels-idx1-ubyte", data / "digits-train-labels-idx1-ubyte")
    message = error_for(data)
    assert "holds 1437 images" in message and "360 labels" in message


def test_compressed_file_cut_short(data):
    file = data / "digits-test-images-idx3-ubyte"
    whole = gzip.compress(file.read_bytes())
    file.unlink()
    (data / "digits-test-images-idx3-ubyte.gz").write_bytes(whole[:-100])
    assert "digits-test-images-idx3-ubyte.gz: " in error_for(data)


def test_mnist_names_and_compression(data):
    for file in list(data.glob("digits-*")):
        name = file.name.removeprefix("digits-").replace("test-", "t10k-")
        (data / f"{name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert trained("--data", data, "--steps", 1)[-1] == trained("--steps", 1)[-1]


def test_last_line():
    assert re.fullmatch(r"test accuracy \d+\.\d %", trained("--steps", 2)[-1])


def test_one_loss_per_step(tmp_path):
    assert len(losses(tmp_path, "--steps", 3)) == 3


def test_resume_without_checkpoint(tmp_path):
    run = train("--resume", "--checkpoint", tmp_path / "none.pt")
    assert run.returncode == 1 and "none.pt: no such checkpoint" in run.stderr


@pytest.mark.parametrize("device", ["cpu", "ltc"])
def test_resumed_training_continues_exactly(tmp_path, few, device):
    last = STEPS_PER_EPOCH + 5
    checkpoint = tmp_path / "state.pt"
    uninterrupted = losses(tmp_path, *few, "--steps", last, device=device)
    first = losses(tmp_path, *few, "--epochs", 1, "--checkpoint", checkpoint, device=device)
    rest = losses(tmp_path, *few, "--steps", last, "--checkpoint", checkpoint, "--resume", device=device)
    assert len(first) == STEPS_PER_EPOCH
    assert first + rest == uninterrupted
    assert list(tmp_path.glob("*.partial")) == []


def test_ltc_repeats_itself(tmp_path, few):
    """Dropout included: the same seed gives the same numbers, whichever way the device is spelled."""
    assert losses(tmp_path, *few, "--steps", 10, device="ltc") == losses(tmp_path, *few, "--steps", 10, device="lazy")


def test_first_losses_agree_with_cpu(tmp_path):
    flags = ("--no-dropout", "--steps", 5)
    assert losses(tmp_path, *flags, device="ltc") == pytest.approx(losses(tmp_path, *flags), rel=5e-4)


def test_training_agrees_with_cpu(tmp_path, few):
    """In double precision: in single precision not even the CPU agrees with itself for 50 steps, with other threads or without AVX-512."""
    found = {}
    for device in ("cpu", "ltc"):
        file = tmp_path / f"{device}.pt"
        found[device] = losses(tmp_path, *few, "--no-dropout", "--double", "--epochs", 2, "--checkpoint", file, device=device)
        found[device, "weights"] = torch.load(file, map_location="cpu")["model"]
    assert found["ltc"] == pytest.approx(found["cpu"], rel=1e-7)
    torch.testing.assert_close(found["ltc", "weights"], found["cpu", "weights"], rtol=1e-6, atol=1e-9)


def test_ltc_learns_in_a_steady_state():
    """Longer training compiles nothing more, and every op runs in the plugin."""
    short, long = trained("--epochs", 1, device="ltc"), trained(device="ltc")
    assert compiles(short) == compiles(long)
    assert line_about("fallbacks", long) == "fallbacks none"
    assert float(long[-1].split()[2]) >= 92
