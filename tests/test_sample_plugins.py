"""The plugins in samples/: a process each, compared with the CPU, and who computed it."""

import json
from pathlib import Path

import pytest

from comparing import output_of, run_program

PROGRAM = (Path(__file__).parent / "sample_program.py").read_text()
PLUGINS = ("null", "minimal", "minimal_async", "twenty_ops")


def run_on(plugin):
    return json.loads(output_of(PROGRAM, LTC_BACKEND=plugin, PYTHONPATH=python_path()))


def python_path():
    """The package that is tested, and the folder of comparing.py."""
    import ltc

    return f"{Path(ltc.__file__).parent.parent}:{Path(__file__).parent}"


@pytest.fixture(scope="module")
def runs():
    return {plugin: run_on(plugin) for plugin in PLUGINS}


# The READMEs promise these lengths: of the null plugin, and of the minimal plugin's slots of the ABI.
@pytest.mark.parametrize("file, most", [("null_plugin/null_plugin.c", 120), ("minimal_plugin/plugin.c", 400)])
def test_samples_stay_short(file, most):
    lines = (Path(__file__).parents[1] / "samples" / file).read_text().count("\n")
    assert lines <= most


def test_twenty_ops_stay_short():
    """All files, and the ops that the name promises."""
    files = {path.name: path.read_text() for path in (Path(__file__).parents[1] / "samples" / "twenty_ops").iterdir()}
    assert sum(text.count("\n") for text in files.values()) <= 400
    assert files["compiler.h"].count('{"aten::') == 20


@pytest.mark.parametrize("claims", ["minimal", "random:1", "random:2", "random:3"])
def test_whatever_is_claimed(claims):
    """Ops that a plugin does not claim are decomposed; the program compares itself with the CPU."""
    counters = json.loads(output_of(PROGRAM, LTC_BACKEND="torchscript", LTC_CLAIMS=claims, PYTHONPATH=python_path()))["counters"]
    assert {name: count for name, count in counters.items() if name == "HostStepOps" or "::" in name} == {}


@pytest.mark.parametrize("plugin", ["minimal", "minimal_async"])
def test_minimal_computes_everything(runs, plugin):
    counters = runs[plugin]["counters"]
    assert counters["ProgramRuns"] > 10
    assert {name: count for name, count in counters.items() if name == "HostStepOps" or "::" in name} == {}


def test_null_computes_nothing(runs):
    """Every op that was recorded ran on the host; passes add or remove a few."""
    counters = runs["null"]["counters"]
    assert counters["HostStepOps"] == sum(count for name, count in counters.items() if "::" in name) > 250
    assert counters["aten::convolution"] > 0 and counters["ltc::philox"] > 0


def test_twenty_ops_computes_a_part(runs):
    counters = runs["twenty_ops"]["counters"]
    assert counters["ProgramRuns"] > 10 and counters["HostStepOps"] > 10
    assert counters["HostStepOps"] < runs["null"]["counters"]["HostStepOps"]


def test_random_numbers_are_the_same(runs):
    assert len({str(run["randoms"]) for run in runs.values()}) == 1


OUT_OF_RANGE = """
import torch, ltc
x = torch.arange(3.0).to("ltc")
y = x.gather(0, torch.tensor([0, 7]).to("ltc"))
try:
    y.cpu()
except (IndexError, RuntimeError) as error:  # the latter of a step that is repeated op by op
    print(error)
print((x + 1).cpu().tolist())
"""


@pytest.mark.parametrize("plugin", ["minimal", "minimal_async"])
def test_failing_run(plugin):
    """A run that fails says why where its result is read, and the device goes on."""
    run = run_program(OUT_OF_RANGE, LTC_BACKEND=plugin, PYTHONPATH=python_path())
    assert run.returncode == 0, run.stderr
    assert f"<string>:4: aten::gather: index 7 is out of bounds for dimension 0 with size 3 [{plugin}]\n" in run.stdout
    assert run.stdout.endswith("[1.0, 2.0, 3.0]\n")
