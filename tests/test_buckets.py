"""ltc.jit(fn, buckets=...): batches of any size are calls of as many kinds as there are buckets."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ltc
from comparing import LTC, assert_close, assert_same

BUCKETS = (8, 32, 64)


def mlp():
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), (6,)


def convnet():
    layers = (nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))
    return nn.Sequential(*layers), (3, 8, 8)


@pytest.mark.parametrize("make", [mlp, convnet])
@torch.no_grad()
def test_fifty_batch_sizes_of_a_model(make, metrics):
    model, sizes = make()
    model.eval()
    batches = [torch.randn(n, *sizes) for n in range(1, 51)]
    expected = [model(x) for x in batches]
    run = ltc.jit(model.to(LTC), buckets=BUCKETS)
    ltc.sync()
    metrics.reset()
    results = [run(x.to(LTC)) for x in batches]
    for result, value in zip(results, expected):
        assert_same(result, value)
    assert len(run) == len(BUCKETS)
    assert metrics.counter_value("UncachedCompile") + metrics.counter_value("SymbolicReuse") == len(BUCKETS)


@torch.no_grad()
def test_equal_to_the_function_without_buckets():
    def function(batch, *, scale, table):
        first, second = batch["x"] * scale, batch["y"].softmax(-1)
        return {"sum": first.sum(1, keepdim=True) + second, "same": first, "scale": scale, "rows": batch["y"].argmax(1), "t": table}

    run = ltc.jit(function, buckets=[4])
    for n in 0, 1, 3, 4:
        batch = {"x": torch.randn(n, 5), "y": torch.randn(n, 3)}
        on_device = {name: value.to(LTC) for name, value in batch.items()}
        assert_same(run(on_device, scale=2.5, table=None), function(batch, scale=2.5, table=None))


@torch.no_grad()
def test_arguments_of_other_layouts(metrics):
    run = ltc.jit(lambda x: x * 2, buckets=[8])
    image = torch.randn(3, 2, 4, 4)
    for x in image.to(memory_format=torch.channels_last), image[::2], image.transpose(0, 1), image[:, 1], torch.tensor([True, False]):
        assert_close(run(x.to(LTC)).cpu(), x * 2)
        assert_close(run(x.clone().to(LTC)[1:]).cpu(), x[1:] * 2)
    nhwc = run(image.to(LTC).to(memory_format=torch.channels_last))
    assert nhwc.is_contiguous(memory_format=torch.channels_last)


def test_gradients():
    model, sizes = mlp()
    x, target = torch.randn(5, *sizes, requires_grad=True), torch.randn(5, 4)
    F.mse_loss(model(x), target).backward()
    lazy = mlp()[0].to(LTC)
    lazy.load_state_dict(model.state_dict())
    lazy_x = x.detach().to(LTC).requires_grad_()
    F.mse_loss(ltc.jit(lazy, buckets=[8])(lazy_x), target.to(LTC)).backward()
    assert_close(lazy_x.grad.cpu(), x.grad)
    for ours, theirs in zip(lazy.parameters(), model.parameters()):
        assert_close(ours.grad.cpu(), theirs.grad)


@torch.no_grad()
def test_an_error_of_the_function_reaches_the_reader():
    run = ltc.jit(lambda x: F.embedding(x, torch.ones(2, 2, device=x.device)), buckets=[4])
    with pytest.raises(IndexError):
        run(torch.tensor([0, 5, 1], device=LTC)).cpu()


@torch.no_grad()
@pytest.mark.parametrize(
    "function, sizes, message",
    [
        (lambda x: x, [(9, 2)], r"a batch of 9 rows, and the largest bucket has 8: add one"),
        (lambda x, y: x + y, [(3, 2), (4, 2)], r"the arguments' sizes are \(3, 2\), \(4, 2\), and the leading dim"),
        (lambda x: x.mean(), [(3, 2)], r"a result has sizes \(\), and its leading dim should be the 4 rows"),
        (lambda x: x.T, [(3, 2)], r"a result has sizes \(2, 4\), and its leading dim should be the 4 rows"),
        (lambda x: x, [()], r"no argument is a tensor with a leading dim"),
    ],
)
def test_what_is_refused(function, sizes, message):
    run = ltc.jit(function, buckets=(4, 8))
    with pytest.raises(ValueError, match=r"ltc\.jit\(.*buckets=\(4, 8\)\): " + message):
        run(*(torch.ones(size, device=LTC) for size in sizes))


@pytest.mark.parametrize("buckets", [(), (0, 8), (2.5,), "8"])
def test_buckets_are_numbers_of_rows(buckets):
    with pytest.raises(ValueError, match="buckets are numbers of rows, at least one, each above 0"):
        ltc.jit(mlp()[0], buckets=buckets)
