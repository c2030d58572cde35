"""The program and the device work at the same time: barriers return early, the queue is bounded, errors wait for a reader."""

import threading
import time

import pytest
import torch

import ltc
from comparing import LTC, output_of


def heavy_chain(x, count=8):
    for _ in range(count):
        x = x @ x
        x = x / x.norm()
    return x


@pytest.fixture
def matrix():
    x = torch.randn(600, 600, device=LTC)
    heavy_chain(x).sum().item()  # compiled from here on
    ltc.sync()
    return x


def spans_of(run):
    """The timeline of what the function does and all that it queues."""
    ltc.wait_device_ops()
    ltc.timeline.start()
    try:
        run()
        ltc.wait_device_ops()
    finally:
        spans = ltc.timeline.stop()
    return spans


def named(spans, name):
    return {span["run"]: span for span in spans if span["name"] == name}


def test_barrier_returns_before_the_step_has_run(matrix):
    def run():
        kept = heavy_chain(matrix)
        ltc.mark_step()
        run.kept = kept

    spans_of(run)  # finds the program of exactly this step
    spans = spans_of(run)
    barriers, executions = named(spans, "barrier"), named(spans, "execute")
    (number,) = executions
    assert barriers[number]["end_ns"] < executions[number]["end_ns"]
    assert barriers[number]["thread"] != executions[number]["thread"]
    assert executions[number]["end_ns"] - executions[number]["begin_ns"] > 4 * (
        barriers[number]["end_ns"] - barriers[number]["begin_ns"])


def test_recording_overlaps_running(matrix):
    """The second step's barrier begins while the first step runs."""
    kept = []

    def run():
        for _ in range(2):
            kept.append(heavy_chain(matrix))
            ltc.mark_step()

    spans_of(run)
    spans = spans_of(run)
    barriers, executions = named(spans, "barrier"), named(spans, "execute")
    first, second = sorted(executions)
    assert barriers[second]["begin_ns"] < executions[first]["end_ns"]


def test_window_bounds_the_queue(matrix):
    """The steps in flight when a barrier ends take no more than the 0.1 s that a program may be ahead, and are two at least."""
    kept = []

    def run():
        for _ in range(16):
            kept.append(heavy_chain(matrix, 16))
            ltc.mark_step()

    first = spans_of(run)
    spans = spans_of(run)
    barriers, executions = named(spans, "barrier"), named(spans, "execute")
    assert len(executions) == 16
    shortest = min(span["end_ns"] - span["begin_ns"] for span in [*named(first, "execute").values(), *executions.values()])
    most = 2 + 100_000_000 // shortest  # a run is expected to take a little less than its span
    on_their_way = [sum(span["end_ns"] > barrier["end_ns"] for number, span in executions.items() if number <= step)
                    for step, barrier in barriers.items()]  # fmt: skip
    assert 2 <= max(on_their_way) <= most < 16


def test_runs_keep_their_order(matrix):
    kept = []

    def run():
        for _ in range(4):
            kept.append(heavy_chain(matrix, 1))
            ltc.mark_step()

    executions = named(spans_of(run), "execute")
    ends = [executions[number]["end_ns"] for number in sorted(executions)]
    assert ends == sorted(ends)


def test_timeline_file(matrix, tmp_path):
    import json

    ltc.timeline.start()
    heavy_chain(matrix, 1).sum().item()
    spans = ltc.timeline.stop(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == len(spans)
    assert {"barrier", "execute", "download"} <= {event["name"] for event in events}
    heavy_chain(matrix, 1).sum().item()
    assert ltc.timeline.stop() == []


def test_wait_device_ops(matrix):
    kept = heavy_chain(matrix, 30)
    ltc.mark_step()
    ltc.wait_device_ops()
    begin = time.monotonic()
    ltc.wait_device_ops()
    assert time.monotonic() - begin < 0.05
    assert kept.isfinite().all()


def test_wait_runs_nothing_that_is_only_recorded(metrics):
    x = torch.ones(3, device=LTC) + 1
    ltc.wait_device_ops()
    assert metrics.counter_value("ProgramRuns") == 0
    ltc.sync()
    assert metrics.counter_value("ProgramRuns") == 1 and x.tolist() == [2, 2, 2]


def test_sync_with_and_without_waiting(matrix):
    kept = heavy_chain(matrix)
    ltc.sync(wait=False)
    ltc.sync("ltc:0")
    ltc.sync(0)
    torch.ltc.synchronize()
    torch.accelerator.synchronize()
    assert kept.isfinite().all()


def test_empty_barriers_run_nothing(metrics):
    for _ in range(5):
        ltc.mark_step()
    assert metrics.counter_value("ProgramRuns") == 0


def test_dead_values_are_not_computed(metrics):
    x = torch.ones(3, device=LTC)
    for _ in range(10):
        x * 2 + 1  # nobody holds it
    y = x + 1
    graph = ltc.graph()
    assert "aten::mul" not in graph and graph.count("aten::add") == 1
    assert y.tolist() == [2, 2, 2]


def test_error_rides_to_the_reader():
    """The run fails; queueing it does not."""
    table = torch.randn(3, 2).to(LTC)  # not made by the program that fails
    bad = torch.nn.functional.embedding(torch.tensor([5], device=LTC), table)
    ltc.mark_step()
    dependent = bad * 2
    ltc.mark_step()
    for reader in (bad, bad, dependent):
        with pytest.raises(IndexError, match="index out of range"):
            reader.cpu()
    assert (table * 0).sum().item() == 0


def test_error_of_an_overwritten_value_is_gone():
    table = torch.randn(3, 2).to(LTC)  # not made by the program that fails
    bad = torch.nn.functional.embedding(torch.tensor([5], device=LTC), table)
    ltc.mark_step()
    bad.copy_(torch.ones(1, 2))
    assert bad.tolist() == [[1, 1]]


def test_unread_error_does_no_harm():
    table = torch.randn(3, 2).to(LTC)  # not made by the program that fails
    bad = torch.nn.functional.embedding(torch.tensor([5], device=LTC), table)
    ltc.mark_step()
    ltc.wait_device_ops()
    del bad
    assert (table * 0 + 1).sum().item() == 6


def test_freeing_a_tensor_whose_run_is_queued(matrix):
    for _ in range(5):
        kept = heavy_chain(matrix)
        ltc.mark_step()
        del kept
    ltc.wait_device_ops()
    assert matrix.isfinite().all()


def test_source_may_change_after_the_copy_was_queued(matrix):
    source = torch.ones(1000)
    ltc.mark_step()
    kept = heavy_chain(matrix)
    ltc.mark_step()
    copied = source.to(LTC, non_blocking=True)
    source.zero_()
    assert copied.sum().item() == 1000 and kept.isfinite().all()


def test_other_python_threads_run_while_the_device_is_waited_for(matrix):
    """Barriers and reads release the GIL."""
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        begin = time.monotonic()
        heavy_chain(matrix, 60).sum().item()
        end = time.monotonic()
    finally:
        done.set()
        thread.join()
    assert sum(begin < t < end for t in ticks) > (end - begin) / 0.05


def test_exit_with_work_in_the_queue():
    program = """
    import torch, ltc
    x = torch.randn(400, 400, device="ltc")
    for _ in range(6):
        x = (x @ x) / (x @ x).norm()
        ltc.mark_step()
    print("end")
    """
    for _ in range(3):
        assert output_of(program) == "end\n"
