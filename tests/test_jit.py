"""ltc.jit: a function recorded once for each kind of call."""

import gc
import math
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ltc
from comparing import LTC, assert_same, to_device


def recorded_ops():
    return ltc.metrics.counter_value("OpsRecorded")


def test_a_function_of_nested_arguments(metrics):
    def function(batch, *, scale):
        return {"sum": batch["x"] + batch["y"][0] * scale, "x": batch["x"], "scale": scale}

    batch = {"x": torch.randn(3), "y": [torch.randn(3)]}
    run, on_device = ltc.jit(function), to_device(batch)
    assert_same(run(on_device, scale=2), function(batch, scale=2))
    before = recorded_ops()
    assert_same(run(on_device, scale=2), function(batch, scale=2))
    assert recorded_ops() == before
    assert_same(run(on_device, scale=torch.tensor(3)), function(batch, scale=torch.tensor(3)))
    assert len(run) == 2


@torch.no_grad()
def test_a_changing_number_is_an_operand(metrics):
    def function(x, s, n):
        return torch.lerp(x * s + n, 2 - x, 0.5), torch.where(x > s, x, n)

    run, x = ltc.jit(function), torch.rand(5)
    on_device = x.to(LTC)
    for s, n in (0.5, 2), (0.25, 3):
        assert_same(run(on_device, s, n), function(x, s, n))
    before = recorded_ops()
    for s, n in (-0.0, 7), (1e300, -1):
        assert_same(run(on_device, s, n), function(x, s, n))
    assert recorded_ops() == before
    assert len(run) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x, s: x * s if s < 10 else x,
        lambda x, s: x * math.sqrt(s) if math.log(s) < 2 else x,
        lambda x, s: x * (1 - s),
        lambda x, s: x * [0.5, 0.5, 3.0][min(int(s), 2)],
        lambda x, s: x * (1 if f"{s}".startswith("1") else 2),
        lambda x, s: (x * s, s, isinstance(s, float)),
        lambda x, s: x * max(s, 2),
        lambda x, s: torch.stack([x] * (round(s) + 1)),
        lambda x, s: x * torch.tensor([s], device=x.device),
        lambda x, s: x.fill_(s) + {0.5: 1, 1.5: 1}.get(s, 2),
        lambda x, s: torch.linalg.vector_norm(x, s),
        lambda x, s: F.dropout(x, s / 1000, training=False) + x.new_full((2,), s)[0],
    ],
)
@torch.no_grad()
def test_a_number_that_the_function_looks_at(function):
    run, x = ltc.jit(function), torch.rand(4)
    for s in 0.5, 1.5, 12.5, 0.5, 2.5, 100.5:
        assert_same(run(x.to(LTC), s), function(x.clone(), s))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: sum((x * 2 for _ in range(n // 100)), x),
        lambda x, n: x * (n + 0.5),
        lambda x, n: x.repeat(n % 5 + 1) * n,
        lambda x, n: x[n % 4] * n,
        lambda x, n: x * (1, 1, 5)[n // 100],
        lambda x, n: x.narrow(0, 0, n % 4 + 1),
    ],
)
@torch.no_grad()
def test_an_int_that_the_function_looks_at(function):
    run, x = ltc.jit(function), torch.rand(4)
    for n in 3, 7, 103, 3, 207:
        assert_same(run(x.to(LTC), n), function(x, n))


def test_threads_call_one_module_at_once():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).requires_grad_(False)
    inputs = [torch.randn(1 + i % 3, 4) for i in range(24)]
    expected = [model(x) * i for i, x in enumerate(inputs)]
    on_device = model.to(LTC)
    run = ltc.jit(on_device)
    scale = ltc.jit(lambda x, s: x * s)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda i: scale(run(inputs[i].to(LTC)), float(i)).cpu(), range(24)))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert len(run) == 3


def test_arguments_are_written_and_numbers_drawn():
    @ltc.jit
    def function(x):
        x.add_(1)
        return torch.rand_like(x)

    x = torch.zeros(16, device=LTC)
    assert not torch.equal(function(x).cpu(), function(x).cpu())
    assert x.tolist() == [2] * 16


