"""The simulation of many ranks: costs by hand, steps whose times are known, and steps that real processes recorded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
sys.path.insert(0, str(BENCH))

from cost_model import RING, Link, Network, cost, costs, crowded, fit_link, on_link, one_link  # noqa: E402
from recorded_steps import collectives_of, record, spread  # noqa: E402
from simulated_ranks import Options, in_buckets, memory_at, simulate  # noqa: E402

LINK = Link(alpha=1.0, beta=10.0)
NEAR = one_link("near", LINK)
EVEN = {"host_sigma": 0.0, "compute_sigma": 0.0}


def step(*actions, **record):
    return {"actions": list(actions), **EVEN, **record}


def host(seconds):
    return {"do": "host", "s": seconds}


def launch(*segments):
    return {"do": "launch", "run": list(segments)}


def compute(seconds, backward=0.0):
    return {"kind": "compute", "s": seconds, "backward_s": backward}


def collective(kind, size):
    return {"kind": kind, "bytes": size, "s": 0.0}


WAIT = {"do": "wait", "s": 0.0}
SERIAL = Options(overlapped=False)


@pytest.mark.parametrize("algorithm, kind, expected", [
    ("ring", "all_reduce", 2 * 3 * (1 + 40 / (4 * 10))), ("ring", "all_gather", 3 * (1 + 1)), ("ring", "reduce_scatter", 3 * (1 + 1)),
    ("tree", "all_reduce", 2 * 2 * (1 + 4)), ("tree", "broadcast", 2 * (1 + 4)), ("halving", "all_reduce", 2 * 2 + 2 * 3 / 4 * 4),
    ("halving", "all_gather", 2 + 3), ("tree", "all_gather", 3 * (1 + 1)),
])  # fmt: skip
def test_costs_by_hand(algorithm, kind, expected):
    """Four ranks, 40 bytes. An algorithm that does not know a collective leaves it to the ring."""
    assert cost(kind, 40, 4, NEAR, algorithm) == pytest.approx(expected)
    assert cost(kind, 40, 1, NEAR, algorithm) == 0


def test_the_best_algorithm_depends_on_the_size():
    """Small messages need few rounds. Large ones need a ring where a node has one link, since halving sends through it for eight ranks at once."""
    shared = Network("shared", Link(1e-6, 1e11), Link(1e-5, 1e9, is_shared=True), per_node=8)

    def order(size):
        return sorted(["ring", "halving"], key=lambda name: cost("all_reduce", size, 64, shared, name))

    assert (order(1)[0], order(1e9)[0]) == ("halving", "ring")
    assert cost("all_reduce", 1e9, 64, shared) <= cost("all_reduce", 1e9, 64, shared, "ring")


def test_two_levels():
    """Two nodes of two: within a node a ring of 2 ranks, between nodes one of 2 nodes, of half the bytes through each rank's own link."""
    network = Network("two", LINK, Link(2.0, 5.0), per_node=2)
    levels = on_link(RING, "all_reduce", 40, 2, network.within) + on_link(RING, "all_reduce", 20, 2, network.between)
    assert costs("all_reduce", 40, 4, network)["two levels"] == pytest.approx(levels) == pytest.approx(6 + 8)


def test_a_fit_finds_the_link_of_its_samples():
    link = Link(2e-4, 1.5e9)
    samples = [(n, size, cost("all_reduce", size, n, one_link("x", crowded(link, n, 2)), "ring")) for n in (2, 4) for size in (64, 65536, 1 << 24)]
    found = fit_link(samples, cores=2)
    assert (found.alpha, found.beta) == (pytest.approx(link.alpha), pytest.approx(link.beta))


def test_lanes_without_overlap():
    """One rank after the other: host, compute, collective, compute. The parts of the step are shares of the device's time."""
    outcome = simulate(step(host(3.0), launch(compute(2.0), collective("all_reduce", 40), compute(1.0)), WAIT), 2, NEAR, SERIAL)
    transfer = 2 * (1 + 40 / 20)
    assert outcome.step_s == pytest.approx(3 + 2 + transfer + 1)
    assert outcome.communication * outcome.step_s == pytest.approx(transfer)
    assert (outcome.host * outcome.step_s, outcome.compute * outcome.step_s, outcome.stragglers) == (pytest.approx(3), pytest.approx(3), pytest.approx(0))


def test_an_all_reduce_runs_beside_the_backward_behind_it():
    """The first of two all_reduces takes 6 s of the 5 s of backward; only the optimizer at the end needs both."""
    actions = step(launch(compute(2.0), collective("all_reduce", 40), compute(5.0), collective("all_reduce", 40), compute(1.0)), WAIT)
    assert simulate(actions, 2, NEAR, SERIAL).step_s == pytest.approx(2 + 6 + 5 + 6 + 1)
    assert simulate(actions, 2, NEAR).step_s == pytest.approx(2 + 6 + 6 + 1)


