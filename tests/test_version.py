"""The package says which PyTorch it was built with, and refuses another."""

import importlib.metadata
import subprocess
import sys

import torch

import ltc


def minor(version):
    return ".".join(str(version).split(".")[:2])


def test_the_version_names_pytorch():
    assert ltc.__version__.endswith(f"+torch{minor(torch.__version__)}")
    assert ltc.__version__.startswith(importlib.metadata.version("ltc").split("+")[0])


def test_another_pytorch_is_refused():
    run = subprocess.run([sys.executable, "-c", "import torch; torch.__version__ = '2.99.1'; import ltc"], capture_output=True, text=True)
    assert run.returncode == 1
    assert f"ImportError: ltc {ltc.__version__} was built with PyTorch {minor(torch.__version__)}" in run.stderr
    assert "does not run with PyTorch 2.99.1" in run.stderr
