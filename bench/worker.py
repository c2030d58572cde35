"""A side's process: does what the lines of its standard input say, and answers each with a line of JSON."""

import gc
import json
import os
import sys
import time

import torch

from sides import SIDES, Device
from workloads import ONCE, RECORDED, WORKLOADS

WARM_UP_STEPS = 5


class Steps:
    """A workload's steps in blocks; a block's time is that per step, to the end of the last one's execution."""

    def __init__(self, workload, device):
        self._device, self._count = device, workload.block
        self._step = workload.make(device.name, device.compile)

    def warm_up(self):
        self._run(max(WARM_UP_STEPS, self._count))

    def block(self):
        start = time.perf_counter()
        self._run(self._count)
        return (time.perf_counter() - start) / self._count

    def _run(self, count):
        results = []
        for _ in range(count):
            result = self._step()  # alive at the barrier
            if not self._device.marks:
                results.append(result)
            self._device.mark_step()
        self._device.wait()


class Recordings:
    """Chains of ops. Eager runs them, lazy devices only record them; their execution is waited for off the clock."""

    CHAINS = 20  # a block

    def __init__(self, recorded, device):
        self._device, self._recorded = device, recorded
        self._values = [value.to(device.name) for value in torch.rand(8, 16)]
        device.mark_step()

    def warm_up(self):
        for _ in range(WARM_UP_STEPS):
            self.block()

    def block(self):
        seconds = 0
        for i in range(self.CHAINS):
            chain = self._recorded.make(self._values[i % len(self._values)])
            start = time.perf_counter()
            result = chain()  # noqa: F841
            seconds += time.perf_counter() - start
            self._device.mark_step()
            self._device.wait()
        return seconds / self.CHAINS / self._recorded.ops


def serve(device):
    kinds = {**{w.name: (Steps, w) for w in WORKLOADS}, **{r.name: (Recordings, r) for r in RECORDED}}
    once = {o.name: o for o in ONCE}
    timed = None

    def prepare(name):
        nonlocal timed
        timed = None
        gc.collect()
        make, row = kinds[name]
        timed = make(row, device)
        timed.warm_up()

    def run_once(name):
        prepared = once[name].make(device)
        start = time.perf_counter()
        prepared()
        device.wait()
        return time.perf_counter() - start

    commands = {"prepare": prepare, "block": lambda: timed.block(), "disturbances": device.disturbances, "once": run_once}
    # All that libraries print goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        command, *args = json.loads(line)
        try:
            answer = {"value": commands[command](*args)}
        except Exception as error:  # a peer that cannot run a workload is a result too
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    gc.disable()
    serve(Device(next(side for side in SIDES if side.name == sys.argv[1])))
