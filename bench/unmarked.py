"""Training steps of the table of models with mark_step() and without it, in a process each.

    python bench/unmarked.py [MODEL ...]

For each model: the time of a step (of 8 behind 6 others, with the last one's end), the most memory that the values have held, and the
programs that were compiled. The losses of both must be equal. One thread.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
FIRST, TIMED, ROUNDS = 6, 8, 5


def measure(name, marks):
    import statistics
    import time

    import torch

    import ltc

    sys.path.insert(0, str(TESTS))
    from comparing import LTC, to_device
    from models import ROWS

    torch.set_num_threads(1)
    row = next(row for row in ROWS if row.name == name)
    torch.manual_seed(0)
    module = row.make(0.0).to(LTC)
    optimizer = row.optimizer(module.parameters())
    batches = [row.batch() for _ in range(FIRST)]
    losses, times = [], []

    def steps(count):
        for i in range(count):
            batch = to_device(batches[i % FIRST], LTC)
            optimizer.zero_grad()
            loss = row.run(module, batch)[1]
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            if marks:
                ltc.mark_step()
        if marks:
            ltc.wait_device_ops()
        else:
            ltc.sync()

    steps(FIRST)
    steps(TIMED)
    torch.accelerator.reset_peak_memory_stats()
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        steps(TIMED)
        times.append((time.perf_counter() - begin) / TIMED)
    peak = torch.accelerator.max_memory_allocated()
    print(json.dumps({"ms": 1e3 * statistics.median(times), "peak": peak, "compiles": ltc.metrics.counter_value("UncachedCompile"),
                      "losses": [loss.item() for loss in losses]}))


def run(name, marks):
    environment = {**os.environ, "LTC_CACHE": "0", "LTC_TORCHSCRIPT_KERNELS": "sync"}
    done = subprocess.run([sys.executable, __file__, "--one", name, str(int(marks))], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    if sys.argv[1:2] == ["--one"]:
        return measure(sys.argv[2], sys.argv[3] == "1")
    import ltc  # noqa: F401  the table needs it

    sys.path.insert(0, str(TESTS))
    from models import ROWS

    print("| model | ms, marked | unmarked | ratio | peak MB, marked | unmarked | programs, marked | unmarked | losses |\n|---" + "|---" * 8 + "|")
    for row in ROWS:
        if sys.argv[1:] and row.name not in sys.argv[1:]:
            continue
        marked, unmarked = run(row.name, True), run(row.name, False)
        same = "equal" if marked["losses"] == unmarked["losses"] else "DIFFER"
        print(f"| {row.name} | {marked['ms']:.2f} | {unmarked['ms']:.2f} | {unmarked['ms'] / marked['ms']:.2f} | {marked['peak'] / 1e6:.2f} | "
              f"{unmarked['peak'] / 1e6:.2f} | {marked['compiles']} | {unmarked['compiles']} | {same} |", flush=True)
    return None


if __name__ == "__main__":
    main()
