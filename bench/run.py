#!/usr/bin/env python3
"""Times device ltc beside eager CPU: both in one process, in turns, so that whatever disturbs one disturbs the other."""

import argparse
import gc
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", metavar="A,B", help="only these; `--list` names them")
    parser.add_argument("--list", action="store_true", help="name the workloads and stop")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads of PyTorch's CPU kernels (default 1)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a first impression")
    parser.add_argument("--device", choices=["ltc", "cpu"], default="ltc", help="cpu measures eager against itself: the noise")
    parser.add_argument("--json", metavar="FILE", help="write all figures here too")
    return parser.parse_args()


ARGS = parse_args()
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read when torch is loaded; also binds threads that ltc starts
    os.environ[variable] = str(ARGS.threads)

import torch  # noqa: E402

from workloads import RECORD_OPS, RECORDED, WORKLOADS  # noqa: E402

WARM_UP_STEPS = 5


class Device:
    """A device and how to end a step and wait on it. Eager CPU needs neither."""

    def __init__(self, name):
        self.name = name
        self.ltc = None
        if name == "ltc":
            import ltc

            self.ltc = ltc

    def mark_step(self):
        if self.ltc:
            self.ltc.mark_step()

    def wait(self):
        if self.ltc:
            self.ltc.wait_device_ops()

    def disturbances(self):
        """Compiles and fallbacks so far, by counter name; a steady state adds none."""
        if not self.ltc:
            return {}
        metrics = self.ltc.metrics
        names = [name for name in metrics.counter_names() if name == "UncachedCompile" or name.startswith("aten::")]
        return {name: metrics.counter_value(name) for name in names}


@dataclass
class Result:
    """Medians in `unit`; the ratio is the median of the rounds' own ratios, below 1 where the device is faster than eager."""

    name: str
    unit: str
    eager: float
    device: float
    ratio: float
    rounds: int
    disturbances: dict = field(default_factory=dict)


def summarise(name, unit, pairs, before, after):
    """The result of `pairs`, per round the seconds of (eager, device) per step or op, and of the counters around them."""
    scale = {"ms": 1e3, "ns": 1e9}[unit]
    return Result(
        name=name,
        unit=unit,
        eager=statistics.median(a for a, _ in pairs) * scale,
        device=statistics.median(b for _, b in pairs) * scale,
        ratio=statistics.median(b / a for a, b in pairs),
        rounds=len(pairs),
        disturbances={key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key, 0)},
    )


def time_block(device, step, count):
    """Seconds per step of `count` steps, to the end of the last one's execution."""
    start = time.perf_counter()
    for _ in range(count):
        result = step()  # noqa: F841, alive at the barrier
        device.mark_step()
    device.wait()
    return (time.perf_counter() - start) / count


def measure(workload, eager, device, rounds):
    """Result of one workload in its steady state, in milliseconds per step."""
    sides = [(side, workload.make(side.name)) for side in (eager, device)]
    for side, step in sides:
        time_block(side, step, max(WARM_UP_STEPS, workload.block))
    before = device.disturbances()
    pairs = [tuple(time_block(side, step, workload.block) for side, step in sides) for _ in range(rounds)]
    return summarise(workload.name, "ms", pairs, before, device.disturbances())


@torch.no_grad()
def time_record(device, op, start_value):
    """Seconds per op of a chain of ops: eager runs them, ltc only records them; its execution is waited for off the clock."""
    x = start_value.to(device.name)
    device.mark_step()
    start = time.perf_counter()
    for _ in range(RECORD_OPS):
        x = op(x)
    seconds = time.perf_counter() - start
    device.mark_step()
    device.wait()
    return seconds / RECORD_OPS


def measure_record(name, op, eager, device, rounds):
    """Result of recording one op, in nanoseconds per op."""
    values = torch.rand(8, 16)

    def chain(side, i):
        return time_record(side, op, values[i % len(values)])

    for side in (eager, device):
        for i in range(WARM_UP_STEPS):
            chain(side, i)
    before = device.disturbances()
    pairs = [(chain(eager, i), chain(device, i)) for i in range(rounds)]
    return summarise(f"record {name}", "ns", pairs, before, device.disturbances())


def cpu_model():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown"


def selected():
    """The chosen names in their order; exits where one is unknown."""
    known = [workload.name for workload in WORKLOADS] + ["record"]
    if ARGS.list:
        print("\n".join(known))
        sys.exit()
    chosen = ARGS.workloads.split(",") if ARGS.workloads else known
    for name in chosen:
        if name not in known:
            sys.exit(f"error: no workload {name}; there are {', '.join(known)}")
    return chosen


def run(chosen, eager, device):
    """Yields a result for each chosen workload and each recorded op."""
    rounds, record_rounds = (5, 100) if ARGS.quick else (15, 1000)
    for workload in WORKLOADS:
        if workload.name in chosen:
            yield measure(workload, eager, device, rounds)
    if "record" in chosen:
        for name, op in RECORDED.items():
            yield measure_record(name, op, eager, device, record_rounds)


def row(result):
    digits = 3 if result.unit == "ms" else 0
    times = "".join(f"{value:>12.{digits}f} {result.unit}" for value in (result.eager, result.device))
    return f"{result.name:<18}{times}{result.ratio:>9.2f}"


def main():
    chosen = selected()
    torch.set_num_threads(ARGS.threads)
    eager, device = Device("cpu"), Device(ARGS.device)
    facts = {"torch": torch.__version__, "threads": ARGS.threads, "cpu": cpu_model(), "device": device.name}
    print(f"torch {facts['torch']}, {ARGS.threads} thread(s), {facts['cpu']}")
    print(f"{'':<18}{'eager':>15}{device.name:>15}{'ratio':>9}   (below 1: {device.name} is faster)")
    results = []
    gc.disable()
    for result in run(chosen, eager, device):
        gc.collect()
        results.append(result)
        print(row(result), flush=True)
    disturbed = [result for result in results if result.disturbances]
    for result in disturbed:
        print(f"NOT A STEADY STATE: {result.name}: {result.disturbances} while it was timed")
    if device.ltc and not disturbed:
        print("compiles and fallbacks while timed: 0")
    if ARGS.json:
        with open(ARGS.json, "w") as out:
            json.dump({**facts, "results": [asdict(result) for result in results]}, out, indent=1)
    sys.exit(1 if disturbed else 0)


if __name__ == "__main__":
    main()
