"""Random programs on the device and on the CPU. python tests/fuzz/run.py --help; README.md beside it says more."""

import argparse
import collections
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

KINDS, DTYPES = ("networks", "views"), ("float32", "float64")
BATCH = 500  # cases of a process
DEFAULTS = {"LTC_VERIFY": "1", "LTC_CACHE": "0", "LTC_LOG": "error", "OMP_NUM_THREADS": "1"}


def check(kind, seed, dtype):
    """None, or a report on the seed's program, shortened."""
    import importlib

    import torch
    from compare import difference
    from program import shorten

    dtype = getattr(torch, dtype)
    program = importlib.import_module(kind).generate(seed)
    found = difference(program, kind, dtype)
    if not found:
        return None

    def fails(candidate):
        return isinstance(candidate.outcome("cpu", dtype), dict) and difference(candidate, kind, dtype)

    short = shorten(program, fails) if isinstance(program.outcome("cpu", dtype), dict) else program
    return f"{kind} {dtype} seed {seed}: {found}\nshortened: {difference(short, kind, dtype)}\n{short.text()}\n"


def child(kind, dtype, first, count):
    """Says the seed before each case, so that a crash has one."""
    import ltc  # noqa: F401
    import torch

    torch.set_num_threads(1)
    for seed in range(first, first + count):
        print("seed", seed, flush=True)
        if report := check(kind, seed, dtype):
            print("FAILED", report.replace("\n", "\n  "), flush=True)


def batch(kind, dtype, first, count):
    """Runs the cases in a process; yields the seed with a report for each failure, and goes on behind a crash."""
    while count > 0:
        command = [sys.executable, __file__, "--child", "--kind", kind, "--dtype", dtype, "--seed", str(first), "--count", str(count)]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env={**DEFAULTS, **os.environ})
        seed, report, tail = first - 1, None, collections.deque(maxlen=20)
        for line in run.stdout:
            if line.startswith("seed "):
                if report:
                    yield seed, report
                seed, report = int(line.split()[1]), None
                tail.clear()
            elif line.startswith("FAILED "):
                report = line.removeprefix("FAILED ")
            elif report:
                report += line
            tail.append(line)
        if report:
            yield seed, report
        if run.wait() == 0:
            return
        if not report:
            yield seed, f"{kind} {dtype} seed {seed}: the process ended with {run.returncode}\n{''.join(tail)}"
        count -= seed + 1 - first
        first = seed + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the programs, run nothing")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.kind, args.dtype, args.seed, args.count)
    if args.show:
        import importlib
        for seed in range(args.seed, args.seed + args.count):
            print(importlib.import_module(args.kind).generate(seed).text(), "\n")
        return 0
    begin, failures = time.monotonic(), 0
    for first in range(args.seed, args.seed + args.count, BATCH):
        for _, report in batch(args.kind, args.dtype, first, min(BATCH, args.seed + args.count - first)):
            failures += 1
            print(report, flush=True)
        done = min(first + BATCH, args.seed + args.count) - args.seed
        print(f"{done} cases in {time.monotonic() - begin:.0f} s, {failures} failed", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
