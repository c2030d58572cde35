"""The benchmarks run and say what they measured. Their figures are nobody's test."""

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench" / "run.py"


def bench(*flags):
    return subprocess.run([sys.executable, BENCH, *map(str, flags)], capture_output=True, text=True, timeout=300)


def test_a_row_for_each_workload_and_a_column_for_each_side(tmp_path):
    history = tmp_path / "history"
    run = bench("--quick", "--sides", "ltc,ltc_compile", "--workloads", "record relu,mlp_fwd", "--history", history)
    assert run.returncode == 0, run.stdout + run.stderr
    header, *rows = run.stdout.splitlines()[1:4]
    assert header.split() == ["eager", "ltc", "ltc_compile"]
    assert [row.split("  ")[0] for row in rows] == ["mlp_fwd", "record relu"]
    (line,) = history.read_text().splitlines()
    facts = json.loads(line)
    assert 0 <= facts["stolen"] <= 1
    assert f"gave to others: {facts['stolen']:.0%}" in run.stdout
    results = facts["results"]
    assert [set(result["ratios"]) for result in results] == [{"eager", "ltc", "ltc_compile"}] * 2


def test_unknown_names():
    assert "no workload nope" in bench("--workloads", "mlp,nope").stderr
    assert "no side nope; there are eager, ltc" in bench("--sides", "nope").stderr
