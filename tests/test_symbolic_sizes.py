"""Batch sizes that change: a plugin that claims symbolic sizes compiles for two of them; a process each, compared with the CPU."""

import json

import pytest

from comparing import output_of

TRAIN = """
    import json, torch, ltc
    from torch import nn
    import torch.nn.functional as F

    def train(device, sizes):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.ReLU(), nn.Linear(7, 3)).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        losses = []
        for n in sizes:
            x, y, target = torch.randn(n, 5), torch.randn(n, 3), torch.randint(0, 3, (n,))
            x, y, target = x.to(device), y.to(device), target.to(device)
            optimizer.zero_grad()
            out = model(x)
            loss = F.cross_entropy(out, target) + F.mse_loss(out, y) + out.reshape(-1).square().mean()
            loss.backward()
            optimizer.step()
            if device == "ltc":
                ltc.mark_step()
            losses.append(loss.detach())
        return torch.stack(losses).cpu()

    def compare(sizes):
        ltc.sync()
        ltc.metrics.reset()
        ours = train("ltc", sizes)
        counts = {name: ltc.metrics.counter_value(name) for name in ("UncachedCompile", "SymbolicCompile", "SymbolicReuse")}
        return (ours - train("cpu", sizes)).abs().max().item(), counts
"""


def run(program, **env):
    return json.loads(output_of(TRAIN + program, **env))


@pytest.mark.parametrize("plugin", ["minimal", "minimal_async", "torchscript"])
def test_ten_batch_sizes_of_a_training_step(plugin):
    error, counts = run(
        """
    compare([4, 4])  # the first step of Adam makes its state, and what reads the losses
    print(json.dumps(compare([8, 16, 3, 30, 7, 2, 12, 5, 64, 9])))
    """, LTC_BACKEND=plugin)  # fmt: skip
    assert error < 1e-5
    assert counts["UncachedCompile"] <= 4  # two programs: the first step, which makes Adam's state, and the others
    assert counts["SymbolicReuse"] >= 7


def test_a_plugin_that_does_not_claim_it_compiles_each_size():
    error, counts = run("""
    print(json.dumps(compare([8, 16, 3, 30])))
    """, LTC_BACKEND="opencl")  # fmt: skip
    assert error < 1e-4
    assert counts["UncachedCompile"] >= 4
    assert counts["SymbolicCompile"] == counts["SymbolicReuse"] == 0


@pytest.mark.parametrize("plugin", ["minimal", "torchscript"])
def test_sizes_of_zero_and_one_and_two_that_vary_apart(plugin):
    error, compiles, reused = run(
        """
    def attend(device, batch, length):
        torch.manual_seed(batch + 100 * length)
        x, w = torch.randn(batch, length, 4), torch.randn(4, 4)
        x, w = x.to(device), w.to(device)
        scores = (x @ w) @ x.transpose(1, 2)
        return (scores.softmax(-1) @ x).cumsum(1).flatten(1)[:, :length].cpu()

    error = 0
    for batch, length in (3, 4), (5, 7), (8, 2), (2, 9), (1, 6), (7, 1), (0, 5), (9, 9), (6, 3):
        ours, theirs = attend("ltc", batch, length), attend("cpu", batch, length)
        assert ours.shape == theirs.shape
        error = max([error, *(ours - theirs).abs().flatten().tolist()])
    value = ltc.metrics.counter_value
    print(json.dumps((error, value("UncachedCompile"), value("SymbolicReuse"))))
    """, LTC_BACKEND=plugin)  # fmt: skip
    assert error < 1e-4
    assert compiles <= 4
    assert reused >= 4


SAVED = """
    def run(n):
        return (torch.ones(n, 4).to("ltc") @ torch.ones(4, 2).to("ltc")).sum().item()
    assert [run(n) for n in SIZES] == [8 * n for n in SIZES]
    value = ltc.metrics.counter_value
    print(json.dumps([value(n) for n in ("UncachedCompile", "DiskCacheHits", "SymbolicCompile", "SymbolicReuse")]))
"""


def test_what_is_on_disk_is_an_example(tmp_path):
    """A plugin that cannot save executables compiles the general program again in each process, not what was compiled for its own size."""
    program = SAVED.replace("SIZES", "(8, 16, 3)")
    cached = {"LTC_BACKEND": "minimal", "LTC_CACHE": "1", "LTC_CACHE_DIR": str(tmp_path)}
    assert run(program, **cached) == [2, 0, 1, 1]
    assert run(program, **cached) == [1, 1, 1, 1]


def test_a_second_process_has_the_program_for_all_sizes(tmp_path):
    cached = {"LTC_BACKEND": "torchscript", "LTC_CACHE": "1", "LTC_CACHE_DIR": str(tmp_path)}
    assert run(SAVED.replace("SIZES", "(8, 16, 3)"), **cached) == [2, 0, 1, 1]
    assert run(SAVED.replace("SIZES", "(5, 8, 20, 3)"), **cached) == [0, 1, 0, 3]
