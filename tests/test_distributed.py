"""The process group of the device, between processes: collectives are recorded, and ranks that do not answer are told of."""

import json
import re
import tempfile
import time

import pytest

from collective_forms import COLLECTIVES
from ranks import ended, run_ranks, start_ranks
from slow_link import DEVICE, can_make_links, slow_link

@pytest.mark.parametrize("ranks", [2, 4])
def test_all_collectives_give_the_bits_of_gloo(ranks):
    assert run_ranks(COLLECTIVES, ranks) == [[]] * ranks


def test_a_plugin_without_collectives_has_the_hosts():
    results = run_ranks("""
        x = torch.arange(6.0).to("ltc") + RANK
        dist.all_reduce(x)
        y = (x * 2).sum()
        print(json.dumps([y.item(), sorted({one["op"] for one in ltc.metrics.fallbacks()})]))
    """, LTC_BACKEND="opencl")  # fmt: skip
    assert results == [[72.0, ["ltc_c10d::all_reduce"]]] * 2


def test_means_and_factors():
    results = run_ranks("""
        x, y, z = (torch.tensor([1.0, 3.0]).to("ltc") * (RANK + 1) for _ in range(3))
        dist.all_reduce(x, dist.ReduceOp.AVG)
        dist.all_reduce(y, dist._make_nccl_premul_sum(0.5)) if hasattr(dist, "_make_nccl_premul_sum") else dist.all_reduce(y.mul_(0.5))
        out = torch.zeros(1).to("ltc")
        dist.reduce_scatter_tensor(out, z, dist.ReduceOp.AVG)
        print(json.dumps([x.tolist(), y.tolist(), out.tolist()]))
    """)
    assert results == [[[1.5, 4.5], [1.5, 4.5], [1.5]], [[1.5, 4.5], [1.5, 4.5], [4.5]]]


def test_collectives_are_recorded_and_keep_their_order():
    """No barrier, one program, and the ranks need not read the same results."""
    results = run_ranks("""
        x = torch.ones(4).to("ltc")
        ltc.sync()
        ltc.metrics.reset()
        works = []
        for i in range(6):
            y = x * (i + RANK)
            works.append((dist.all_reduce(y, async_op=True), y))
        value = None
        if RANK == 0:
            value = works[3][1].sum()  # rank 1 reads none of them
        del works, y
        ltc.mark_step()
        names = ("UncachedCompile", "MarkStep", "ReadBarrier", "FallbackBarrier", "ProgramRuns")
        ltc.sync()
        print(json.dumps([[ltc.metrics.counter_value(name) for name in names], None if value is None else value.item()]))
    """)
    assert results == [[[1, 2, 0, 0, 1], 28.0], [[1, 2, 0, 0, 1], None]]


def test_messages_between_two():
    results = run_ranks("""
        x = torch.full((3,), 5.0 + RANK).to("ltc")
        received = torch.zeros(3).to("ltc")
        ops = [dist.P2POp(dist.isend, x * 2, 1 - RANK), dist.P2POp(dist.irecv, received, 1 - RANK)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        work = dist.irecv(y := torch.zeros(2).to("ltc"), 1 - RANK, tag=3)
        dist.send(torch.ones(2).to("ltc") * RANK, 1 - RANK, tag=3)
        work.wait()
        objects = [None] * RANKS
        dist.all_gather_object(objects, {"rank": RANK})
        dist.barrier()
        print(json.dumps([received.tolist(), y.tolist(), objects]))
    """, backend="ltc")  # fmt: skip
    both = [{"rank": 0}, {"rank": 1}]
    assert results == [[[12.0] * 3, [1.0] * 2, both], [[10.0] * 3, [0.0] * 2, both]]


def test_groups_of_some_ranks():
    results = run_ranks("""
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3]), dist.new_group([0, 2, 3])]
        found = []
        for group in groups:
            x = torch.ones(2).to("ltc") * (RANK + 1)
            if dist.get_rank(group) >= 0:
                dist.all_reduce(x, group=group)
            found.append(x[0].item())
        print(json.dumps(found))
    """, 4)  # fmt: skip
    assert results == [[3, 1, 8], [3, 2, 2], [3, 7, 8], [4, 7, 8]]


