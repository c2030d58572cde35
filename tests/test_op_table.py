"""The op table says of ops what PyTorch says of them."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ltc import _C

ROWS = _C.op_rows()


def test_ids_are_distinct_and_positive():
    ids = [row[0] for row in ROWS]
    assert len(set(ids)) == len(ids) > 100 and min(ids) > 0


def test_names_are_distinct():
    names = [row[1] for row in ROWS]
    assert len(set(names)) == len(names)


def test_minimal_opset_is_small():
    assert 0 < sum(tier == 0 for _, _, _, tier, _ in ROWS) <= 64


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_schema(row):
    _, name, schema, tier, _ = row
    assert schema.startswith(name + "(")
    assert tier in (0, 1, 2, 3)
    if name != "ltc::philox":  # known to plugins alone
        base, _, overload = name.partition(".")
        assert schema.replace('"', "'") == str(torch._C._get_schema(base, overload)).replace('"', "'")


def test_generated_files_are_up_to_date():
    """sdk/include/ltc/opset.h and docs/opset.md; core/ops/generate.py writes them."""
    script = Path(__file__).parents[1] / "core" / "ops" / "generate.py"
    run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
