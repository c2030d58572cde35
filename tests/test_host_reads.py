"""Reads of values that the host can compute: of numbers and of whole numbers that it has sent. They end no step."""

import pytest
import torch

import ltc
from comparing import LTC, assert_close


def counters():
    return {name: ltc.metrics.counter_value(name) for name in ("HostRead", "ReadBarrier", "UncachedCompile")}


def is_one_sequence(positions):
    """As transformers asks of positions before each forward (masking_utils.find_packed_sequence_indices)."""
    steps = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
    return bool(((steps != 1).cumsum(-1)[:, -1] == 0).all())


def train(device, steps):
    torch.manual_seed(0)
    layer = torch.nn.Linear(8, 8).to(device)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        x = layer(torch.full((4, 8), 0.1 * step, device=device))
        positions = torch.arange(8, device=device).unsqueeze(0) + step
        if not is_one_sequence(positions):
            raise AssertionError("the positions follow each other")
        loss = (x * positions).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


def test_a_step_that_branches_on_numbers_is_one_program(metrics):
    losses = train(LTC, 6)
    found = counters()
    assert found["HostRead"] == 6 and found["ReadBarrier"] == 1, "the losses are the one read"
    assert found["UncachedCompile"] <= 4, "the first steps and the last read"
    assert_close(losses, train("cpu", 6))


def test_a_mask_that_was_sent(metrics):
    model = torch.nn.Linear(5, 5).to(LTC)
    for zeros in (0, 2, 0, 1):
        mask = torch.ones(3, 5, dtype=torch.int64)
        mask[0, 5 - zeros :] = 0
        hidden = model(torch.ones(3, 5, device=LTC))
        on_device = mask.to(LTC)
        assert bool(on_device.all()) == (zeros == 0)
        assert int((on_device == 0).sum()) == zeros
        assert_close((hidden * on_device).cpu(), model(torch.ones(3, 5, device=LTC)).cpu() * mask)
    assert counters()["HostRead"] == 8


def test_a_sent_value_that_was_written_since(metrics):
    x = torch.arange(6).to(LTC)
    x += 1
    assert x.tolist() == [1, 2, 3, 4, 5, 6]
    x[2:4] = 0
    assert x.tolist() == [1, 2, 0, 0, 5, 6] and x.sum().item() == 14
    assert counters()["ReadBarrier"] == 0


def test_values_in_every_layout(metrics):
    x = torch.arange(12, device=LTC).view(3, 4).t()
    assert x.tolist() == torch.arange(12).view(3, 4).t().tolist()
    assert (x + x.clone()).tolist() == (2 * torch.arange(12).view(3, 4).t()).tolist()
    assert torch.equal(x.cpu(), torch.arange(12).view(3, 4).t()) and x.cpu().stride() == (1, 4)
    assert x[1:, ::2].tolist() == torch.arange(12).view(3, 4).t()[1:, ::2].tolist()
    assert counters()["ReadBarrier"] == 0


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool], ids=str)
def test_whole_numbers_wrap_as_the_devices(dtype, metrics):
    x = torch.tensor([0, 1, 100, 127], dtype=torch.int64).to(dtype)
    values = [x.to(LTC), x.to(LTC)]
    read_at_once = (values[0] * values[0] + 3).cpu()
    assert counters()["HostRead"] == 1
    later = values[1] * values[1] + 3
    ltc.mark_step()
    assert torch.equal(read_at_once, later.cpu()) and torch.equal(read_at_once, x * x + 3)


def test_the_device_computes_floats_and_its_own_values(metrics):
    ones = torch.ones(4, device=LTC)
    assert ones.sum().item() == 4
    assert counters() | {"UncachedCompile": 0} == {"HostRead": 0, "ReadBarrier": 1, "UncachedCompile": 0}
    indices = ones.argmax()
    assert int(indices + 0) == 0
    assert counters()["HostRead"] == 0 and counters()["ReadBarrier"] == 2


def test_an_error_is_thrown_once_and_loses_nothing(metrics):
    kept = torch.ones(3, device=LTC) * 2
    with pytest.raises((RuntimeError, IndexError)):
        torch.arange(4, device=LTC)[torch.tensor([9], device=LTC)].tolist()
    assert kept.tolist() == [2, 2, 2]


def test_within_autocast_and_inference_mode(metrics):
    x = torch.arange(5, device=LTC)
    with torch.autocast(LTC.type, torch.bfloat16):
        assert (x + 1).tolist() == [1, 2, 3, 4, 5]
    with torch.inference_mode():
        assert (x + 2).tolist() == [2, 3, 4, 5, 6]


def test_chains_of_views(metrics):
    """A view of a view's result: strides are those of row-major contents on the host too."""
    torch.manual_seed(0)
    a, b = torch.randint(-9, 9, (2, 2, 2, 3)), torch.randint(-9, 9, (2, 3, 2, 2)).permute(0, 2, 1, 3)
    for axes in ((0, 1, 2, 3), (1, 2, 0, 3), (3, 2, 1, 0)):
        left = a.permute(axes).contiguous().permute([axes.index(axis) for axis in range(4)])
        got = torch.tensordot(left.to(LTC), b.to(LTC), dims=3)
        assert torch.equal(got.cpu(), torch.tensordot(left, b, dims=3))
    assert counters()["ReadBarrier"] == 0
