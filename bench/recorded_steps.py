"""Steps of one rank as the timeline shows them: host time, compute, collectives; and the memory of the rank. `record()` starts the ranks.

A recorded step is a list of actions of the script's thread:

    {"do": "host", "s": ...}                    Python, recording and barriers
    {"do": "launch", "run": [segment, ...]}     a program goes to the queue; a segment is {"kind": "compute", "s": ..., "backward_s": ...}
                                                or a collective, {"kind": "all_reduce", "bytes": ..., "s": ...}
    {"do": "wait", "s": ...}                    for the last program; s is the time from its end until the script goes on
"""

import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
COLLECTIVE = re.compile(r"= ltc_c10d::(?!wait\()(\w+?)(?:_start)?\(")  # carried out where it stands, or started there
WAIT = "ltc_c10d::wait"
RESULT = re.compile(r"%\d+: (\w+)\[([\d,]*)\]")
ITEM_SIZES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2}
SWEEP = "sweep"  # in place of a case: all_reduces of these bytes
SIZES = [4 << shift for shift in range(4, 24, 2)]
QUIET = 0.05
WARM_UP, TURN = 10, 5  # steps
SLOWEST_LOOK = 0.5  # looking at its kernels makes a run at most twice as long


# ---- reading the timeline


def collectives_of(graph, ranks):
    """Kind and bytes of the whole for each collective of a program's text, in its order."""
    found = []
    for line in graph.splitlines():
        if kind := COLLECTIVE.search(line):
            dtype, sizes = RESULT.search(line).groups()
            size = ITEM_SIZES.get(dtype, 1)
            for extent in filter(None, sizes.split(",")):
                size *= int(extent)
            found.append((kind[1], size * ranks if kind[1] == "reduce_scatter" else size))
    return found


def segments_of(run, kernels, collectives):
    """Compute and collectives of a run in turns; `kernels` are those of the run that were looked into. Waits for collectives are no compute."""
    ours = [kernel for kernel in kernels if kernel["reason"].startswith("ltc_c10d::") and kernel["reason"] != WAIT]
    waits = [kernel for kernel in kernels if kernel["reason"] == WAIT]
    assert len(ours) == len(collectives), "a run whose kernels are not known has collectives"
    segments, begin = [], run["begin_ns"]
    for kernel, (kind, size) in [*zip(ours, collectives, strict=True), (None, (None, 0))]:
        end = kernel["begin_ns"] if kernel else run["end_ns"]
        backward = sum(k["end_ns"] - k["begin_ns"] for k in kernels if begin <= k["begin_ns"] < end and "in its backward" in k["where"])
        waited = sum(wait["end_ns"] - wait["begin_ns"] for wait in waits if begin <= wait["begin_ns"] < end)
        segments.append({"kind": "compute", "s": (end - begin - waited) / 1e9, "backward_s": backward / 1e9})
        if kernel:
            segments.append({"kind": kind, "bytes": size, "s": (kernel["end_ns"] - kernel["begin_ns"]) / 1e9})
            begin = kernel["end_ns"]
    return segments


def actions_of(span, events, programs, ranks):
    """The actions of one step, which took the time `span` (begin and end in ns)."""
    inside = [event for event in events if span[0] <= event["begin_ns"] < span[1]]
    runs = {event["run"]: event for event in inside if event["name"] == "execute"}
    barriers = {event["run"]: event for event in inside if event["name"] == "barrier" and event["ops"]}
    marks = [(barrier["end_ns"], "launch", barrier) for run, barrier in barriers.items() if run in runs]
    marks += [(event["end_ns"], "wait", event) for event in inside if event["name"] in ("read", "wait")]
    actions, cursor = [], span[0]

    def host_until(when):
        nonlocal cursor
        actions.append({"do": "host", "s": max(when - cursor, 0) / 1e9})
        cursor = max(when, cursor)

    for end, do, event in sorted(marks, key=lambda mark: mark[0]):
        if do == "launch":
            run = runs[event["run"]]
            kernels = [one for one in inside if one["name"] == "kernel" and one["run"] == event["run"]]
            segments = segments_of(run, kernels, collectives_of(programs[run["program"]], ranks) if kernels else [])
            is_inline = run["thread"] == event["thread"]  # the barrier ran the program itself
            host_until(run["begin_ns"] if is_inline else end)
            actions.append({"do": "launch", "run": segments})
        else:
            host_until(event["begin_ns"])
            ends = [run["end_ns"] for run in runs.values() if run["end_ns"] <= end]
            actions.append({"do": "wait", "s": max(end - max([cursor, *ends]), 0) / 1e9})
        cursor = max(cursor, end)
    host_until(span[1])
    return actions