def test_collectives_run_beside_computing():
    """The program starts each as soon as its bucket is there, and waits where the optimizer reads it."""
    program = """
        torch.manual_seed(0)
        model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(4)]).to("ltc")
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(8, 32).to("ltc")
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        ltc.sync()
        print(0)
    """
    with tempfile.TemporaryDirectory() as folder:
        (_, log, status), _ = ended(start_ranks(program, 2, folder, each=[{"LTC_LOG": "debug"}, {}]))
    assert status == 0, log[-3000:]
    last = log[log.rindex("] graph(") : log.rindex("step 0 on the device")]
    nodes = re.findall(r"= (aten::mm|aten::addmm|ltc_c10d::all_reduce_start|ltc_c10d::wait)\(", last)
    starts = [i for i, node in enumerate(nodes) if node.endswith("_start")]
    waits = [i for i, node in enumerate(nodes) if node.endswith("wait")]
    assert len(starts) == len(waits) >= 4
    assert starts[-1] < waits[0]
    assert any("mm" in node for node in nodes[starts[0] : starts[-1]])  # backward of earlier layers


def test_a_rank_that_leaves_the_group_has_taken_part():
    """The source of a broadcast reads no result, so nothing else ends its step."""
    program = """
        x = torch.full((3,), RANK + 1.0).to("ltc")
        dist.broadcast(x, 0)
        if RANK == 0:
            dist.destroy_process_group()
            print(0)
        else:
            print(json.dumps(x.tolist()))
    """
    assert run_ranks(program) == [0, [1.0] * 3]


@pytest.mark.parametrize("backend", ["ltc", "cpu:gloo,ltc:ltc"])
def test_a_group_ends_without_a_warning(backend):
    program = """
        dist.all_reduce(torch.ones(3).to("ltc"))
        dist.destroy_process_group()
    """
    with tempfile.TemporaryDirectory() as folder:
        results = ended(start_ranks(program, 2, folder, backend=backend))
    assert [(status, errors) for _, errors, status in results] == [(0, "")] * 2


def test_a_captured_function_has_no_collectives():
    program = """
        @ltc.jit
        def total(x):
            dist.all_reduce(x)
            return x.sum()

        try:
            total(torch.ones(3).to("ltc"))
        except RuntimeError as error:
            print(json.dumps("a collective was called" in str(error)))
    """
    assert run_ranks(program) == [True] * 2


def test_a_coalesced_reduction_is_one_collective():
    program = """
        ones = [torch.ones(n).to("ltc") for n in (2, 3, 4)]
        dist.all_reduce_coalesced(ones)
        recorded = ltc._C.graph_text(0).count("ltc_c10d::all_reduce(")
        print(json.dumps([recorded, [one.tolist() for one in ones]]))
    """
    assert run_ranks(program) == [[1, [[2.0] * 2, [2.0] * 3, [2.0] * 4]]] * 2


def test_a_failed_run_leaves_the_group_usable():
    """One rank's step ends between the start of a collective and the wait for it."""
    program = """
        def step(index):
            x = torch.ones(3).to("ltc")
            dist.all_reduce(x)
            rows = torch.arange(6.0).reshape(3, 2).to("ltc")[torch.tensor([index]).to("ltc")]
            return (x.sum() + rows.sum()).item()

        failed = False
        try:
            step(9 if RANK == 0 else 1)
        except IndexError:
            failed = True
        print(json.dumps([failed, step(1)]))
    """
    assert run_ranks(program) == [[True, 11.0], [False, 11.0]]


@pytest.mark.skipif(not can_make_links(), reason="needs root, /dev/net/tun and the command ip")
def test_over_a_slow_link_the_bits_are_the_same():
    program = """
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4).double().to("ltc"), bucket_cap_mb=0.0001)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(8, 16, dtype=torch.double, generator=torch.Generator().manual_seed(RANK)).to("ltc")
        for _ in range(4):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(json.dumps(loss.item()))
    """
    with slow_link(delay_ms=10) as within:
        assert run_ranks(program, within=within, GLOO_SOCKET_IFNAME=DEVICE) == run_ranks(program)


@pytest.mark.skipif(not can_make_links(), reason="needs root, /dev/net/tun and the command ip")
def test_a_link_that_is_cut_is_seen_in_time():
    program = """
        import datetime, subprocess
        group = dist.new_group(timeout=datetime.timedelta(seconds=4))
        x = torch.ones(3).to("ltc")
        dist.all_reduce(x, group=group)
        assert x.sum().item() == 6
        if RANK == 0:
            subprocess.run(["ip", "link", "set", os.environ["GLOO_SOCKET_IFNAME"], "down"], check=True)
        try:
            dist.all_reduce(x, group=group)
            x.sum().item()
        except RuntimeError as error:
            print(json.dumps(str(error)), flush=True)
        os._exit(0)
    """
    with slow_link(delay_ms=1) as within:
        begin = time.monotonic()
        errors = run_ranks(program, within=within, GLOO_SOCKET_IFNAME=DEVICE)
        assert time.monotonic() - begin < 60
    assert all("all_reduce sum of Float[3]" in error and "<string>:" in error for error in errors)


