"""Snapshots of the device's memory: the history of its buffers, by line, in the format of PyTorch's memory viewer."""

import gc
import inspect
import pickle
import pickletools
import threading
import time
from collections import Counter

import pytest
import torch
from torch.cuda import _memory_viz

import ltc
from comparing import LTC, output_of

memory = torch.ltc.memory
HERE = "test_memory_snapshot.py"

# The opcodes that the viewer's own reader of pickles knows.
KNOWN_OPCODES = set("APPENDS BINGET BININT BININT1 BININT2 EMPTY_DICT EMPTY_LIST FRAME LONG1 LONG_BINGET MARK MEMOIZE PROTO SETITEMS "
                    "SHORT_BINUNICODE STOP TUPLE2 APPEND NEWFALSE BINPUT BINUNICODE EMPTY_TUPLE NEWTRUE NONE BINFLOAT TUPLE TUPLE1 TUPLE3 "
                    "LONG_BINPUT LIST DICT SETITEM".split())


@pytest.fixture
def history():
    """Records from here to the end of the test; gives the trace of what has happened, and the bytes held at the beginning."""
    gc.collect()  # of earlier tests
    ltc.sync()
    held = torch.ltc.memory_allocated()
    memory._record_memory_history(clear_history=True)

    def trace():
        ltc.sync()
        return memory._snapshot()["device_traces"][0]

    yield trace, held
    memory._record_memory_history(None)


def settles(condition):
    """Whether it comes true: the queue's thread lets go of a run's inputs a little after the run is over."""
    end = time.monotonic() + 5
    while not (is_so := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return is_so


def live_bytes(trace):
    """By address, of what came and did not go. Each step must be possible."""
    live = {}
    for entry in trace:
        if entry["action"] == "alloc":
            assert entry["addr"] not in live
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed" and entry["addr"] in live:
            assert live.pop(entry["addr"]) == entry["size"]
    return live


def net_bytes(trace):
    signs = {"alloc": 1, "free_completed": -1}
    return sum(signs.get(entry["action"], 0) * entry["size"] for entry in trace)


def lines(entries):
    return [(frame["filename"].rpartition("/")[2], frame["line"]) for entry in entries for frame in entry["frames"][:1]]


def line_here():
    return inspect.currentframe().f_back.f_lineno


def test_the_trace_sums_up_to_what_is_allocated(history):
    """A training loop: parameters uploaded, gradients and momentum made, parameters donated in each step."""
    trace, held = history
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).to(LTC)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(32, 64).to(LTC)).square().mean()
        loss.backward()
        optimizer.step()
        ltc.mark_step()
        entries = trace()
        assert sum(live_bytes(entries).values()) == net_bytes(entries)
        assert settles(lambda: net_bytes(trace()) == torch.ltc.memory_allocated() - held)
    entries = trace()  # once all is over
    segments = [one for one in memory.memory_snapshot() if one["device"] == 0]
    assert sum(one["total_size"] for one in segments) == torch.ltc.memory_allocated()
    addresses = {one["address"]: one["total_size"] for one in segments}
    assert live_bytes(entries).items() <= addresses.items()
    assert [entry["time_us"] for entry in entries] == sorted(entry["time_us"] for entry in entries)


def test_values_have_the_line_that_recorded_them(history):
    trace, _ = history
    uploaded = torch.arange(1000.0).to(LTC)
    computed = torch.full((300,), 2.0, device=LTC) * 3
    both = uploaded[:300] + computed; at_both = line_here()  # noqa: E702
    made = [entry for entry in trace() if entry["action"] == "alloc"]
    assert Counter(lines(made))[HERE, at_both] == 1
    assert {(HERE, at_both - 2), (HERE, at_both - 1)} <= set(lines(made))
    assert [entry["size"] for entry in made if lines([entry]) == [(HERE, at_both - 2)]] == [4000]
    assert both.sum().item() == sum(range(300)) + 300 * 6


def test_a_gradient_has_the_line_of_its_op(history):
    trace, _ = history
    weight = torch.ones(50, device=LTC, requires_grad=True)
    loss = weight.exp().sum(); at = line_here()  # noqa: E702
    loss.backward()
    trace()
    assert any(frame == {"filename": frame["filename"], "line": at, "name": "in its backward"}
               for one in memory.memory_snapshot() for frame in one["frames"]), memory.memory_snapshot()


