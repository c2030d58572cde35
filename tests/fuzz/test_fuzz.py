"""A fixed small part of the fuzz; README.md says how to run more."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
COUNTS = {"networks": 80, "views": 300}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", COUNTS)
def test_random_programs(kind, dtype):
    command = [sys.executable, RUN, "--kind", kind, "--dtype", dtype, "--count", str(COUNTS[kind])]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
