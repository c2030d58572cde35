"""Models train on the minimal plugin, which has nothing but the minimal opset, as on the CPU; the host computes nothing of them.

A few by default, all with --every-model.
"""

import json
from pathlib import Path

import pytest

from comparing import output_of
from models import ROWS
from test_sample_plugins import python_path

PROGRAM = Path(__file__).parent / "minimal_models.py"
FEW = ("LSTM", "GRU, bidirectional", "LSTM and GRU cells", "Transformer encoder", "attention, causal", "BERT", "GPT-2", "diffusion UNet")


@pytest.fixture(scope="module")
def trained(request):
    names = [] if request.config.getoption("--every-model") else FEW
    program = f"import sys; sys.argv = {[str(PROGRAM), *names]!r}\n{PROGRAM.read_text()}"
    return json.loads(output_of(program, LTC_BACKEND="minimal", PYTHONPATH=python_path()).splitlines()[-1])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_trains_as_on_cpu(row, trained):
    if row.name not in trained:
        pytest.skip("with --every-model")
    found = trained[row.name]
    assert found["fallbacks"] == {}
    ours, expected = found["losses"]
    assert ours == pytest.approx(expected, rel=1e-3)
