#!/usr/bin/env python3
"""How much longer a step takes while ltc keeps account of it: the timeline, of which `ltc explain` makes its report, and the history
of the device's memory.

Blocks of steps without and with an account take turns in one process. The columns are medians of the ratios of neighbours: 1 costs
nothing. "noise" is without an account twice.

usage: accounts.py [ROUNDS] [WORKLOAD ...]     25 rounds of mlp, chain200, mnist4, enc; LTC_BACKEND chooses the plugin
"""

import gc
import statistics
import sys
import time

import torch

import ltc
from workloads import WORKLOADS

BLOCK = 0.05  # seconds
WARM_UP = 10  # steps
ACCOUNTS = {
    "noise": (lambda: None, lambda: None),
    "timeline": (ltc.timeline.start, ltc.timeline.collect),
    "memory history": (torch.ltc.memory._record_memory_history, lambda: torch.ltc.memory._record_memory_history(None, clear_history=True)),
}


def seconds(step, count):
    """Seconds of a step, behind some that are not timed."""
    for i in range(WARM_UP + count):
        if i == WARM_UP:
            ltc.wait_device_ops()
            begin = time.perf_counter()
        result = step()  # noqa: F841, alive at the barrier
        ltc.mark_step()
    ltc.wait_device_ops()
    return (time.perf_counter() - begin) / count


def measure(name, rounds):
    step = next(workload for workload in WORKLOADS if workload.name == name).make("ltc", lambda function: function)
    seconds(step, 20)
    count = max(int(BLOCK / seconds(step, 20)), 3)
    ratios = {account: [] for account in ACCOUNTS}
    plain = []
    for turn in range(rounds):
        for account, (start, stop) in ACCOUNTS.items():
            gc.collect()
            if turn % 2:
                plain.append(seconds(step, count))
            start()
            kept = seconds(step, count)
            stop()
            if not turn % 2:
                plain.append(seconds(step, count))
            ratios[account].append(kept / plain[-1])
    return statistics.median(plain), {account: statistics.median(values) for account, values in ratios.items()}


def main(arguments):
    rounds = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 25
    torch.set_num_threads(1)
    gc.disable()
    print("| step | us | " + " | ".join(ACCOUNTS) + " |\n" + "|---" * (2 + len(ACCOUNTS)) + "|")
    for name in arguments or ["mlp", "chain200", "mnist4", "enc"]:
        plain, ratios = measure(name, rounds)
        print(f"| `{name}` | {plain * 1e6:.0f} | " + " | ".join(f"{ratio:.3f}" for ratio in ratios.values()) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