def test_an_all_gather_begins_one_compute_early():
    actions = step(launch(compute(4.0), collective("all_gather", 40), compute(1.0)), WAIT)
    assert simulate(actions, 2, NEAR, SERIAL).step_s == pytest.approx(4 + 3 + 1)
    assert simulate(actions, 2, NEAR).step_s == pytest.approx(4 + 1)


def test_a_script_that_reads_nothing_hides_its_host_time():
    actions = step(host(3.0), launch(compute(4.0)), WAIT)
    assert simulate(actions, 1, NEAR).step_s == pytest.approx(7)
    assert simulate(actions, 1, NEAR, Options(is_read=False)).step_s == pytest.approx(4)
    assert simulate(actions, 1, NEAR, Options(is_read=False, faster_device=4)).step_s == pytest.approx(3)


def test_stragglers_cost_more_with_more_ranks():
    actions = step(host(1.0), launch(compute(10.0), collective("all_reduce", 0)), WAIT, compute_sigma=0.1)
    few, many = (simulate(actions, ranks, one_link("free", Link(0.0, 1.0))) for ranks in (2, 256))
    assert many.step_s > few.step_s > 11
    assert many.stragglers > few.stragglers > 0
    assert sum([many.compute, many.communication, many.stragglers, many.host]) == pytest.approx(1)


def test_buckets_keep_bytes_and_compute():
    actions = [launch(compute(6.0, backward=4.0), collective("all_reduce", 10), compute(1.0))]
    (action,) = in_buckets(actions, 4.0)
    assert [one["kind"] for one in action["run"]] == ["compute", *["compute", "all_reduce"] * 3, "compute"]
    assert sum(one.get("bytes", 0) for one in action["run"]) == pytest.approx(10)
    assert sum(one["s"] for one in action["run"]) == pytest.approx(7)
    assert in_buckets(actions, 10) == actions


def test_memory_per_rank():
    parts = {"parameters": 8, "gradients": 8, "optimizer": 8, "other": 5, "working": 7}
    assert memory_at({"memory": parts, "wrapper": "DDP", "ranks": 1}, 1024) == 36
    assert memory_at({"memory": parts, "wrapper": "FSDP2", "ranks": 2}, 4) == 24


def test_a_few_disturbed_steps_do_not_widen_the_spread():
    assert spread([1.0] * 20 + [100.0]) == 0
    assert collectives_of('  %3: f32[784], %4: u8[1] = ltc_c10d::reduce_scatter(%0, %1) {op="sum", group=1}', 2) == [("reduce_scatter", 2 * 4 * 784)]
    halves = '%3: f32[4], %4: u8[1] = ltc_c10d::all_reduce_start(%0, %1) {op="sum", group=1}\n%5: f32[4] = ltc_c10d::wait(%3) {group=1}'
    assert collectives_of(halves, 2) == [("all_reduce", 16)]


def test_recorded_steps_have_the_collectives_of_the_wrapper():
    """Two processes: DDP reduces each gradient once; fully_shard gathers each layer for forward and backward, and scatters its gradients."""
    ddp, fsdp = record(2, 5, ("mnist64", "DDP")), record(2, 5, ("GPT-2", "FSDP2"))
    segments = [[one for action in case["actions"] for one in action.get("run", []) if one["kind"] != "compute"] for case in (ddp, fsdp)]
    assert {one["kind"] for one in segments[0]} == {"all_reduce"}
    assert sum(one["bytes"] for one in segments[0]) == ddp["memory"]["gradients"] == 4 * ddp["numbers"]
    assert {one["kind"] for one in segments[1]} == {"all_gather", "reduce_scatter"}
    assert sum(one["bytes"] for one in segments[1] if one["kind"] == "reduce_scatter") == 4 * fsdp["numbers"] == 2 * fsdp["memory"]["gradients"]


def test_the_program_records_once_and_replays(tmp_path):
    def run(*flags):
        return subprocess.run([sys.executable, BENCH / "scaling.py", *flags, "GPT-2/DDP"], capture_output=True, text=True, timeout=300, check=True).stdout

    recorded = run("--steps", "5", "--json", str(tmp_path / "all.json"))
    found = json.loads((tmp_path / "all.json").read_text())
    assert [row["ranks"] for row in found["check"]] == [1, 2, 4]
    assert [row["ranks"] for row in found["scale"][0]["rows"]] == [1 << power for power in range(11)]
    assert len(found["scale"]) == len(found["findings"]) == 3
    assert run("--replay", str(tmp_path / "all.json")) == recorded
