#!/usr/bin/env python3
"""Twenty programs with one bad node among good ones, on every plugin: which way each takes, and what that costs.

A bad node is an index out of range, or an op that raises. Each program is run good and bad in turns, with the same shapes. The columns:

  way    device: the plugin ran all of it, told the error, and said which outputs are good;  host: a step of the host, or an op that
         runs on it, raised;  op by op: the run failed, and the host computed the step once more, op by op
  good   ms of the program with good indices
  cost   time with the bad node, as a multiple of that
  kept   whether the two values that do not depend on the bad node are right afterwards

usage: bad_nodes.py [PLUGIN ...]     by default all of the package that compute
"""

import os
import pathlib
import statistics
import subprocess
import sys

PROGRAM = r"""
import statistics, sys, time, torch, torch.nn.functional as F, ltc

N = 64
torch.manual_seed(0)
TABLE, ROWS, MORE = torch.randn(N, 32), torch.randn(16, 32), torch.randn(16, 32)


def index(bad, size=16):
    at = torch.arange(size) % N
    at[size // 2] = N + 3 if bad else 5
    return at.to("ltc")


def spread(bad):
    return index(bad).reshape(16, 1).expand(16, 32).contiguous()


def matrix(bad):
    square = torch.eye(16) * 2
    if bad:
        square[3, 3] = 0
    return square.to("ltc")


def counts(bad):
    return torch.tensor([1, 2, -1 if bad else 3]).to("ltc")


CASES = {
    "index": lambda t, bad: t[index(bad)],
    "index of two dims": lambda t, bad: t[index(bad), index(False) % 32],
    "index_select": lambda t, bad: t.index_select(0, index(bad)),
    "gather": lambda t, bad: t.gather(0, spread(bad)),
    "index_reduce": lambda t, bad: t.index_reduce(0, index(bad), t[:16], "amax"),
    "take": lambda t, bad: t.take(index(bad) * 32),
    "embedding": lambda t, bad: F.embedding(index(bad), t),
    "embedding_bag": lambda t, bad: F.embedding_bag(index(bad).reshape(4, 4), t, mode="sum"),
    "nll_loss": lambda t, bad: F.nll_loss(t[:16].log_softmax(1), index(True) if bad else index(False) % 32),
    "cross_entropy": lambda t, bad: F.cross_entropy(t[:16], index(True) if bad else index(False) % 32),
    "scatter": lambda t, bad: t.scatter(0, spread(bad), 1.0),
    "scatter_add": lambda t, bad: t.scatter_add(0, spread(bad), t[:16]),
    "index_add": lambda t, bad: t.index_add(0, index(bad), t[:16]),
    "index_copy": lambda t, bad: t.index_copy(0, index(bad), t[:16]),
    "index_fill": lambda t, bad: t.index_fill(0, index(bad), 1.0),
    "index_put": lambda t, bad: t.index_put((index(bad),), t[:16]),
    "one_hot": lambda t, bad: F.one_hot(torch.tensor([1, 2, -1 if bad else 3]).to("ltc"), N),
    "repeat_interleave": lambda t, bad: t[:3].repeat_interleave(counts(bad), 0),
    "inv": lambda t, bad: torch.linalg.inv(matrix(bad)),
    "cholesky": lambda t, bad: torch.linalg.cholesky(matrix(bad)),
}


def run(case, bad):
    table, rows, more = TABLE.to("ltc"), ROWS.to("ltc"), MORE.to("ltc")
    ltc.wait_device_ops()
    begin = time.perf_counter()
    one = (rows * 2).relu() + more
    failed = False
    try:
        part = case(table * 1.5, bad)
        other = torch.softmax(rows, 1) @ more.t()
        ltc.mark_step()
        part.cpu()
    except (IndexError, RuntimeError):
        failed = True
        other = torch.softmax(rows, 1) @ more.t()
    try:
        kept = one.cpu(), other.cpu()
    except (IndexError, RuntimeError):
        kept = ()
    seconds = time.perf_counter() - begin
    expected = (ROWS * 2).relu() + MORE, torch.softmax(ROWS, 1) @ MORE.t()
    return seconds, failed, bool(kept) and all(torch.allclose(a, b, atol=1e-4) for a, b in zip(kept, expected))


for name, case in CASES.items():
    times = {False: [], True: []}
    for bad in (False, True) * 2:
        run(case, bad)  # compiles
    ltc.metrics.reset()
    right, failed = True, 0
    for turn in range(20):
        bad = turn % 2 == 1
        seconds, has_failed, kept = run(case, bad)
        times[bad].append(seconds)
        right &= kept
        failed += has_failed
        if has_failed and not bad:
            sys.exit(f"{name}: fails with good indices too")
    recoveries, steps = ltc.metrics.counter_value("RecoveredRuns"), ltc.metrics.counter_value("HostStepOps")
    way = "op by op" if recoveries else "host" if steps or ltc.metrics.fallbacks() else "device"
    good, bad = statistics.median(times[False]), statistics.median(times[True])
    told = "" if failed == 10 else f", told {failed} of 10"
    print(f"{name}\t{way}\t{good * 1e3:.2f}\t{bad / good:.1f}\t{'yes' if right else 'NO'}{told}", flush=True)
"""


def main():
    import ltc

    plugins = pathlib.Path(ltc.__file__).parent / "plugins"
    found = sorted(file.stem.removeprefix("libltc_") for file in plugins.glob("libltc_*.so"))
    for plugin in sys.argv[1:] or [name for name in found if name not in ("null", "cuda")]:
        run = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | {"LTC_BACKEND": plugin}, capture_output=True, text=True)
        rows = [line.split("\t") for line in run.stdout.splitlines()]
        if run.returncode != 0:
            sys.exit(f"{plugin}: {run.stdout}{run.stderr[-2000:]}")
        print(f"\n## {plugin}\n\n| program | way | good, ms | cost | kept |\n|---|---|---|---|---|")
        for row in rows:
            print("| " + " | ".join(row) + " |")
        print(f"\nmedian cost {statistics.median(float(row[3]) for row in rows):.1f}")


if __name__ == "__main__":
    main()
