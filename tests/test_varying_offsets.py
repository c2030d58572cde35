"""Slices at offsets that change from step to step compile nothing new."""

import pytest
import torch
import torch.nn.functional as F

import ltc
from checking import fallbacks
from comparing import LTC, assert_close, output_of


def compiles():
    ltc.wait_device_ops()
    return ltc.metrics.counter_value("UncachedCompile")


def train(device, batches, steps=12, size=32):
    """Losses of steps whose batches are cut out of data on the device, and the weight after them."""
    torch.manual_seed(0)
    data, labels = torch.randn(steps * size, 16).to(device), torch.randint(0, 5, (steps * size,)).to(device)
    model = torch.nn.Linear(16, 5).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for x, y in batches(data, labels, size):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        ltc.mark_step()
        losses.append(loss.detach())
    return [value.detach().cpu() for value in (*losses, model.weight)]


def by_index(data, labels, size):
    for i in range(0, len(data), size):
        yield data[i : i + size], labels[i : i + size]


def by_split(data, labels, size):
    return zip(data.split(size), labels.split(size))


def by_loader(data, labels, size):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data, labels), batch_size=size)


@pytest.mark.parametrize("batches", [by_index, by_split, by_loader])
def test_batches_of_data_on_the_device(batches, metrics):
    for expected, found in zip(train("cpu", batches), train(LTC, batches), strict=True):
        assert_close(found, expected)
    assert compiles() <= 4
    assert fallbacks() == {}


def test_two_places_of_one_line(metrics):
    """Small steps with the same ops do not hide each other."""
    data = torch.randn(400, 8)
    lazy = data.to(LTC)
    for i in range(0, 60, 3):
        assert torch.equal((lazy[i : i + 9] * 2).cpu(), data[i : i + 9] * 2) and torch.equal((lazy.t()[3:5, i:i + 6] * 2).cpu(), data.t()[3:5, i:i + 6] * 2)
    assert compiles() <= 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.bool, torch.complex64], ids=str)
def test_writes(dtype, metrics):
    """Rows, columns and a window of a buffer, as of a cache of keys."""
    values = (torch.randn(16, 3, 8) * 4).to(dtype)
    expected, found = torch.zeros(16, 8, dtype=dtype), torch.zeros(16, 8, dtype=dtype, device=LTC)
    lazy = values.to(LTC)
    for i in range(12):
        for target, source in ((expected, values), (found, lazy)):
            target[i] = source[i, 0]
            target[:, i % 8][:8] = source[i, 1]
            target[i : i + 2, 2:6:2] = source[i, :2, 1:3]
        ltc.mark_step()
    assert torch.equal(found.cpu(), expected)
    assert compiles() <= 5  # the first writes to what no buffer holds yet


def test_a_gradient_of_a_slice(metrics):
    """The backward writes where the forward has read."""
    x = torch.randn(50, 4)
    for i in range(8):
        gradients = []
        for device in ("cpu", LTC):
            own = x.to(device, copy=True).requires_grad_()
            own[5 * i : 5 * i + 9].square().sum().backward()
            gradients.append(own.grad.cpu())
        assert torch.equal(*gradients)
    assert compiles() <= 3


def test_constants_stay_constants(metrics):
    """Slices that every step has at the same places are seen through."""
    x = torch.randn(6, 12).to(LTC)
    for _ in range(4):
        a, b, c = (x * 1).chunk(3, 1)
        result = (a + b * c).sum()
        assert "ltc::as_strided" not in ltc.graph()
        result.item()
    assert compiles() == 1


def test_other_reads_of_the_line_stay_constants(metrics):
    x = torch.randn(50, 4).to(LTC)
    for i in range(4):
        result = x[i : i + 5].relu() + x[7:9].sum().expand(5, 4)
        graph = ltc.graph()
        result.cpu()
    assert graph.count("ltc::as_strided(") == 1 and graph.count("aten::as_strided(") == 2


def test_a_second_process_knows_at_its_second_step(tmp_path):
    program = """
        import torch, ltc
        x = torch.arange(800.).to("ltc")
        for i in range(START, START + 10):
            assert (x[i * 7 : i * 7 + 5] * 2).sum().item() == sum(2 * (i * 7 + k) for k in range(5))
        print(ltc.metrics.counter_value("UncachedCompile"))
    """
    environment = {"LTC_CACHE": "1", "LTC_CACHE_DIR": str(tmp_path / "cache"), "LTC_LOG": "error"}
    assert output_of(program.replace("START", "1"), **environment) == "3\n"
    assert output_of(program.replace("START", "1"), **environment) == "0\n"
    assert output_of(program.replace("START", "21"), **environment) == "0\n"  # by the code for all offsets
