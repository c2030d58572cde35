"""A training step and a handful of programs on the plugin of LTC_BACKEND, compared with the CPU. Prints the counters as JSON.

Run by test_sample_plugins.py, in a process per plugin.
"""

import json

import torch
import torch.nn.functional as F
from torch import nn

import ltc
from comparing import LTC, assert_both, assert_close, to_device

INF, NAN = float("inf"), float("nan")


def model():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 5))


def train(device):
    """Losses of three steps, and the parameters after them."""
    net = model().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    images, labels = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(2)), torch.tensor([0, 1, 2, 3, 4, 0])
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        ltc.mark_step()
        losses.append(loss.detach())
    return [value.detach().cpu() for value in (*losses, *net.parameters())]


def check_training():
    for lazy, cpu in zip(train(LTC), train("cpu"), strict=True):
        assert_close(lazy, cpu, rtol=1e-3, atol=1e-5)


def check_special_values():
    x = torch.tensor([NAN, INF, -INF, -0.0, 0.0, 2.5, -2.5, 3.5])
    y = torch.tensor([1.0, NAN, -INF, 0.0, -0.0, -2.0, 2.0, INF])
    assert_both(lambda x, y: (x.maximum(y), x.minimum(y), x.remainder(y), x.fmod(y), x.pow(y), x < y, x.round(), x.sign()), x, y)
    assert_both(lambda x: (x.sort(descending=True, stable=True), x.sort(stable=True), x.argmax(), x.amax(0), x.cumsum(0)), x)
    assert_both(lambda x: (x.bool(), x[3:].to(torch.int64), x[5:].half(), x.bfloat16()), x)


def check_integers():
    x = torch.tensor([-(2**31), 2**31 - 1, -7, 7, 0], dtype=torch.int32)
    y = torch.tensor([-1, 2, 3, -3, 5], dtype=torch.int32)
    assert_both(lambda x, y: (x + y, x * y, x.neg(), x.abs(), x.remainder(y), x.fmod(y), x.bitwise_left_shift(y), x.bitwise_right_shift(y), x.pow(3), x.sum(), ~x), x, y)


def check_sizes():
    empty, scalar = torch.zeros(0, 3), torch.tensor(2.0)
    assert_both(lambda e, s: (e.sum(), e.sum(0), e + s, torch.cat([e, e]), e @ e.new_zeros(3, 2), s.sum(), s.expand(2, 2) * s), empty, scalar)
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert_both(lambda x: (x.permute(2, 0, 1), x[:, ::2, 1:3], x.flip(0, 2), F.pad(x, (1, 2, -1, 0)), x.unfold(2, 2, 1), x.mean((0, 2))), x)
    assert_both(lambda e, x: (torch.cat([e, x], -2), torch.cat([x, e, x], 1), torch.cat([e, e])), torch.zeros(0), x)


def check_indexing():
    x, index = torch.randn(4, 5), torch.tensor([[0, 3, 3], [1, 0, 2]])
    assert_both(lambda x, i: (x.gather(0, i), x.scatter_add(0, i, x[:2, :3]), x[i[0]], x.index_add(0, i[0], x[:3])), x, index)


def check_varying_offsets():
    """After the first steps offsets are operands."""
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
        data = (torch.randn(40, 6) * 3).to(dtype)
        lazy, target, lazy_target = data.to(LTC), torch.zeros(8, 6, dtype=dtype), torch.zeros(8, 6, dtype=dtype, device=LTC)
        for i in range(6):
            target[i, 1::2] = data[5 * i, :3]
            lazy_target[i, 1::2] = lazy[5 * i, :3]
            piece, lazy_piece = (whole[5 * i : 5 * i + 7, 2:4].t().clone() for whole in (data, lazy))
            assert torch.equal(lazy_piece.cpu(), piece)
        assert torch.equal(lazy_target.cpu(), target)


def check_convolutions():
    x, weight = torch.randn(2, 4, 6, 5, requires_grad=True), torch.randn(6, 2, 3, 2, requires_grad=True)

    def forward_and_gradients(convolve, x, weight, **options):
        y = convolve(x, weight, **options)
        return y.detach(), *torch.autograd.grad(y.square().sum(), (x, weight))

    options = dict(stride=(2, 1), padding=1, dilation=(1, 2), groups=2)
    assert_both(lambda x, w: forward_and_gradients(F.conv2d, x, w, **options), x, weight, rtol=1e-4, atol=1e-4)
    weight = torch.randn(4, 3, 3, 2, requires_grad=True)
    assert_both(lambda x, w: forward_and_gradients(F.conv_transpose2d, x, w, **options), x, weight, rtol=1e-4, atol=1e-4)


def check_random():
    torch.manual_seed(3)
    bits = [torch.rand(7, device=LTC), torch.rand(7, dtype=torch.float64, device=LTC), torch.randint(0, 1000, (7,), device=LTC)]
    for values, bound in zip(bits, (1, 1, 1000)):
        assert 0 <= values.min().item() and values.max().item() < bound and len(values.cpu().unique()) > 3
    return [values.cpu().tolist() for values in bits]


def main():
    for check in (check_training, check_special_values, check_integers, check_sizes, check_indexing, check_varying_offsets, check_convolutions):
        check()
    randoms = check_random()
    ltc.sync()
    counters = {name: ltc.metrics.counter_value(name) for name in ltc.metrics.counter_names()}
    print(json.dumps({"counters": counters, "randoms": randoms}))


main()