def shape(actions):
    """Equal for steps that do the same things, whatever their times and however far the kernels are known."""
    return tuple(action["do"] for action in actions)


def median_of(steps):
    """The step whose times are the medians of `steps`, which are of one shape."""
    if isinstance(steps[0], dict):
        return {key: median_of([step[key] for step in steps]) for key in steps[0]}
    if isinstance(steps[0], list):
        return [median_of(list(parts)) for parts in zip(*steps, strict=True)]
    return statistics.median(steps) if isinstance(steps[0], float) else steps[0]


def seconds_of(segments, is_compute=None):
    """Counts the segments that are compute, the others, or all."""
    return sum(one["s"] for one in segments if is_compute in (None, one["kind"] == "compute"))


def with_details(plain, detailed):
    """The plain step with the segments of the detailed one. To look at kernels takes time, so compute is scaled to that of the plain run. The scale has
    limits, since collectives may have waited for other ranks longer in one than in the other."""
    details = iter(action["run"] for action in detailed if action["do"] == "launch")
    return [{"do": "launch", "run": rescaled(next(details), seconds_of(action["run"]))} if action["do"] == "launch" else action for action in plain]


def rescaled(segments, whole):
    compute, others = seconds_of(segments, True), seconds_of(segments, False)
    scale = min(1.0, max(SLOWEST_LOOK, (whole - others) / compute)) if compute else 1.0
    return [{**one, "s": one["s"] * scale, "backward_s": one["backward_s"] * scale} if one["kind"] == "compute" else one for one in segments]


def kinds_of(actions):
    return tuple(one["kind"] for action in actions for one in action.get("run", []))


def spread(seconds):
    """Standard deviation of the logarithms, from the quartiles: few steps that another process disturbed do not decide."""
    low, _, high = statistics.quantiles([math.log(max(one, 1e-9)) for one in seconds], n=4)
    return (high - low) / 1.349


def step_of(plain, detailed):
    """The typical step, and the spread of its host time and of its compute."""
    counts = Counter(map(shape, plain)) & Counter(map(shape, detailed))
    if not counts:
        raise SystemExit("no two steps do the same things: record more steps")
    usual = counts.most_common(1)[0][0]
    plain, detailed = ([step for step in steps if shape(step) == usual] for steps in (plain, detailed))
    kinds = Counter(map(kinds_of, detailed)).most_common(1)[0][0]
    detailed = [step for step in detailed if kinds_of(step) == kinds]
    whole = [[without_kernels(action) for action in step] for step in plain]
    compute = [sum(seconds_of(action["run"], True) for action in step if action["do"] == "launch") for step in detailed]
    return {"actions": with_details(median_of(whole), median_of(detailed)), "used": [len(plain), len(detailed)],
            "host_sigma": spread([sum(action.get("s", 0.0) for action in step) for step in plain]), "compute_sigma": spread(compute)}  # fmt: skip


def without_kernels(action):
    """A run as one segment, since few runs of a plain timeline are looked into."""
    if action["do"] != "launch":
        return action
    return {"do": "launch", "run": [{"kind": "compute", "s": seconds_of(action["run"]), "backward_s": 0.0}]}


# ---- in the process of one rank


def wrapped(model, wrapper):
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    if wrapper == "DDP":
        return DistributedDataParallel(model)
    for module in model.modules():
        if isinstance(module, nn.ModuleList):
            for layer in module:
                fully_shard(layer)
    return fully_shard(model)


def local_bytes(tensors):
    tensors = [tensor.to_local() if hasattr(tensor, "to_local") else tensor for tensor in tensors if tensor is not None]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def process_peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def memory_of(model, optimizer, grown):
    """Bytes of this rank behind a step. `working` is the plugin's memory at its peak beyond the values that are alive, and no more than the process
    has `grown`: under DDP the plugin counts a bucket once for each gradient in it."""
    from torch.accelerator import memory

    parameters = list(model.parameters())
    state = [value for values in optimizer.state.values() for value in values.values() if hasattr(value, "numel")]
    parts = {"parameters": local_bytes(parameters), "gradients": local_bytes(p.grad for p in parameters), "optimizer": local_bytes(state)}
    alive = memory.memory_allocated()
    return {**parts, "other": max(alive - sum(parts.values()), 0), "working": max(min(memory.max_memory_reserved(), grown) - alive, 0),
            "plugin_peak": memory.max_memory_reserved(), "process_grown": grown}  # fmt: skip


