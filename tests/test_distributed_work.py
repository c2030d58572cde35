"""When a recorded collective starts, and what its Work says of it."""

from ranks import run_ranks

# Rank 0 does nothing more with the device until rank 1 has the values, which it tells by a file.
WAITS_BY_FILE = """
    import pathlib, time

    flag = pathlib.Path(os.environ["FLAG"])

    def give(value):
        x = torch.full((3,), value + RANK).to("ltc")
        dist.broadcast(x, 0)
        if RANK == 0:
            until = time.monotonic() + 30
            while not flag.exists() and time.monotonic() < until:
                time.sleep(0.01)
            flag.unlink()
        else:
            got = x.tolist()
            flag.touch()
            while flag.exists():
                time.sleep(0.01)
        return x.tolist()
"""


def test_a_rank_that_records_nothing_more_takes_part(tmp_path):
    program = WAITS_BY_FILE + """
    print(json.dumps([give(1.0), give(2.0), ltc.metrics.counter_value("IdleBarrier")]))
    """
    source, other = run_ranks(program, FLAG=str(tmp_path / "got"))
    assert source == [[1.0] * 3, [2.0] * 3, 2]
    assert other[:2] == [[1.0] * 3, [2.0] * 3]


def test_it_takes_part_after_a_fork(tmp_path):
    program = WAITS_BY_FILE + """
    first = give(1.0)
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    print(json.dumps([first, give(2.0)]))
    """
    assert run_ranks(program, FLAG=str(tmp_path / "got")) == [[[1.0] * 3, [2.0] * 3]] * 2


def test_it_takes_part_when_the_watch_has_slept(tmp_path):
    program = WAITS_BY_FILE + """
    first = give(1.0)
    time.sleep(6.5)
    print(json.dumps([first, give(2.0)]))
    """
    assert run_ranks(program, FLAG=str(tmp_path / "got")) == [[[1.0] * 3, [2.0] * 3]] * 2


def test_a_rank_that_ends_has_taken_part():
    """Without destroy_process_group."""
    program = """
        import time

        x = torch.full((3,), RANK + 1.0).to("ltc")
        dist.broadcast(x, 0)
        if RANK == 0:
            print(0)
        else:
            time.sleep(1.5)  # behind the end of the other
            print(json.dumps(x.tolist()))
    """
    assert run_ranks(program) == [0, [1.0] * 3]


def test_a_step_that_goes_on_is_not_cut():
    """A pause is shorter than the patience."""
    program = """
        import time

        def step():
            x = torch.ones(3).to("ltc")
            for _ in range(4):
                dist.all_reduce(x)
                time.sleep(0.02)
                x = x / RANKS + 1
            return x.tolist()

        print(json.dumps([step(), ltc.metrics.counter_value("IdleBarrier"), ltc.metrics.counter_value("ProgramRuns")]))
    """
    assert run_ranks(program) == [[[5.0] * 3, 0, 1]] * 2


def test_work_is_completed_when_its_values_are_there():
    program = """
        import time

        x = torch.full((3,), RANK + 1.0).to("ltc")
        work = dist.all_reduce(x, async_op=True)
        if RANK == 1:
            time.sleep(0.5)
        before = work.is_completed()
        until = time.monotonic() + 20
        while not work.is_completed() and time.monotonic() < until:
            time.sleep(0.01)
        print(json.dumps([before if RANK == 0 else False, work.is_completed(), work.is_success(), x.tolist(),
                          [y.tolist() for y in work.result()], work.get_future().wait()[0].tolist()]))
    """
    assert run_ranks(program) == [[False, True, True, [3.0] * 3, [[3.0] * 3], [3.0] * 3]] * 2


def test_to_wait_with_a_timeout_fails_when_it_is_over():
    program = """
        import datetime, time

        group = dist.group.WORLD._get_backend(torch.device("ltc"))
        x = torch.ones(3).to("ltc")
        group.allreduce([x]).wait(datetime.timedelta(seconds=20))
        error, took = "", 0
        if RANK == 0:
            work, begin = group.allreduce([x]), time.monotonic()
            try:
                work.wait(datetime.timedelta(milliseconds=300))
            except dist.DistBackendError as one:
                error, took = str(one), time.monotonic() - begin
            dist.barrier(dist.new_group([0, 1], backend="gloo"))
        else:
            dist.barrier(dist.new_group([0, 1], backend="gloo"))
            group.allreduce([x])
        print(json.dumps([error, 0.3 <= took < 10, x.tolist()]))
    """
    waited, late = run_ranks(program)
    assert "ltc caught collective operation timeout: ALLREDUCE has not ended within 300 ms" in waited[0]
    assert waited[1:] == [True, [4.0] * 3]  # it ended later
    assert late == ["", False, [4.0] * 3]


def test_the_profiler_names_collectives():
    program = """
        x, parts = torch.ones(4).to("ltc"), list(torch.zeros(2, 4).to("ltc").unbind())
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
            dist.all_reduce(x)
            dist.broadcast(x, 0)
            dist.all_gather(parts, x)
            ltc.sync()
        events = {event.name: event for event in profile.events() if event.name.startswith("ltc:")}
        print(json.dumps([sorted(events), events["ltc:all_reduce"].input_shapes, events["ltc:all_reduce"].is_async]))
    """
    names = ["ltc:all_gather", "ltc:all_reduce", "ltc:broadcast"]
    assert run_ranks(program) == [[names, [[4]], True]] * 2


def test_the_logger_of_ddp_has_times():
    program = """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).to("ltc"))
            for _ in range(3):
                model(torch.ones(2, 4).to("ltc")).sum().backward()
        data = model._get_ddp_logging_data()
        print(json.dumps([data["avg_forward_compute_time"] > 0, data["avg_backward_compute_time"] > 0,
                          [str(one.message) for one in caught if "imer" in str(one.message)]]))
    """
    assert run_ranks(program) == [[True, True, []]] * 2
