"""torch.profiler shows what the device does."""

import json
import subprocess
import sys

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import ltc

STEPS = 3


def steps(x):
    for _ in range(STEPS):
        y = (x @ x).relu()
        ltc.mark_step()
        value = y.sum().item()
    return value


@pytest.fixture(scope="module")
def profiled():
    x = torch.ones(64, 64, device="ltc")
    steps(x)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
        steps(x)
    return profiler


def test_programs_have_device_time(profiled):
    rows = {row.key: row for row in profiled.key_averages() if row.key.startswith("ltc program")}
    assert sum(row.count for row in rows.values()) == 2 * STEPS
    assert all(row.device_time_total > 0 for row in rows.values())
    assert "ltc program" in profiled.key_averages().table()


def test_kernels_have_device_time_and_programs_add_none(profiled):
    rows = {row.key: row for row in profiled.key_averages() if row.self_device_time_total > 0 and not row.is_user_annotation}
    assert {"relu", "ltc_torchscript::sum"} <= rows.keys()
    assert not any(key.startswith("ltc program") for key in rows)
    assert rows["ltc_torchscript::sum"].count == STEPS


def test_the_trace_has_lanes_lines_and_arrows(profiled, tmp_path):
    profiled.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    named = {event["name"] for event in events}
    assert {"ltc barrier: MarkStep", "ltc read: item", "aten::mm"} <= named
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert len(kernels) == 3 * STEPS and all(event["dur"] > 0 for event in kernels), "mm, relu and sum in each step"
    assert {"aten::mm", "relu", "ltc_torchscript::sum"} == {event["name"] for event in kernels}
    programs = [event for event in events if event.get("cat") == "gpu_user_annotation"]
    assert len(programs) == 2 * STEPS, "around their kernels"
    assert all(any(p["ts"] <= k["ts"] and k["ts"] + k["dur"] <= p["ts"] + p["dur"] + 1 for p in programs) for k in kernels)
    recorded = [event for event in events if event["name"] == "aten::mm"]
    reads = [event for event in events if event["name"] == "ltc read: item"]
    assert all("test_profiler.py:" in event["args"]["line"] for event in reads)
    begin, end = min(event["ts"] for event in recorded), max(event["ts"] + event["dur"] for event in reads)
    assert all(begin <= event["ts"] <= end for event in kernels), "one clock"
    flows = [event for event in events if event.get("cat") == "ac2g"]
    assert {"s", "f"} <= {event["ph"] for event in flows}


def test_without_the_device_nothing_is_collected():
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        steps(torch.ones(8, 8, device="ltc"))
    assert not [row for row in profiler.key_averages() if row.key.startswith("ltc program")]
    assert ltc.timeline.stop() == []


def test_nothing_is_printed():
    code = """
import torch, ltc
from torch.profiler import ProfilerActivity, profile
x = torch.ones(3, device="ltc")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
    x.sum().item()
profiler.key_averages()
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    ours = [line for line in run.stderr.splitlines() if not line.startswith("USDT:")]  # PyTorch's own, for the CPU too
    assert (run.returncode, run.stdout, ours) == (0, "", [])
