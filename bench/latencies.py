#!/usr/bin/env python3
"""How long a plugin's compiled kernels take to be ready: the first of a process, with the compiler's start; those of later programs,
of 20, 64 and 400 operations; and all of these once more from disk.

LTC_BACKEND names the plugin. The torchscript plugin compiles beside its work and says itself when the kernels of a program are ready.
For others the latency is that of a program's first call, from recording to the result, which waits for its kernels.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile

# Each program draws its operations, so each kernel is a new one.
PROGRAM = """
import random, sys, time, torch, ltc
x = torch.rand(64).to("ltc")
x.cpu()
steps = [lambda y: y * x, lambda y: y + x, lambda y: y.abs(), lambda y: torch.maximum(x, y), lambda y: y.tanh()]
def run(ops):
    y = x
    for _ in range(ops):
        y = random.choice(steps)(y)
    y.cpu()
random.seed(0)
for ops, programs in PROGRAMS:
    for _ in range(programs):
        print(f"program of {ops}", file=sys.stderr, flush=True)
        begin = time.perf_counter()
        run(ops)
        print(f"first call {(time.perf_counter() - begin) * 1e3} ms", file=sys.stderr, flush=True)
"""
PROGRAMS = ((20, 20), (64, 10), (400, 4))  # operations, programs


def milliseconds(folder):
    """Latencies of each program, by its operations."""
    settings = {"LTC_TORCHSCRIPT_KERNELS": "sync", "LTC_LOG": "debug", "LTC_CACHE_DIR": folder, "LTC_CACHE": "1", "POCL_CACHE_DIR": folder}
    command = [sys.executable, "-c", f"PROGRAMS = {PROGRAMS}\n{PROGRAM}"]
    run = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=True)
    compiles_aside = os.environ.get("LTC_BACKEND", "torchscript") == "torchscript"
    pattern = r"host kernels, \d+ of them, are ready after ([\d.]+) ms" if compiles_aside else r"first call ([\d.]+) ms"
    times = {}
    for program in run.stderr.split("program of ")[1:]:
        times.setdefault(int(program.split(maxsplit=1)[0]), []).append(max(map(float, re.findall(pattern, program)), default=0.0))
    return times


def row(name, times):
    first, *times[20] = times[20]
    print(f"| {name} | {first:.1f} | " + " | ".join(f"{statistics.median(of):.1f}" for of in times.values()) + " |")


def main():
    with tempfile.TemporaryDirectory() as folder:
        compiled, read = milliseconds(folder), milliseconds(folder)
    assert all(all(of) for of in compiled.values()), "a program without a kernel"
    print("| ms | first | later, 20 operations | 64 operations | 400 operations |\n|---|---|---|---|---|")
    row("compiled", compiled)
    row("from disk", read)


if __name__ == "__main__":
    main()
