"""The digits sample in C++: the program that the build left beside the package under test."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "samples" / "digits" / "data"


@pytest.fixture(scope="module")
def program():
    build = Path(importlib.util.find_spec("ltc").origin).parents[2]
    return build / "samples" / "digits"


def run(program, *flags):
    return subprocess.run([program, *map(str, flags)], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("device", ["cpu", "ltc"])
def test_trains(program, device):
    result = run(program, "--device", device, "--data", DATA, "--epochs", 1)
    assert result.returncode == 0, result.stderr
    last = re.fullmatch(r"test accuracy (\d+\.\d) %", result.stdout.splitlines()[-1])
    assert last and float(last[1]) > 50


def test_has_no_python_in_it(program):
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libtorch_cpu" in libraries and "python" not in re.sub(r" => \S+", "", libraries)


def test_missing_folder(program, tmp_path):
    result = run(program, "--device", "cpu", "--data", tmp_path / "none")
    assert result.returncode == 1
    assert result.stderr == f"error: {tmp_path / 'none'}: no such folder\n"


def test_wrong_magic(program, tmp_path):
    for file in DATA.glob("digits-*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "digits-train-images-idx3-ubyte").write_bytes((DATA / "digits-train-labels-idx1-ubyte").read_bytes())
    result = run(program, "--device", "cpu", "--data", tmp_path)
    assert result.returncode == 1
    assert "digits-train-images-idx3-ubyte: its magic number is 2049, expected 2051" in result.stderr


def test_unknown_flag(program):
    result = run(program, "--colour", "red")
    assert result.returncode == 2 and "not understood: --colour red" in result.stderr
