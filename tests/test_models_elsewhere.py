"""Models train as on the CPU on the plugins that have the minimal opset and nothing else; the host computes nothing of them.

A few by default, all with --every-model.
"""

import json
from pathlib import Path

import pytest

import ltc
from comparing import output_of
from models import ROWS
from test_opencl import cache
from test_sample_plugins import python_path

PROGRAM = Path(__file__).parent / "train_models.py"
FEW = {
    "minimal": ("LSTM", "GRU, bidirectional", "LSTM with projections", "LSTM, packed, bidirectional", "RNN, relu, packed", "LSTM and GRU cells",
                "Transformer encoder", "attention, causal", "BERT", "GPT-2", "diffusion UNet"),
    "opencl": ("torchvision ResNet-18", "BERT", "GPT-2"),
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("plugin", FEW)
def test_trains_as_on_cpu(plugin, row, request):
    if row.name not in FEW[plugin] and not request.config.getoption("--every-model"):
        pytest.skip("with --every-model")
    if not (Path(ltc.__file__).parent / "plugins" / f"libltc_{plugin}.so").exists():
        pytest.skip(f"the plugin {plugin} was not built")
    program = f"import sys; sys.argv = {[str(PROGRAM), row.name]!r}\n{PROGRAM.read_text()}"
    environment = {"LTC_BACKEND": plugin, "PYTHONPATH": python_path(), "POCL_CACHE_DIR": cache()}
    found = json.loads(output_of(program, **environment).splitlines()[-1])[row.name]
    assert found.get("error") is None
    assert found["fallbacks"] == {}
    ours, expected = found["losses"]
    assert ours == pytest.approx(expected, rel=1e-3)