def test_bytes_of_the_cpu_as_other_sizes():
    images = torch.arange(12, dtype=torch.uint8).reshape(3, 4)
    scale = ltc.jit(lambda images: images.unsqueeze(1).float() / 2)
    for _ in range(2):
        assert torch.equal(scale(images).cpu(), images.unsqueeze(1).float() / 2)


def test_a_module_and_its_buffers():
    torch.manual_seed(0)
    reference = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.0))
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.0)).to(LTC)
    model.load_state_dict(reference.state_dict())
    run = ltc.jit(model)
    with torch.no_grad():
        for mode in True, True, False, False:
            model.train(mode), reference.train(mode)
            x = torch.randn(8, 4)
            assert_same(run(x.to(LTC)), reference(x), rtol=1e-4, atol=1e-5)
        model[0].weight.zero_(), reference[0].weight.zero_()
        assert_same(run(x.to(LTC)), reference(x), rtol=1e-4, atol=1e-5)
    assert_same(dict(model.named_buffers()), dict(reference.named_buffers()))
    assert len(run) == 2


def test_training_through_it():
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, w = torch.randn(3, 4), torch.randn(4, requires_grad=True)
    on_device = to_device((x, w))

    def loss(x, w):
        return F.softplus(x * w).sum()

    run = ltc.jit(loss)
    for _ in range(2):
        run(*on_device).backward()
        loss(x, w).backward()
    assert_same(on_device[1].grad, w.grad)


def test_training_with_many_sizes_and_numbers():
    torch._dynamo.reset()
    w = torch.randn(4, requires_grad=True)
    on_device = w.detach().to(LTC).requires_grad_()

    def loss(x, w, s):
        return (x * w * s).square().sum()

    run = ltc.jit(loss)
    for size in range(1, 12):
        x = torch.randn(size, 4)
        run(x.to(LTC), on_device, 1 / size).backward()
        loss(x, w, 1 / size).backward()
    assert_same(on_device.grad, w.grad, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_what_depends_on_a_value_is_an_error_that_names_the_line():
    @ltc.jit
    def function(x):
        if x.sum() > 0:
            return x + 1
        return x

    with pytest.raises(RuntimeError, match=r"ltc.jit\(.*function\): a value was asked for at .*test_jit.py:\d+.*torch.where"):
        function(torch.ones(3, device=LTC))
    assert torch.ones(3, device=LTC).add(1).tolist() == [2, 2, 2]


def test_a_tensor_from_outside_is_an_error():
    outside = torch.ones(3).to(LTC)
    for function in (lambda x: x + outside, lambda x: outside.add_(x)):
        with pytest.raises(RuntimeError, match="that is no argument at .*test_jit.py"):
            ltc.jit(function)(torch.ones(3, device=LTC))
    assert outside.tolist() == [1, 1, 1]


def test_a_tensor_that_escapes_has_no_value():
    kept = []

    @ltc.jit
    def function(x):
        kept.append(x * 2)
        return x + 1

    assert function(torch.ones(2, device=LTC)).tolist() == [2, 2]
    for use in (lambda: kept[0].tolist(), lambda: (kept[0] + 1).tolist()):
        with pytest.raises(RuntimeError, match="has no value outside of it"):
            use()


def test_an_error_inside_leaves_the_device_as_it_was():
    state = torch.ltc.get_rng_state()

    @ltc.jit
    def function(x):
        return torch.rand_like(x) @ torch.ones(7, device=LTC)

    with pytest.raises(RuntimeError):
        function(torch.ones(3, device=LTC))
    assert torch.equal(torch.ltc.get_rng_state(), state)
    assert not ltc._C.is_capturing()


def test_goes_with_its_module():
    module = torch.nn.Linear(4, 4).to("ltc").eval()
    function = ltc.jit(module)
    with torch.no_grad():
        for _ in range(3):
            function(torch.ones(2, 4, device="ltc"))
    weight = weakref.ref(module.weight)
    del module, function
    gc.collect()
    assert weight() is None
