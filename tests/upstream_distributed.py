"""PyTorch's ``DistributedTest`` with backend ``ltc``, beside Gloo on the CPU: how many tests apply, how many pass, and why not.

    python tests/upstream_distributed.py [--only NAME ...] [--backend ltc|gloo] [--jobs N] [--json FILE]

Every test runs with two ranks, or with four where it asks for more. ``upstream_distributed_side.py`` says how a test comes onto the device.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
WANTS_MORE_RANKS = r"world size|needs 4"

# Why a test does not apply: what its name, or the reason that it was skipped for, looks like.
NOT_APPLICABLE = [
    (r"^test_monitored_barrier_(gloo|failure_order|wait_all_ranks)", "`monitored_barrier`, which PyTorch refuses for all backends but Gloo"),
    (r"^test_nccl_high_priority_stream$", "makes a `ProcessGroupNCCL` by itself"),
    (r"torchvision", "needs torchvision, which was not installed"),
    (r"https://github.com/pytorch|flakiness", "upstream skips it, with every backend"),
]
# Why a test fails: its traceback says so.
FAILURES = [
    (r"'custom' != 'ltc'", "DDP's logger calls every backend `custom` that PyTorch does not bring along"),
    (r"_test_sparse_all_reduce_sum", "`all_reduce` of a sparse tensor needs a backend for the CPU beside"),
    (r"test_all_gather_v", "`all_gather` of unequal sizes, which upstream asks of NCCL alone"),
    (r"Pair is not connected", "a message to oneself, which upstream asks of NCCL alone"),
    (r"terminated or timed out after", "did not end within the limit"),
]
# On the CPU a test that is about a GPU fails, whatever the backend.
NEEDS_GPU = r"SyncBatchNorm layers only work with GPU|output_device|test_ddp_device\b|test_ddp_logging_data_gpu"


def names_of_tests():
    """(tests of the class, {name: why it does not apply} of the file's others)."""
    import torch.testing._internal as internal

    text = (Path(internal.__file__).parent / "distributed" / "distributed_test.py").read_text()
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    tests = {node.name: [item.name for item in node.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test_")] for node in classes}
    of_class = tests.pop("_DistTestBase")
    others = {name: "reads settings of DDP, has neither device nor group" for names in tests.values() for name in names}
    in_strings = {name: "upstream has put it into a string, so it is not run" for name in re.findall(r"^ +def (test_\w+)", text, re.MULTILINE)}
    return of_class, {name: why for name, why in {**in_strings, **others}.items() if name not in of_class}


def run_part(side, ranks, names):
    """{name: row} of some tests, each by ``upstream_distributed_side.py``. A process that ends early has lost the test that it was at."""
    rows = {}
    while left := [name for name in names if name not in rows]:
        command = [sys.executable, HERE / "upstream_distributed_side.py", "--backend", side, "--ranks", str(ranks), *left]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        new = {row["name"]: {**row, "ranks": ranks} for row in map(json.loads, process.stdout.splitlines())}
        if len(new) < len(left):
            lost = left[len(new)]
            new[lost] = {"name": lost, "result": "failed", "reason": f"the process ended with {process.returncode}", "ranks": ranks, "log": ""}
        rows.update(new)
    return rows


def run_side(side, names, jobs):
    """{name: row} with two ranks, and with four for those that want more."""
    rows = {}
    for ranks in (2, 4):
        parts = [names[i::jobs] for i in range(min(jobs, len(names)))]
        with ThreadPoolExecutor(max(1, len(parts))) as pool:
            for part in pool.map(lambda part: run_part(side, ranks, part), parts):
                rows.update(part)
        names = [name for name in names if rows[name]["result"] == "skipped" and re.search(WANTS_MORE_RANKS, rows[name]["reason"])]
    return rows


def first(table, text, default):
    return next((cause for pattern, cause in table if re.search(pattern, text)), default)


def last_error(text):
    """The line of a traceback that names the error."""
    errors = re.findall(r"^\w[\w.]*(?:Error|Exception)\b.*", text, re.MULTILINE)
    return errors[-1][:200] if errors else text.strip()[-200:]


def judged(row, on_gloo):
    """(verdict, cause) of a test on ``ltc``, given its row on Gloo, if there is one."""
    why_not = first(NOT_APPLICABLE, row["name"], None) or row["result"] == "skipped" and first(NOT_APPLICABLE, row["reason"], row["reason"])
    if why_not:
        return "does not apply", why_not
    if row["result"] == "passed":
        return "passes", ""
    cause = first(FAILURES, row["reason"], last_error(row["reason"]))
    if on_gloo is None:
        return "fails", cause
    if on_gloo["result"] == "passed":
        return "fails on ltc only", cause
    return ("fails on ltc, is for GPUs only" if re.search(NEEDS_GPU, on_gloo["reason"]) else "fails on both"), cause


def compare(names, sides, jobs):
    """A row for each test, with the results of both sides, the verdict and its cause."""
    rows = {side: run_side(side, names, jobs) for side in sides}
    ltc, gloo = rows.get("ltc", {}), rows.get("gloo", {})
    table = []
    for name in names:
        verdict = judged(ltc[name], gloo.get(name)) if ltc else (gloo[name]["result"], last_error(gloo[name]["reason"]))
        results = {side: {key: rows[side][name][key] for key in ("result", "ranks", "reason")} for side in sides}
        table.append({"name": name, "verdict": verdict[0], "cause": verdict[1], **results})
    return table


def summary(table):
    """Lines of Markdown: how many of each verdict, then the causes."""
    yield from ["| result | tests |", "|---|---|"]
    yield from (f"| {verdict} | {count} |" for verdict, count in Counter(row["verdict"] for row in table).most_common())
    yield from ["", "| result | cause | tests |", "|---|---|---|"]
    causes = Counter((row["verdict"], row["cause"]) for row in table if row["cause"])
    for (verdict, cause), count in sorted(causes.items(), key=lambda item: (item[0][0], -item[1])):
        names = ", ".join(f"`{row['name']}`" for row in table if (row["verdict"], row["cause"]) == (verdict, cause))
        yield f"| {verdict} | {cause} | {count}: {names} |"
    both = [row for row in table if "ltc" in row and "gloo" in row]
    if better := [row["name"] for row in both if row["verdict"] == "passes" and row["gloo"]["result"] == "failed"]:
        yield f"\n{len(better)} pass on ltc and fail on Gloo: {', '.join(better)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these tests, otherwise all")
    parser.add_argument("--backend", choices=["ltc", "gloo"], action="append", help="this side alone, otherwise both")
    parser.add_argument("--jobs", type=int, default=1, help="tests at a time, with two or four ranks each")
    parser.add_argument("--json", metavar="FILE", help="write a row for each test")
    arguments = parser.parse_args()
    of_class, others = names_of_tests()
    if unknown := set(arguments.only or []) - set(of_class):
        parser.error(f"no such test: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("LTC_CACHE_DIR", folder)
        table = compare(arguments.only or of_class, arguments.backend or ["ltc", "gloo"], arguments.jobs)
    if not arguments.only:
        table += [{"name": name, "verdict": "does not apply", "cause": why} for name, why in others.items()]
    print("\n".join(summary(table)))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(table, indent=1))
    return any(row["verdict"].startswith("fail") for row in table)


if __name__ == "__main__":
    sys.exit(main())
