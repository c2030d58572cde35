"""Data parallel training in two processes: time of a step, and of recording a collective, beside eager PyTorch on the CPU with Gloo.

    python bench/distributed.py [--ranks N] [--steps N] [--delay MS] [--bandwidth MB] [MODEL ...]

Each rank has one thread. A row is the median step of rank 0 behind the first ten, which may compile; both sides train the same model, in turns, in the
same processes. Exposed communication is what the step takes longer than one in `no_sync()`, as a share of it. The first row is the time that a call of
`all_reduce` takes in the program, for 1,000 floats, where the result is not read; the last line says how many ops such a call records.

With --delay or --bandwidth the two ranks talk over a link of that latency, and of so many MB/s (tests/slow_link.py).
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
MODELS = ["GPT-2", "torchvision ResNet-18", "BERT", "mnist64"]
WARM_UP = 10


def mnist64():
    """The net of PyTorch's MNIST example, batches of 64."""
    import torch
    from torch import nn

    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))  # fmt: skip
    loss = nn.CrossEntropyLoss()
    return net, {"x": torch.randn(64, 1, 28, 28), "y": torch.randint(0, 10, (64,))}, lambda module, batch: loss(module(batch["x"]), batch["y"])


def of_table(name):
    from models import ROWS

    row = next(row for row in ROWS if row.name == name)
    return row.make(0.0), row.batch(), lambda module, batch: row.run(module, batch)[1]


def workload(name, device, wrap):
    """(model, optimizer, step) on the device. The step trains once and reads the loss."""
    import torch
    from comparing import to_device

    torch.manual_seed(0)
    model, batch, loss_of = mnist64() if name == "mnist64" else of_table(name)
    model = wrap(model.to(device))
    batch = to_device(batch, device) if device == "ltc" else batch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        loss.item()

    return model, optimizer, step


def median_step(name, device, steps):
    """ms of a step, and the part of it that is communication which nothing hides."""
    from torch.nn.parallel import DistributedDataParallel

    model, _, step = workload(name, device, DistributedDataParallel)
    medians = []
    for context in (contextlib.nullcontext, model.no_sync):
        times = []
        with context():
            for _ in range(WARM_UP + steps):
                begin = time.perf_counter()
                step()
                times.append(time.perf_counter() - begin)
        medians.append(1e3 * statistics.median(times[WARM_UP:]))
    return medians[0], 1 - medians[1] / medians[0]


def recorded_ops(count=100):
    """By a call of all_reduce."""
    import torch
    import torch.distributed as dist

    import ltc

    x = torch.ones(1000).to("ltc")
    ltc.sync()
    ltc.metrics.reset()
    for _ in range(count):
        dist.all_reduce(x)
    ltc.sync()
    return ltc.metrics.counter_value("OpsRecorded") / count


def call_time(device, count=200):
    import torch
    import torch.distributed as dist

    x = torch.ones(1000).to(device)
    best = None
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(count):
            dist.all_reduce(x)
        taken = (time.perf_counter() - begin) / count
        best = taken if best is None else min(best, taken)
        if device == "ltc":
            import ltc

            ltc.sync()
    return 1e6 * best


def measure(init, rank, ranks, steps, names):
    """Runs in the process of one rank."""
    import torch
    import torch.distributed as dist

    import ltc  # noqa: F401

    sys.path.insert(0, str(TESTS))
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo,ltc:ltc", init_method=init, rank=rank, world_size=ranks)
    rows = [("call of all_reduce, us", (call_time("cpu"), None), (call_time("ltc"), None))]
    rows += [(f"{name}, ms", median_step(name, "cpu", steps), median_step(name, "ltc", steps)) for name in names]
    ops = recorded_ops()
    if rank == 0:
        for name, (eager, eager_exposed), (ours, ours_exposed) in rows:
            exposed = " | " if eager_exposed is None else f"{eager_exposed:.0%} | {ours_exposed:.0%}"
            print(f"| {name} | {eager:.2f} | {ours:.2f} | {ours / eager:.2f} | {exposed} |")
        print(f"\n{ops:g} ops are recorded by a call of all_reduce.")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--delay", type=float, default=0.0, help="ms that a packet takes from rank to rank; needs root")
    parser.add_argument("--bandwidth", type=float, default=float("inf"), help="of that link, in MB/s; needs root")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*", default=MODELS)
    arguments = parser.parse_args()
    if arguments.one:
        init, rank = arguments.one
        return measure(init, int(rank), arguments.ranks, arguments.steps, arguments.models or MODELS)
    sys.path.insert(0, str(TESTS))
    from slow_link import DEVICE, slow_link

    is_slow = arguments.delay > 0 or arguments.bandwidth < float("inf")
    if is_slow and arguments.ranks != 2:
        parser.error(f"a slow link is for 2 ranks, not {arguments.ranks}")
    print("| step | eager, Gloo | ltc | ratio | exposed, eager | exposed, ltc |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder, slow_link(arguments.delay, arguments.bandwidth) if is_slow else contextlib.nullcontext() as link:
        command = [sys.executable, __file__, "--ranks", str(arguments.ranks), "--steps", str(arguments.steps)]
        environment = {"GLOO_SOCKET_IFNAME": DEVICE if link else "lo", **os.environ}
        within = link or [[]] * arguments.ranks
        commands = [[*within[rank], *command, "--one", f"file://{folder}/ranks", str(rank), *arguments.models] for rank in range(arguments.ranks)]
        ranks = [subprocess.Popen(one, env=environment) for one in commands]
        return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
