"""Ops that the CPU runs instead of the plugin: at once, or as host steps of a program that a small plugin claims little of."""

import pathlib
import re

import pytest
import torch

import ltc
from comparing import LTC, output_of, run_program

# Claims add, mul, neg, relu and mm of float32 and int64, nothing else; its memory-only brother claims nothing.
TEST_PLUGINS = pathlib.Path(ltc.__file__).parents[2] / "tests" / "plugins"
PLUGINS = [str(TEST_PLUGINS / f"libltc_{name}.so") for name in ("test", "test_async", "test_memory")]


def program_file(tmp_path, text):
    """The source as a file, so that messages name its lines, and the program that runs it."""
    path = tmp_path / "train.py"
    path.write_text(text)
    return f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path({str(path)!r}, run_name='__main__')"


NONZERO = """import torch, ltc
x = torch.ones(3, device="ltc")
for _ in range(3):
    x.nonzero()
"""


# ---- ops that run at once


def test_account_of_an_op_that_runs_at_once(metrics):
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]], device=LTC)
    for _ in range(3):
        torch.nonzero(x)
    (entry,) = metrics.fallbacks()
    assert entry["op"] == "aten::nonzero"
    assert entry["count"] == metrics.counter_value("aten::nonzero") == 3
    assert entry["bytes"] == metrics.counter_value("FallbackBytes") == 3 * (4 * 4 + 2 * 2 * 8)
    assert re.fullmatch(r".*test_fallback\.py:\d+", entry["where"])
    assert entry["reason"]
    assert "Fallback: aten::nonzero\n  Count: 3\n" in metrics.report()
    metrics.reset()
    assert metrics.fallbacks() == []
    torch.nonzero(x)
    assert [entry["count"] for entry in metrics.fallbacks()] == [1]


def test_an_op_that_throws_is_no_fallback(metrics):
    with pytest.raises(RuntimeError):
        torch.mm(torch.ones(2, 3, device=LTC), torch.ones(2, 3, device=LTC))
    assert metrics.fallbacks() == []


def test_error_names_op_line_and_reason(tmp_path):
    program = """import torch, ltc
x = torch.ones(3, device="ltc")
assert (x + 1).tolist() == [2, 2, 2]
try:
    x.nonzero()
except RuntimeError as error:
    print(error)
assert (x + 1).tolist() == [2, 2, 2]
"""
    message = output_of(program_file(tmp_path, program), LTC_FALLBACK="error")
    assert "aten::nonzero at train.py:5" in message
    assert "LTC_FALLBACK=error" in message


def test_warn_says_it_once_with_the_line(tmp_path):
    run = run_program(program_file(tmp_path, NONZERO), LTC_FALLBACK="warn", LTC_LOG=None)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("aten::nonzero at train.py:4 runs on the CPU") == 1


# ---- the summary


def summary_of(program, **env):
    run = run_program(program, **{"LTC_LOG": None, "LTC_FALLBACK": None, **env})
    assert run.returncode == 0, run.stderr
    return [line for line in run.stderr.splitlines() if "instead of on the plugin" in line]


def test_one_summary_line(tmp_path):
    (line,) = summary_of(program_file(tmp_path, NONZERO + "ltc.metrics.reset()\n"))
    assert "1 op ran on the CPU" in line
    assert "aten::nonzero 3x (train.py:4)" in line
    assert "108 bytes moved" in line  # 12 there and 24 back, three times


def test_no_summary_without_a_fallback():
    assert summary_of("import torch, ltc\nprint(torch.ones(2, device='ltc').add(1).tolist())") == []


def test_no_summary_of_a_forked_child(tmp_path):
    child = NONZERO + "import os, sys\npid = os.fork()\nif pid == 0:\n    sys.exit(0)\nos.waitpid(pid, 0)\n"
    assert len(summary_of(program_file(tmp_path, child))) == 1


def test_summary_goes_with_the_log_level(tmp_path):
    assert summary_of(program_file(tmp_path, NONZERO), LTC_LOG="error") == []


