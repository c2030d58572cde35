"""Replays a recorded step on many ranks as a simulation of discrete events.

Each rank has a lane of the host, which records, and a lane of the device, which computes. All ranks share a lane of collectives, since each collective
here is one of all ranks: it begins when the last rank has arrived. A time is a vector with one number per rank.
"""

import math
from dataclasses import dataclass

import numpy

from cost_model import cost

STEPS, DROPPED = 64, 4
AHEAD = 2  # steps that the host may be ahead of the device


@dataclass(frozen=True)
class Options:
    """overlapped: collectives run beside the compute that does not need them, as in the plugin torchscript. is_read: the script reads the loss in each
    step.
    slowdown: of host and compute, where ranks share cores. has_jitter: times vary as in the recorded steps."""

    overlapped: bool = True
    is_read: bool = True
    algorithm: str = "best"
    slowdown: float = 1.0
    faster_device: float = 1.0
    has_jitter: bool = True


@dataclass
class Outcome:
    """step_s: median seconds of a step. The others are the parts of the device's time, 1 together: it computes, the link transfers, this rank waits
    for a later one, or the host has nothing ready."""

    step_s: float
    compute: float
    communication: float
    stragglers: float
    host: float


def in_buckets(actions, size):
    """The step whose all_reduces have at most `size` bytes. The backward before one is cut into equal parts, each of which ends with its share."""
    return [{**action, "run": run_in_buckets(action["run"], size)} if action["do"] == "launch" else action for action in actions]


def run_in_buckets(run, size):
    result = []
    for segment in run:
        parts = math.ceil(segment["bytes"] / size) if segment["kind"] == "all_reduce" else 1
        if parts == 1:
            result.append(segment)
            continue
        compute = result.pop()
        backward = min(compute["backward_s"], compute["s"])
        result.append({**compute, "s": compute["s"] - backward, "backward_s": 0.0})
        for _ in range(parts):
            result.append({**compute, "s": backward / parts, "backward_s": backward / parts})
            result.append({**segment, "bytes": segment["bytes"] / parts})
    return result


class Ranks:
    def __init__(self, record, ranks, network, options, seed=0):
        self.record, self.ranks, self.network, self.options = record, ranks, network, options
        self.random = numpy.random.default_rng(seed)
        self.host = numpy.zeros(ranks)  # until when each lane is busy
        self.device = numpy.zeros(ranks)
        self.began = numpy.zeros(ranks)  # the compute before
        self.link = 0.0
        self.awaited = []  # (last arrival, end) of collectives whose results the next compute needs,
        self.awaited_last = []  # and of those whose results only the last compute of a step needs
        self.spent = dict.fromkeys(["compute", "communication", "stragglers"], 0.0)

    def factors(self, sigma):
        """One per rank, for a step: log-normal with the median 1."""
        return self.random.lognormal(0.0, sigma if self.options.has_jitter else 0.0, self.ranks) * self.options.slowdown

    def step(self):
        actions = self.record["actions"]
        host, device = self.factors(self.record["host_sigma"]), self.factors(self.record["compute_sigma"]) / self.options.faster_device
        last = max((i for i, action in enumerate(actions) if action["do"] == "launch"), default=None)
        last_wait = max((i for i, action in enumerate(actions) if action["do"] == "wait"), default=None)
        for i, action in enumerate(actions):
            if action["do"] == "host":
                self.host = self.host + action["s"] * host
            elif action["do"] == "launch":
                self.run(action["run"], device, i == last)
            elif self.options.is_read or i != last_wait:
                self.host = numpy.maximum(self.host, self.device) + action["s"] * host

    def run(self, segments, factors, is_last):
        for i, segment in enumerate(segments):
            if segment["kind"] == "compute":
                self.compute(segment["s"] * factors, is_last and i == len(segments) - 1)
            else:
                self.collective(segment["kind"], segment["bytes"])
        if is_last:
            self.compute(0.0, True)  # the step's end needs all results

    def compute(self, seconds, needs_all):
        ready = numpy.maximum(self.device, self.host)
        waits_for = self.awaited + (self.awaited_last if needs_all else [])
        self.awaited, self.awaited_last = [], [] if needs_all else self.awaited_last
        for arrived, done in waits_for:
            late = numpy.clip(arrived - ready, 0, None)
            waited = numpy.clip(done - ready, 0, None)
            self.spend("stragglers", late)
            self.spend("communication", waited - late)
            ready = ready + waited
        self.spend("compute", seconds)
        self.began, self.device = ready, ready + seconds

    def collective(self, kind, size):
        """An all_gather of parameters needs no compute before it, so that it can begin one compute early."""
        is_early = self.options.overlapped and kind == "all_gather"
        arrived = float(numpy.maximum(self.began if is_early else self.device, self.host).max())
        self.link = max(arrived, self.link) + cost(kind, size, self.ranks, self.network, self.options.algorithm)
        waits_later = self.options.overlapped and kind in ("all_reduce", "reduce_scatter")
        (self.awaited_last if waits_later else self.awaited).append((arrived, self.link))
        if not self.options.overlapped:
            self.compute(0.0, False)

    def spend(self, part, seconds):
        self.spent[part] += float(numpy.mean(seconds))


def simulate(record, ranks, network, options=Options(), seed=0):
    """`record`: of recorded_steps.record()'s cases."""
    all_ranks = Ranks(record, ranks, network, options, seed)
    ends, device_ends = [0.0], []
    for _ in range(STEPS):
        if not options.is_read and len(device_ends) >= AHEAD:
            all_ranks.host = numpy.maximum(all_ranks.host, device_ends[-AHEAD])
        if len(ends) == DROPPED + 1:
            all_ranks.spent = dict.fromkeys(all_ranks.spent, 0.0)
        all_ranks.step()
        device_ends.append(all_ranks.device)
        ends.append(float(max(all_ranks.host.max(), all_ranks.device.max())))
    spent = {part: seconds / (ends[-1] - ends[DROPPED]) for part, seconds in all_ranks.spent.items()}
    return Outcome(float(numpy.median(numpy.diff(ends[DROPPED:]))), **spent, host=max(0.0, 1 - sum(spent.values())))


def memory_at(record, ranks):
    """Bytes of each rank: fully_shard divides parameters, gradients and optimizer state among the ranks."""
    memory = record["memory"]
    divided = sum(memory[part] for part in ("parameters", "gradients", "optimizer"))
    share = record["ranks"] / ranks if record["wrapper"] == "FSDP2" else 1.0
    return divided * share + memory["other"] + memory["working"]
