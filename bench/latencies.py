#!/usr/bin/env python3
"""How long a plugin's compiled kernels take to be ready: the first of a process, with the compiler's start; later ones; the largest
that there are, of 64 operations; and all of these once more from disk.

LTC_BACKEND names the plugin. The torchscript plugin compiles beside its work and says itself when a kernel is ready; of others it is the
first call of a program that counts, from recording to the result, which waits for its kernel.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile

# Each call of run() has a form of its own, so a kernel of its own.
PROGRAM = """
import time, torch, ltc
x = torch.rand(64).to("ltc")
x.cpu()
steps = [lambda y: y * x, lambda y: y + x, lambda y: y.abs(), lambda y: torch.maximum(x, y), lambda y: y.tanh()]
def run(ops, form):
    y = x
    for i in range(ops):
        y = steps[form // 5**(i % 4) % 5 if i < 8 else i % 5](y)
    y.cpu()
for ops, forms in ((20, range(5, 25)), (64, range(5, 15))):
    for form in forms:
        begin = time.perf_counter()
        run(ops, form)
        print(f"first call {(time.perf_counter() - begin) * 1e3} ms")
"""
SMALL = 20  # kernels of 20 operations; the rest are the largest


def milliseconds(folder):
    """Of each kernel, in the order in which they were wanted."""
    settings = {"LTC_TS_KERNELS": "wait", "LTC_LOG": "debug", "LTC_CACHE_DIR": folder, "LTC_CACHE": "1", "POCL_CACHE_DIR": folder}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | settings, capture_output=True, text=True, check=True)
    compiles_aside = os.environ.get("LTC_BACKEND", "torchscript") == "torchscript"
    pattern = r"a host kernel is ready after ([\d.]+) ms" if compiles_aside else r"first call ([\d.]+) ms"
    return [float(text) for text in re.findall(pattern, run.stderr if compiles_aside else run.stdout)]


def row(name, times):
    print(f"| {name} | {times[0]:.1f} | {statistics.median(times[1:SMALL]):.1f} | {statistics.median(times[SMALL:]):.1f} |")


def main():
    with tempfile.TemporaryDirectory() as folder:
        compiled, read = milliseconds(folder), milliseconds(folder)
    assert len(compiled) == len(read) == SMALL + 10, (len(compiled), len(read))
    print("| ms | first | later, 20 operations | 64 operations |\n|---|---|---|---|")
    row("compiled", compiled)
    row("from disk", read)


if __name__ == "__main__":
    main()
