"""Ops whose results' sizes depend on values in general, and assertions of values: the device is asked for nothing that is known."""

import pytest
import torch
import torch.nn.functional as F

import ltc
from checking import fallbacks
from comparing import LTC, assert_close


def compiles():
    ltc.wait_device_ops()
    return ltc.metrics.counter_value("UncachedCompile")


@pytest.mark.parametrize("mask_size", [(4, 6), (4, 1), (6,)], ids=str)
def test_gradient_of_a_masked_scatters_source(mask_size, metrics):
    torch.manual_seed(0)
    x, source, mask = torch.randn(4, 6), torch.randn(5, 7), torch.rand(mask_size) > 0.5
    gradients = []
    for device in ("cpu", LTC):
        own = [tensor.to(device, copy=True).requires_grad_() for tensor in (x, source)]
        own[0].masked_scatter(mask.to(device), own[1]).square().sum().backward()
        gradients.append([tensor.grad.cpu() for tensor in own])
    for expected, found in zip(*gradients):
        assert_close(found, expected)
    assert fallbacks() == {}


def ctc(device, targets, lengths, as_tensors, reduction):
    torch.manual_seed(0)
    logits = torch.randn(20, 3, 7).to(device).requires_grad_()
    lengths = tuple(map(torch.tensor, lengths)) if as_tensors else lengths
    loss = F.ctc_loss(logits.log_softmax(2), targets.to(device), *lengths, reduction=reduction, zero_infinity=True)
    loss.sum().backward()
    return loss.detach().cpu(), logits.grad.cpu()


@pytest.mark.parametrize("as_tensors", [False, True], ids=["lists", "tensors of the CPU"])
def test_ctc_loss(as_tensors, metrics):
    """Other lengths compile nothing where targets are rows. No length is read from the device."""
    torch.manual_seed(1)
    rows, counts = torch.randint(1, 7, (3, 6)), []
    for lengths in [((20, 18, 17), (5, 4, 3)), ((20, 20, 9), (6, 1, 0)), ((12, 18, 3), (2, 4, 5))]:
        for reduction in ("mean", "none"):
            for expected, found in zip(*(ctc(device, rows, lengths, as_tensors, reduction) for device in ("cpu", LTC))):
                assert_close(found, expected, rtol=1e-4, atol=1e-5)
        counts.append(compiles())
    assert counts[0] == counts[-1]
    in_a_row = torch.cat([row[:count] for row, count in zip(rows, (5, 4, 3))])
    for expected, found in zip(*(ctc(device, in_a_row, ((20, 18, 17), (5, 4, 3)), as_tensors, "mean") for device in ("cpu", LTC))):
        assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert fallbacks() == {}


@pytest.mark.parametrize("lengths", [((21, 18, 17), (5, 4, 3)), ((20, 18, 17), (7, 4, 3)), ((20, 18), (5, 4))], ids=str)
def test_bad_lengths_of_ctc_are_refused_at_once(lengths):
    with pytest.raises(RuntimeError, match="lengths|at least 7 at dimension 1"):
        ctc(LTC, torch.randint(1, 7, (3, 6)), lengths, False, "mean")


def test_repeat_interleave_of_a_known_sum(metrics):
    counts = torch.tensor([2, 0, 3, 1])
    x = torch.randn(4, 2)
    assert torch.repeat_interleave(counts.to(LTC), output_size=6).tolist() == torch.repeat_interleave(counts).tolist()
    gradients = []
    for device in ("cpu", LTC):
        own = x.to(device, copy=True).requires_grad_()
        torch.repeat_interleave(own, counts.to(device), dim=0, output_size=6).square().sum().backward()
        gradients.append(own.grad.cpu())
    assert_close(gradients[1], gradients[0])
    assert torch.repeat_interleave(counts.to(LTC).int(), output_size=6).dtype == torch.int32
    assert fallbacks() == {}