def test_what_dead_processes_said_is_not_heeded():
    """A store outlives the ranks of a job that is restarted."""
    program = """
        import datetime, time
        from ltc._distributed import _create
        store = dist.FileStore(os.environ["NOTES"], RANKS)
        dist.PrefixStore("ltc", store).set(f"ltc_at/1/{1 - RANK}", "dead\\nbroadcast from 0 of Float[7]\\nold.py:1")
        group = _create(store, RANK, RANKS, datetime.timedelta(seconds=60))
        x = torch.ones(3).to("ltc")
        time.sleep(4 * RANK)  # longer than the patience of the other
        group.allreduce([x]).wait()
        print(json.dumps(x.tolist()))
    """
    with tempfile.TemporaryDirectory() as folder:
        assert run_ranks(program, NOTES=f"{folder}/notes") == [[2.0] * 3] * 2


def test_a_lost_rank_is_seen():
    """The collective that waits for it fails within seconds, with its line."""
    program = """
        x = torch.ones(3).to("ltc")
        dist.all_reduce(x)
        ltc.sync()
        if RANK == 1:
            os._exit(3)
        try:
            while True:
                dist.all_reduce(x)
                x.sum().item()
        except RuntimeError as error:
            print(json.dumps(str(error)))
    """
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        (out, errors, status), (_, _, lost) = ended(start_ranks(program, 2, folder))
        assert time.monotonic() - begin < 60
    assert lost == 3 and status == 0, errors
    assert "all_reduce sum of Float[3]: " in json.loads(out)


@pytest.mark.parametrize("calls", [
    ("dist.all_reduce(torch.ones(4).to('ltc'))", "dist.broadcast(torch.ones(4).to('ltc'), 0)"),
    ("dist.all_gather_into_tensor(torch.ones(2).to('ltc'), torch.ones(1).to('ltc'))", "dist.all_reduce(torch.ones(2).to('ltc'), dist.ReduceOp.MAX)"),
], ids=["ops", "sizes"])  # fmt: skip
def test_ranks_that_differ_fail_with_both_lines(calls):
    program = f"""
        x = torch.ones(3).to("ltc")
        dist.all_reduce(x)
        if RANK == 0:
            {calls[0]}
        else:
            {calls[1]}
        try:
            ltc.sync()
            dist.all_reduce(x)
            x.tolist()
            print(json.dumps("nothing"))
        except RuntimeError as error:
            print(json.dumps(str(error)))
        os._exit(0)
    """
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = [json.loads(out.splitlines()[-1]) for out, _, _ in ended(start_ranks(program, 2, folder))]
    assert time.monotonic() - begin < 30
    assert any("the ranks call different collectives" in text and "<string>:13" in text and "<string>:15" in text for text in results), results


def test_a_group_is_split():
    """Without the ranks that are in no part of it."""
    results = run_ranks("""
        dist.group.WORLD.bound_device_id = torch.device("ltc:0")  # as init_process_group(device_id=...) does
        pair = dist.split_group(split_ranks=[[0, 2]])
        x = torch.ones(2).to("ltc") * (RANK + 1)
        if pair is not None:
            dist.all_reduce(x, group=pair)
        y = torch.ones(1).to("ltc")
        dist.all_reduce(y)
        print(json.dumps([pair is not None, pair and dist.get_world_size(pair), x.tolist(), y.item()]))
    """, 3, backend="ltc")  # fmt: skip
    assert results == [[True, 2, [4.0] * 2, 3.0], [False, None, [2.0] * 2, 3.0], [True, 2, [4.0] * 2, 3.0]]


def test_a_full_socket_is_given_up_in_time():
    """A rank that is stopped reads nothing, so what the other sends it stays in the socket."""
    program = """
        import datetime, signal, time

        pids = [None] * RANKS
        dist.all_gather_object(pids, os.getpid())
        group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=4))
        x = torch.ones(1 << 22).to("ltc")  # 16 MB, far more than a socket holds
        dist.all_reduce(x, group=group)
        first = x[0].item()
        if RANK == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
            print(json.dumps([first]))
            os._exit(0)
        time.sleep(0.5)
        begin, error = time.monotonic(), ""
        try:
            dist.all_reduce(x, group=group)
            x[0].item()
        except RuntimeError as one:
            error = str(one)
        took = time.monotonic() - begin
        os.kill(pids[1], signal.SIGCONT)
        print(json.dumps([first, error, took]), flush=True)
        os._exit(0)
    """
    with tempfile.TemporaryDirectory() as folder:
        results = [json.loads(out.splitlines()[-1]) for out, _, _ in ended(start_ranks(program, 2, folder))]
    assert results[1] == [2.0]
    first, error, took = results[0]
    assert first == 2.0 and took < 20 and "all_reduce sum of Float[4194304]: " in error, error
