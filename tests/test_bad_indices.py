"""An index out of range is an error, as on the CPU, on every plugin: it never reads or writes another element."""

import json
import math
from pathlib import Path

import pytest

from comparing import output_of

PROGRAM = (Path(__file__).parent / "bad_index_cases.py").read_text()
# Some of PyTorch's ops throw the one, some the other; in a decomposition it is another op that finds the bad index.
ERRORS = ("IndexError", "RuntimeError")
SETTINGS = {
    "torchscript": {"LTC_BACKEND": "torchscript"},
    "decomposed": {"LTC_BACKEND": "torchscript", "LTC_CLAIMS": "minimal"},
    "minimal": {"LTC_BACKEND": "minimal"},
    "opencl": {"LTC_BACKEND": "opencl"},
}
# PyTorch's kernel for the gradient of an embedding leaves out what names no row; its forward is the one that throws.
SILENT_GRADIENTS = {"torchscript": ("embedding-", "embedding_padding-")}
LEFT_OUT = [[0.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3]


def same(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return math.isclose(a, b, rel_tol=1e-5) or (math.isnan(a) and math.isnan(b))


def agrees(device, cpu):
    return device.get("error") in ERRORS if "error" in cpu else "value" in device and same(device["value"], cpu["value"])


def python_path():
    """The package that is tested, and the folder of comparing.py."""
    import ltc

    return f"{Path(ltc.__file__).parent.parent}:{Path(__file__).parent}"


@pytest.mark.parametrize("setting", SETTINGS)
def test_bad_indices(setting):
    cases = json.loads(output_of(PROGRAM, PYTHONPATH=python_path(), **SETTINGS[setting]))
    assert sum("error" in case["cpu"] for case in cases.values()) > 140
    assert {name: case for name, case in cases.items() if not agrees(case["device"], case["cpu"])} == {}
    wrong = {}
    for name, case in cases.items():
        if name.startswith(SILENT_GRADIENTS.get(setting, ())):
            if case["gradient"]["value"] != LEFT_OUT:
                wrong[name] = case
        elif "gradient" in case and not agrees(case["gradient"], case["cpu_gradient"]):
            wrong[name] = case
    assert wrong == {}


@pytest.mark.parametrize("setting", ["torchscript", "opencl"])
def test_type_of_the_error(setting):
    """The error names the user's line, and ops that throw IndexError on the CPU throw it here."""
    program = """
import torch, ltc
x = torch.ones(4, 3).to("ltc")
rows, columns = torch.tensor([1]).to("ltc"), torch.tensor([3]).to("ltc")
y = x[rows, columns] + 1
try:
    y.cpu()
except IndexError as error:
    print(error)
print((x + 1).sum().item())
"""
    output = output_of(program, PYTHONPATH=python_path(), **SETTINGS[setting])
    assert output.splitlines()[0].startswith("<string>:5: ")
    assert output.splitlines()[1] == "24.0"