def test_unknown_mode_is_refused(tmp_path):
    run = run_program(program_file(tmp_path, NONZERO), LTC_FALLBACK="ERROR", LTC_LOG=None)
    assert run.returncode != 0
    assert "LTC_FALLBACK is 'ERROR'; it may be allow, warn or error" in run.stderr


# ---- ops that the plugin does not claim

STEP = """import torch
def step(x, w, b):
    hidden = torch.relu(x @ w + b)          # claimed
    wave = torch.sin(hidden) * 2            # sin is not
    return wave + hidden, torch.exp(-wave)  # exp is not
torch.manual_seed(0)
inputs = torch.randn(4, 3), torch.randn(3, 5), torch.randn(5)
expected = step(*inputs)
import ltc
lazy = [t.to("ltc") for t in inputs]
for _ in range(3):
    results = step(*lazy)
    ltc.sync()
ltc.wait_device_ops()
count = ltc.metrics.counter_value
print(count("MarkStep"), count("ReadBarrier"), count("FallbackBarrier"), count("ProgramRuns"), count("UncachedCompile"))
print(count("HostStepOps"), count("aten::sin"), count("aten::exp"))
for one in ltc.metrics.fallbacks():
    print(one["op"], one["count"], one["bytes"], one["where"], one["reason"], sep="|")
for result, cpu in zip(results, expected):
    torch.testing.assert_close(result.cpu(), cpu)
"""


@pytest.mark.parametrize("plugin", PLUGINS[:2])
def test_host_steps_inside_a_program(tmp_path, plugin):
    barriers, host_ops, *account = output_of(program_file(tmp_path, STEP), LTC_BACKEND=plugin).splitlines()
    assert barriers == "3 0 0 3 1"  # nothing but the barriers that were asked for, one run each, one compile
    assert host_ops == "6 3 3"
    name = pathlib.Path(plugin).stem.removeprefix("libltc_")
    assert account == [
        # sin reads what the device made, exp is its own segment: 4 * 5 floats each way, three times
        f"aten::exp|3|480|train.py:5|plugin {name} does not claim it",
        f"aten::sin|3|480|train.py:4|plugin {name} does not claim it",
    ]


def test_a_plugin_that_computes_nothing(tmp_path):
    barriers, host_ops, *account = output_of(program_file(tmp_path, STEP), LTC_BACKEND=PLUGINS[2]).splitlines()
    assert barriers == "3 0 0 3 1"
    assert len(account) == 7
    assert all(line.endswith("plugin test_memory computes nothing") for line in account)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_training_step_on_a_small_plugin(tmp_path, plugin):
    """Forward, backward and optimizer give what the CPU gives, in one program per step."""
    program = """import torch
def train(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(4):
        optimizer.zero_grad(set_to_none=True)
        loss = model(torch.ones(3, 4).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if device == "ltc":
            ltc.mark_step()
    return losses
expected = train("cpu")
import ltc
losses = train("ltc")
count = ltc.metrics.counter_value
print(count("MarkStep"), count("ReadBarrier") + count("FallbackBarrier"))
torch.testing.assert_close([loss.cpu() for loss in losses], expected)
"""
    assert output_of(program_file(tmp_path, program), LTC_BACKEND=plugin) == "4 0\n"


def test_error_at_the_barrier_names_op_line_and_plugin(tmp_path):
    program = STEP.split("import ltc\n")[0] + """import ltc
lazy = [t.to("ltc") for t in inputs]
results = step(*lazy)
try:
    ltc.sync()
except RuntimeError as error:
    print(error)
"""
    message = output_of(program_file(tmp_path, program), LTC_BACKEND=PLUGINS[0], LTC_FALLBACK="error")
    assert "aten::sin at train.py:4" in message
    assert "plugin test does not claim it" in message


def test_an_error_of_a_host_op_names_op_and_line(tmp_path):
    program = """import torch, ltc
x = torch.ones(2, 3, device="ltc")
index = torch.tensor([7]).to("ltc")
y = torch.index_select(x, 0, index)
try:
    y.cpu()
except IndexError as error:
    print(error)
"""
    message = output_of(program_file(tmp_path, program), LTC_BACKEND=PLUGINS[0])
    assert message == "train.py:4: aten::index_select: index out of range in self [the CPU]\n"
