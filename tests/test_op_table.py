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


# The table has the schemas of PyTorch 2.13. Later ones name these arguments, which count by position, otherwise, and lack that op.
RENAMED = {"aten::_cdist_backward": ("grad_output", "grad"), "aten::_pdist_backward": ("grad_output", "grad")}
DROPPED = {"aten::cholesky"}
IS_LATER = tuple(map(int, torch.__version__.split(".")[:2])) > (2, 13)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_schema(row):
    _, name, schema, tier, _ = row
    assert schema.startswith(name + "(")
    assert tier in (0, 1, 2, 3)
    if name != "ltc::philox" and not (IS_LATER and name in DROPPED):  # the former is known to plugins alone
        base, _, overload = name.partition(".")
        known = str(torch._C._get_schema(base, overload)).replace('"', "'")
        if IS_LATER and name in RENAMED:
            known = known.replace(*RENAMED[name])
        assert schema.replace('"', "'") == known


def test_generated_files_are_up_to_date():
    """sdk/include/ltc/opset.h and docs/opset.md; core/ops/generate.py writes them."""
    script = Path(__file__).parents[1] / "core" / "ops" / "generate.py"
    run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