@pytest.mark.parametrize("counts, complaint", [([1, 2], "allocated size"), ([-1, 7], "negative")])
def test_a_wrong_sum_is_thrown_where_a_value_is_read(counts, complaint):
    result = torch.repeat_interleave(torch.tensor(counts, device=LTC), output_size=6)
    with pytest.raises(RuntimeError, match=complaint + r".* at .*test_known_sizes\.py:\d+"):
        result.cpu()


def test_assertions_wait_for_the_next_read(metrics):
    x = torch.ones(3, device=LTC)
    torch._assert_async((x > 0).all())
    torch._assert_async((x > 0).all(), "x is positive")
    torch._assert_async((x < 0).all(), "x is negative")
    ltc.mark_step()
    assert metrics.counter_value("ReadBarrier") == 0 and fallbacks() == {}
    y = x + 1
    with pytest.raises(RuntimeError, match=r"x is negative at .*test_known_sizes\.py:\d+"):
        y.cpu()
    assert y.tolist() == [2, 2, 2]


def test_assertions_wait_for_a_synchronisation():
    for wait in torch.accelerator.synchronize, lambda: ltc.sync(wait=True):
        torch._assert_async(torch.zeros((), device=LTC))
        ltc.mark_step()
        with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
            wait()
        wait()
    for _ in range(200):  # checked now and then where nothing is read
        torch._assert_async(torch.ones((), device=LTC))
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch._assert_async(torch.ones(2, device=LTC))


def test_bernoulli_of_one_probability(metrics):
    torch.manual_seed(0)
    drawn = torch.bernoulli(torch.empty(10_000, device=LTC), 0.25)
    assert 0.22 < drawn.mean().item() < 0.28 and set(drawn.tolist()) == {0.0, 1.0}
    assert fallbacks() == {}


def experts(device, offsets):
    torch.manual_seed(0)
    x, weights = torch.randn(16, 8).to(device).requires_grad_(), torch.randn(3, 8, 16).to(device).requires_grad_()
    y = F.grouped_mm(x, weights, offs=torch.tensor(offsets, dtype=torch.int32).to(device))
    gradient = torch.linspace(-1, 1, y.numel()).view(y.shape).to(device)
    return [y.detach(), *torch.autograd.grad(y, (x, weights), gradient)]


def test_groups_of_rows_compile_once(metrics):
    """How many rows each expert has is data."""
    after = []
    for offsets in ([4, 9, 16], [1, 10, 16], [0, 3, 16], [16, 16, 16]):
        for expected, found in zip(experts("cpu", offsets), experts(LTC, offsets)):
            assert found.stride() == expected.stride()
            assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)
        after.append(compiles())
    assert after[0] == after[-1]
    assert fallbacks() == {}


ROLLS = [(1, 0), (-2, 1), (7, -1), ((1, -1), (0, 1)), (100, 0), (5, ()), (0, 0)]


@pytest.mark.parametrize("shifts, dims", ROLLS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64], ids=str)
def test_roll(shifts, dims, dtype):
    x = torch.randn(3, 4).to(dtype)
    for one in (x, x.t(), x[:, :0], x[:1]):
        found, expected = torch.roll(one.to(LTC), shifts, dims), torch.roll(one, shifts, dims)
        assert found.stride() == expected.stride() or one.numel() == 0
        assert torch.equal(found.cpu(), expected)


def test_shifts_are_operands(metrics):
    x = torch.randn(3, 8)
    after = []
    for shift in (1, 2, 5, -3):
        own = x.to(LTC).requires_grad_()
        torch.roll(own, shift, 1).mul(x.to(LTC)).sum().backward()
        assert_close(own.grad.cpu(), torch.roll(x, -shift, 1))
        after.append(compiles())
    assert after[0] == after[-1]


@pytest.mark.parametrize("shifts, dims", [(1, 3), ((1, 2), 0), ((), ())], ids=str)
def test_roll_refuses_what_the_cpu_refuses(shifts, dims):
    with pytest.raises((RuntimeError, IndexError)) as expected:
        torch.roll(torch.ones(2, 3), shifts, dims)
    with pytest.raises(expected.type) as found:
        torch.roll(torch.ones(2, 3, device=LTC), shifts, dims).cpu()
    assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]
