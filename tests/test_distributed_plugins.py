"""Plugins that carry out collectives themselves (ltc/collective.h): the sample plugins do, over the store of the ranks."""

import pytest
from collective_forms import COLLECTIVES
from ranks import run_ranks

# Nodes of a plugin's group have numbers from here on.
FIRST_NUMBER = 1 << 32


@pytest.mark.parametrize("plugin", ["minimal", "minimal_async"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_all_collectives_give_the_bits_of_gloo(plugin, ranks):
    """Reductions of halves are the host's: the plugin declines them, at all ranks."""
    program = COLLECTIVES.replace("print(json.dumps(", "print(json.dumps(sorted({one['op'] for one in ").replace("()))", "()})))")
    program = program.replace("ltc.metrics.fallbacks()})", "ltc.metrics.fallbacks() if one['op'].startswith('ltc_c10d')})")
    results = run_ranks(program, ranks, LTC_BACKEND=plugin, LTC_VALIDATE="1")
    assert results == [["ltc_c10d::all_reduce", "ltc_c10d::reduce_scatter"]] * ranks


def test_the_plugin_carries_them_out():
    program = """
        x = torch.full((3,), RANK + 1.0).to("ltc")
        dist.all_reduce(x)
        number = int(ltc._C.graph_text(0).split("group=")[1].split("}")[0])
        print(json.dumps([number, x.tolist(), ltc.metrics.fallbacks()]))
    """
    for number, values, fallbacks in run_ranks(program, LTC_BACKEND="minimal"):
        assert number >= FIRST_NUMBER and values == [3.0] * 3 and not fallbacks


def test_ranks_of_different_plugins_have_the_hosts():
    program = """
        x = torch.full((3,), RANK + 1.0).to("ltc")
        dist.all_reduce(x)
        number = int(ltc._C.graph_text(0).split("group=")[1].split("}")[0])
        print(json.dumps([number, x.tolist()]))
    """
    plugins = [{"LTC_BACKEND": name} for name in ("minimal", "minimal_async", "torchscript")]
    for number, values in run_ranks(program, 3, each=plugins):
        assert number < FIRST_NUMBER and values == [6.0] * 3


def test_groups_of_some_ranks():
    program = """
        pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]
        everyone = torch.full((2,), RANK + 1.0).to("ltc")
        mine = torch.full((2,), 10.0 * (RANK + 1)).to("ltc")
        dist.all_reduce(everyone)
        for ranks, pair in zip(([0, 1], [1, 2]), pairs):
            if RANK in ranks:
                dist.all_reduce(mine, group=pair)
        dist.destroy_process_group(pairs[0])
        dist.all_reduce(everyone)
        print(json.dumps([everyone.tolist(), mine.tolist()]))
    """
    assert run_ranks(program, 3, LTC_BACKEND="minimal_async") == [[[18.0] * 2, [30.0] * 2], [[18.0] * 2, [60.0] * 2], [[18.0] * 2, [60.0] * 2]]


def test_training_gives_the_bits_of_gloo():
    program = """
        def train(device):
            torch.manual_seed(0)
            net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double().to(device)
            model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.0005)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            x = torch.randn(6, 8, dtype=torch.double, generator=torch.Generator().manual_seed(RANK)).to(device)
            for _ in range(5):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
            return [p.detach().cpu() for p in net.parameters()]

        close = [torch.allclose(a, b, rtol=1e-12, atol=1e-14) for a, b in zip(train("cpu"), train("ltc"))]
        same = [None] * RANKS
        dist.all_gather_object(same, [p.tolist() for p in train("ltc")])
        print(json.dumps([all(close), same[0] == same[1], [one["op"] for one in ltc.metrics.fallbacks() if "c10d" in one["op"]]]))
    """
    assert run_ranks(program, LTC_BACKEND="minimal") == [[True, True, []]] * 2


@pytest.mark.parametrize("plugin", ["minimal", "minimal_async"])
def test_a_rank_that_does_not_come_ends_the_wait(plugin):
    program = """
        import datetime, time

        group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=2))
        x = torch.ones(3).to("ltc")
        dist.all_reduce(x, group=group)
        first, error, again = x.tolist(), "", ""
        begin = time.monotonic()
        if RANK == 0:
            for attempt in range(2):
                try:
                    dist.all_reduce(x, group=group)
                    x.tolist()
                except RuntimeError as one:
                    error, again = again, str(one)
        y = torch.ones(3).to("ltc")
        if RANK == 1:
            time.sleep(4)
        dist.all_reduce(y)  # of the other group
        print(json.dumps([first, error, again, y.tolist(), time.monotonic() - begin]))
    """
    waited, other = run_ranks(program, LTC_BACKEND=plugin)
    assert "rank 0 of 2: another rank did not take part" in waited[1]
    assert waited[0] == waited[3] == other[3] == [2.0] * 3 and waited[4] < 20


def test_the_next_process_finds_the_programs(tmp_path):
    """Numbers of groups are part of them."""
    program = """
        x = torch.full((3,), RANK + 1.0).to("ltc")
        dist.all_reduce(x)
        print(json.dumps([x.tolist(), ltc.metrics.counter_value("UncachedCompile"), ltc.metrics.counter_value("DiskCacheHits")]))
    """
    cached = {"LTC_BACKEND": "minimal", "LTC_CACHE": "1"}
    folders = [{"LTC_CACHE_DIR": f"{tmp_path}/{rank}"} for rank in range(2)]
    assert [one[0] for one in run_ranks(program, each=folders, **cached)] == [[3.0] * 3] * 2
    assert run_ranks(program, each=folders, **cached) == [[[3.0] * 3, 0, 1]] * 2


@pytest.mark.parametrize("plugin", ["minimal", "minimal_async"])
def test_ranks_that_differ_are_told_apart(plugin):
    """The plugin would let both wait for half an hour."""
    program = """
        import time

        x = torch.ones(2).to("ltc")
        for _ in range(100):
            dist.all_reduce(x)
            x = x / RANKS
        x.tolist()
        begin, errors = time.monotonic(), []
        for attempt in range(2):
            try:
                if RANK == 0:
                    dist.all_reduce(x)
                else:
                    dist.all_to_all_single(torch.zeros(2).to("ltc"), x)
                ltc.sync()
                x.tolist()
                torch.ltc.synchronize()
            except RuntimeError as error:
                errors.append(str(error))
        print(json.dumps([errors, time.monotonic() - begin]), flush=True)
        os._exit(0)
    """
    for errors, took in run_ranks(program, LTC_BACKEND=plugin):
        assert took < 15
        assert "the ranks call different collectives: rank " in errors[-1] and "all_reduce sum of Float[2] at <string>:" in errors[-1]
        assert "all_to_all of Float at <string>:" in errors[-1]