def measure_case(name, wrapper, ranks, steps):
    import torch
    from distributed import workload

    import ltc

    before, parameters = process_peak(), 0

    def wrap(model):
        nonlocal parameters
        parameters = sum(parameter.numel() for parameter in model.parameters())
        return wrapped(model, wrapper)

    model, optimizer, step = workload(name, "ltc", wrap)

    def spans(count):
        times = []
        for _ in range(count):
            begin = time.perf_counter_ns()
            step()
            times.append((begin, time.perf_counter_ns()))
        return times

    def timeline(count, every_kernel):
        ltc._C.timeline_start(every_kernel)
        times = spans(count)
        found = ltc.timeline.collect()
        programs = {program["id"]: program["graph"] for program in found["programs"]}
        return [actions_of(span, found["events"], programs, ranks) for span in times]

    spans(WARM_UP)
    times, plain, detailed = [], [], []
    while len(times) < steps:  # in turns, so that a busy machine disturbs all three
        times += [(end - begin) / 1e9 for begin, end in spans(TURN)]
        plain += timeline(TURN, False)
        detailed += timeline(TURN, True)
    if torch.distributed.get_rank() != 0:
        return {}
    return {"model": name, "wrapper": wrapper, "ranks": ranks, "measured_s": statistics.median(times), "numbers": parameters,
            "memory": memory_of(model, optimizer, process_peak() - before), **step_of(plain, detailed)}  # fmt: skip


def measure_sweep(ranks, seconds=0.1):
    """(ranks, bytes, median seconds) of an all_reduce by Gloo alone."""
    import torch
    import torch.distributed as dist

    samples = []
    for size in SIZES:
        x, times = torch.zeros(size // 4), []
        for _ in range(max(5, min(200, int(seconds / (size / 1e9 + 1e-4))))):
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(x)
            times.append(time.perf_counter() - begin)
        samples.append((ranks, size, statistics.median(times)))
    return samples


def busy_seconds():
    """The times of all processors since the start of the machine, as Linux counts them."""
    with open("/proc/stat") as lines:
        user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, lines.readline().split()[1:9])
    return (user + nice + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK")


def measure(init, rank, ranks, steps, case):
    """In each rank's process. Rank 0 prints the record, with the share of the machine's processors that other programs used meanwhile."""
    import torch
    import torch.distributed as dist

    import ltc  # noqa: F401

    sys.path.insert(0, str(TESTS))
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo,ltc:ltc", init_method=init, rank=rank, world_size=ranks)
    dist.all_reduce(torch.zeros(1))
    began, busy, own = time.perf_counter(), busy_seconds(), time.process_time()
    found = {"samples": measure_sweep(ranks)} if case == SWEEP else measure_case(*case, ranks, steps)
    taken = torch.tensor(time.process_time() - own)
    dist.all_reduce(taken)
    others = (busy_seconds() - busy - taken.item()) / ((time.perf_counter() - began) * os.cpu_count())
    if rank == 0:
        print(json.dumps({**found, "others": max(others, 0.0)}))
    dist.destroy_process_group()


def record(ranks, steps, case):
    """Runs a case, (model, wrapper), or SWEEP in that many processes. Returns the record of rank 0."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"GLOO_SOCKET_IFNAME": "lo", **os.environ}
        arguments = [[f"file://{folder}/ranks", rank, ranks, steps, case] for rank in range(ranks)]
        processes = [subprocess.Popen([sys.executable, __file__, json.dumps(one)], env=environment, stdout=subprocess.PIPE, text=True) for one in arguments]
        try:
            outputs = [process.communicate()[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
    if any(process.returncode for process in processes):
        raise SystemExit(f"a rank of {ranks} failed: {case}")
    return json.loads(outputs[0].splitlines()[-1])


def record_quietly(ranks, steps, case, tries):
    """The record during which other programs used the processors least: the first of QUIET at most, or the best of that many tries."""
    best = None
    for _ in range(tries):
        found = record(ranks, steps, case)
        best = min(best or found, found, key=lambda one: one["others"])
        if best["others"] <= QUIET:
            break
    return best


if __name__ == "__main__":
    measure(*json.loads(sys.argv[1]))