def test_a_donated_buffer_ends_where_its_successor_begins(history):
    trace, held = history
    x = torch.ones(1000, device=LTC)
    ltc.mark_step()
    before = len(trace())
    x += 1
    ltc.mark_step()
    entries = [entry for entry in trace()[before:] if entry["size"] == 4000]
    assert [entry["action"] for entry in entries] == ["free_requested", "free_completed", "segment_free", "segment_alloc", "alloc"]
    assert entries[0]["addr"] != entries[-1]["addr"]
    assert torch.ltc.memory_allocated() - held == 4000 and x[0].item() == 2


def test_a_leak_is_found_by_its_line(history):
    history_of_losses = []
    weight = torch.ones(1000, device=LTC)
    for _ in range(10):
        loss = weight * 2
        history_of_losses.append(loss + 1); leak = line_here()  # noqa: E702
        ltc.mark_step()
    ltc.sync()
    bytes_by_line = Counter()
    for one in memory.memory_snapshot():
        for line in lines([one]):
            bytes_by_line[line] += one["total_size"]
    assert bytes_by_line.most_common(1) == [((HERE, leak), 40_000)]


def test_compiled_functions_have_lines(history):
    trace, _ = history

    def doubled(x):
        return x * 2

    def tripled(x):
        return x * 3

    functions = ltc.jit(doubled), torch.compile(tripled, backend="ltc")
    x = torch.ones(77, device=LTC)
    results = []
    for _ in range(3):
        results += [function(x) for function in functions]
        ltc.mark_step()
    trace()
    found = Counter(line for one in memory.memory_snapshot() if one["total_size"] == 77 * 4 for line in lines([one]))
    for function in (doubled, tripled):
        assert found[HERE, function.__code__.co_firstlineno + 1] == 3, found


def test_pytorchs_viewer_reads_it(history, tmp_path):
    trace, _ = history
    kept = [torch.ones(1000, device=LTC) * i for i in range(5)]
    torch.ones(3, device=LTC).tolist()
    torch.ones(0, 4, device=LTC).tolist()
    trace()
    memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    data = (tmp_path / "snapshot.pickle").read_bytes()
    assert {opcode.name for opcode, _, _ in pickletools.genops(data)} <= KNOWN_OPCODES
    snapshot = pickle.loads(data)
    assert "total_allocated" in _memory_viz.segsum(snapshot)
    assert "segments: " in _memory_viz.segsum(snapshot)
    assert "entries\n" in _memory_viz.trace(snapshot | {"segments": []})
    assert "snapshot.pickle" in _memory_viz.trace_plot(snapshot) and "snapshot.pickle" in _memory_viz.segment_plot(snapshot)
    flames = _memory_viz.memory(snapshot, format_flamegraph=str).splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in flames if HERE in line) >= 5 * 4000 and len(kept) == 5
    assert all(one["size"] > 0 for one in snapshot["device_traces"][0])
    _memory_viz.filter_alloc_free_pairs(snapshot)
    live = [entry for entry in snapshot["device_traces"][0] if entry["action"] == "alloc"]
    assert len(live) >= 5 and not any(entry["action"] == "free_requested" for entry in snapshot["device_traces"][0])


@pytest.mark.patch("memory_snapshot")
def test_the_accelerators_snapshot_is_the_devices(history):
    trace, _ = history
    x = torch.ones(1000, device=LTC)
    entries = trace()
    snapshot = torch.accelerator.memory._snapshot()
    assert snapshot["device_traces"][0] == entries != [] and x.numel() == 1000


def test_only_the_last_events_are_kept(history):
    memory._record_memory_history(max_entries=3, clear_history=True)
    for i in range(10):
        torch.ones(100 + i, device=LTC).sum().item()
    ltc.sync()
    snapshot = memory._snapshot()
    assert sum(entry["action"] in ("alloc", "free_completed") for entry in snapshot["device_traces"][0]) == 3
    memory._record_memory_history("state")
    x = torch.ones(55, device=LTC); at = line_here()  # noqa: E702
    ltc.sync()
    snapshot = memory._snapshot()
    assert snapshot["device_traces"][0] == []
    assert (HERE, at) in lines(one for one in snapshot["segments"] if one["total_size"] == 220) and x.numel() == 55
    with pytest.raises(ValueError, match="not 'some'"):
        memory._record_memory_history("some")


