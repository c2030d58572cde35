"""TORCH_TRACE: PyTorch's structured log has each program of the device."""

import hashlib
import json
import re

import pytest

from comparing import output_of

PROGRAM = """
import sys, torch, ltc
x = torch.ones(4, device="ltc")
for _ in range(3):
    x = x * 2 + 1
    ltc.mark_step()
print(x.tolist(), file=sys.stderr)
"""

UNTIL_COMPILED = """
import time, torch, ltc
x, seen, end = torch.ones(4, device="ltc"), -1, time.monotonic() + 60
while seen != (seen := ltc.metrics.counter_value("InterimRuns")) and time.monotonic() < end:  # the last step was the plugin's
    for _ in range(3):
        x = x * 0.5 + 1
        ltc.mark_step()
    x.tolist()
    time.sleep(0.05)
"""


def records(folder):
    """The log's lines as (metadata, payload); a payload stands behind its line, indented by a tab, and must be what its hash says."""
    log, = folder.glob("*.log")
    found = []
    for line in log.read_text().splitlines():
        if line.startswith("\t"):
            found[-1][1].append(line[1:])
        else:
            found.append((json.loads(re.fullmatch(r"V\d{4} .*?\] (\{.*\})", line)[1]), []))
    for metadata, lines in found:
        payload = "\n".join(lines)
        if "has_payload" in metadata:
            assert hashlib.md5(payload.encode()).hexdigest() == metadata["has_payload"], payload
    return [(metadata, "\n".join(lines)) for metadata, lines in found]


def programs(folder):
    named = [(metadata, payload) for metadata, payload in records(folder)
             if metadata.get("artifact", {}).get("name", "").startswith("ltc_graph_")]
    assert len({metadata["artifact"]["name"] for metadata, _ in named}) == len(named) > 0
    assert all(metadata["artifact"]["encoding"] == "string" for metadata, _ in named)
    return named


def test_programs_of_recorded_steps(tmp_path):
    output_of(PROGRAM, TORCH_TRACE=str(tmp_path))
    metadata, graph = programs(tmp_path)[-1]
    facts = metadata["artifact"]
    assert "frame_id" not in metadata and "stack" not in metadata
    assert facts["source"] == "compiled" and facts["ms"] > 0 and facts["ops"] >= 2 and facts["device_steps"] == 1
    assert facts["where"].endswith(":5") or facts["where"].endswith(":6"), facts
    assert graph.startswith("# program: ") and f"# where: {facts['where']}\n" in graph
    assert "aten::mul" in graph and "return" in graph


def test_programs_of_compiled_functions_belong_to_dynamos_compile(tmp_path):
    output_of("""
    import torch, ltc
    @torch.compile(backend="ltc")
    def scaled(x):
        return (x * 3).exp().sum()
    x = torch.ones(4, device="ltc", requires_grad=True)
    ltc.sync()
    scaled(x).backward()
    scaled(x.detach())
    print(x.grad.tolist())
    """, TORCH_TRACE=str(tmp_path))
    all_of_them = programs(tmp_path)
    compiled = [(metadata["frame_id"], metadata["frame_compile_id"], "aten::exp" in graph) for metadata, graph in all_of_them
                if "frame_id" in metadata]
    assert {ids[:2] for ids in compiled if ids[2]} == {(0, 0), (0, 1)}, compiled
    assert any("frame_id" not in metadata for metadata, _ in all_of_them)


def test_programs_of_the_disk_and_of_the_background(tmp_path):
    for place in ("one", "two"):
        output_of(PROGRAM, TORCH_TRACE=str(tmp_path / place), LTC_CACHE="1", LTC_CACHE_DIR=str(tmp_path / "cache"))
    assert {metadata["artifact"]["source"] for metadata, _ in programs(tmp_path / "one")} == {"compiled"}
    assert {metadata["artifact"]["source"] for metadata, _ in programs(tmp_path / "two")} == {"disk"}
    output_of(UNTIL_COMPILED, TORCH_TRACE=str(tmp_path / "three"), LTC_BACKGROUND_COMPILE="1")
    assert "background" in {metadata["artifact"]["reason"] for metadata, _ in programs(tmp_path / "three")}


def test_without_the_variable_nothing_is_told():
    assert output_of("""
    import torch, ltc
    told = []
    ltc._trace_log.trace_structured = lambda *args, **kwargs: told.append(args)
    (torch.ones(4, device="ltc") + 1).tolist()
    print(len(told))
    """) == "0\n"


@pytest.mark.parametrize("folder", ["missing/folder"])
def test_the_folder_is_made(tmp_path, folder):
    output_of(PROGRAM, TORCH_TRACE=str(tmp_path / folder))
    assert programs(tmp_path / folder)