def test_without_history_there_are_segments_only():
    assert output_of("""
    import torch, ltc
    x = torch.ones(1000, device="ltc")
    ltc.sync()
    snapshot = torch.ltc.memory._snapshot()
    print(snapshot["device_traces"], [(one["total_size"], one["frames"]) for one in snapshot["segments"]])
    torch.ltc.memory._record_memory_history()
    del x
    y = torch.ones(2000, device="ltc")
    ltc.sync()
    print([(entry["action"], entry["size"]) for entry in torch.ltc.memory._snapshot()["device_traces"][0] if "segment" not in entry["action"]])
    torch.ltc.memory._record_memory_history(None)
    z = torch.ones(3000, device="ltc")
    ltc.sync()
    print(len(torch.ltc.memory._snapshot()["device_traces"][0]))
    """) == ("[[]] [(4000, [])]\n"
             "[('free_requested', 4000), ('free_completed', 4000), ('alloc', 8000)]\n"
             "5\n")


def test_two_devices_have_a_trace_each():
    assert output_of("""
    import torch, ltc
    torch.ltc.memory._record_memory_history()
    x = torch.ones(1000, device="ltc:1")
    ltc.sync()
    snapshot = torch.ltc.memory._snapshot()
    print([len(trace) for trace in snapshot["device_traces"]], [one["device"] for one in snapshot["segments"]])
    """, LTC_BACKEND="torchscript;torchscript") == "[0, 2] [1]\n"


def test_a_snapshot_is_of_one_moment(history):
    """Buffers come and go in other threads meanwhile."""
    _, held = history

    def steps():
        x = torch.ones(1000, device=LTC)
        for _ in range(200):
            y = [x * i for i in range(5)]
            x = y[1] + torch.ones(1000).to(LTC)
            ltc.mark_step()

    threads = [threading.Thread(target=steps) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        snapshot = memory._snapshot()
        assert sum(one["total_size"] for one in snapshot["segments"]) == held + net_bytes(snapshot["device_traces"][0])


def test_a_refused_request_is_in_the_trace(history):
    trace, _ = history
    torch.ltc.reset_accumulated_memory_stats()
    x = torch.ones(1 << 50, device=LTC); at = line_here()  # noqa: E702
    with pytest.raises(RuntimeError, match="the program's values hold"):
        (x[0] + x[1]).item()
    refused = [entry for entry in trace() if entry["action"] == "oom"]  # the program, and then its first op alone
    assert lines(refused) == 2 * [(HERE, at)] and refused[1]["size"] == 4 << 50 and all("device_free" in entry for entry in refused), refused
    stats = torch.accelerator.memory_stats()
    assert (stats["num_ooms"], stats["num_alloc_retries"]) == (2, 2)


# ---- torch.accelerator.memory


def test_an_upload_is_one_allocation():
    ltc.sync()
    torch.ltc.reset_accumulated_memory_stats()
    x = torch.arange(1 << 18).to(LTC)
    ltc.sync()
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.allocated"] == 8 << 18 and stats["num_device_alloc"] == 1 and x.dtype == torch.int64


def test_bytes_are_those_of_the_type_that_the_device_keeps():
    assert output_of("""
    import torch, ltc
    x = torch.ones(1000, device="ltc") + torch.arange(1000.0).to("ltc")
    ltc.sync()
    print(x.dtype, torch.accelerator.memory_allocated())
    """, LTC_USE_BF16="1") == "torch.float32 2000\n"


def test_the_peak_of_reserved_memory_can_be_reset():
    assert output_of("""
    import torch, ltc
    x = torch.ones(1 << 20, device="ltc") + 1
    ltc.sync()
    peak = torch.accelerator.max_memory_reserved()
    del x
    ltc.sync()
    torch.accelerator.reset_peak_memory_stats()
    print(peak >= 4 << 20, torch.accelerator.max_memory_reserved() < 1 << 20, torch.accelerator.max_memory_allocated())
    x = torch.ones(1 << 19, device="ltc") + 1
    ltc.sync()
    print(torch.accelerator.max_memory_reserved() >= 2 << 20, torch.accelerator.max_memory_allocated())
    y = torch.ones(1 << 22, device="ltc") + 1
    ltc.sync()
    print(torch.accelerator.max_memory_reserved() >= 18 << 20)
    """) == "True True 0\nTrue 2097152\nTrue\n"


def test_all_of_the_accelerators_memory_answers(history):
    trace, held = history
    x = torch.ones(1000, device=LTC)
    trace()
    for name in torch.accelerator.memory.__all__:
        getattr(torch.accelerator.memory, name)()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    assert torch.accelerator.memory_allocated() == torch.accelerator.memory_stats()["active_bytes.all.current"] == held + 4000
    assert torch.accelerator.memory_stats(LTC) == torch.ltc.memory_stats(0) == torch.accelerator.memory_stats() and x.numel() == 1000
