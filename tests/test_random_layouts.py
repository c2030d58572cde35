"""LTC_TORCHSCRIPT_LAYOUTS: what the torchscript plugin computes does not depend on how values lie in memory.

The operators, networks and layers here are compared with the CPU twice: as they are, and in a process whose every value has a random
order of dims, gaps full of NaN and an offset. Only the second finds a kernel that takes strides for granted."""

import pytest
import torch
from comparing import LTC, assert_close, run_program, to_device
from torch import nn
from torch.nn import functional as F

import ltc

ATTENTION = {torch.float: 1e-5, torch.double: 1e-10, torch.bfloat16: 0.03, torch.half: 4e-3}


def gradients(function, *args):
    """The function's result, and the gradients of the floats among the arguments, with weights that tell the results apart."""
    args = [x.detach().requires_grad_(x.is_floating_point() or x.is_complex()) for x in args]
    result = function(*args)
    wanted = [x for x in args if x.requires_grad]
    weights = torch.linspace(0.5, 1.5, result.numel()).to(result.dtype).view(result.shape)
    return [result.detach(), *torch.autograd.grad(result, wanted, weights.to(result.device), allow_unused=True)]


def check(function, *args, tolerance=1e-4):
    """No run may fail either: the host would repeat it op by op, with values that lie otherwise."""
    before = ltc.metrics.counter_value("RecoveredRuns")
    for found, expected in zip(function(*to_device(args)), function(*args), strict=True):
        assert (found is None) == (expected is None)
        if expected is not None:
            assert_close(found.cpu(), expected, rtol=tolerance, atol=tolerance)
    assert ltc.metrics.counter_value("RecoveredRuns") == before


@pytest.mark.parametrize("dtype", ATTENTION)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("steps", [6, 70])
def test_attention(dtype, masked, steps):
    def attend(z, mask):
        q = (z * 2).transpose(1, 2).contiguous()[:, None]
        return F.scaled_dot_product_attention(q, q, q, mask if masked else None)

    z, mask = torch.randn(2, 8, steps).to(dtype), torch.randn(steps, steps).to(dtype)
    check(lambda z: gradients(lambda z: attend(z, mask.to(z.device)), z), z, tolerance=4 * ATTENTION[dtype])


def ints(high, *sizes):
    return torch.randint(high, sizes)


def f(*sizes):
    return torch.randn(sizes)


OPERATORS = {
    "matmul": (torch.matmul, f(3, 4, 5), f(3, 5, 6)),
    "large product": (torch.mm, f(130, 70), f(70, 140)),
    "few rows": (F.linear, f(3, 200), f(50, 200), f(50)),
    "softmax": (lambda x: (x * 2).softmax(-1), f(4, 5, 33)),
    "sums": (lambda x: x.sum(-1) + x.mean(-1), f(6, 5, 40)),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (7,), w, b), f(3, 4, 7), f(7), f(7)),
    "rms norm": (lambda x, w: F.rms_norm(x, (7,), w), f(3, 4, 7), f(7)),
    "weight norm": (lambda v, g: torch._weight_norm(v * 2, g, 0), f(6, 3, 3, 3), f(6, 1, 1, 1)),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), f(3, 4, 5, 2), f(4), f(4)),
    "batch norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), f(3, 4, 5, 2), f(4), f(4)),
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, padding=1), f(2, 3, 9, 8), f(4, 3, 3, 3), f(4)),
    "winograd": (lambda x, w: F.conv2d(x, w, padding=1), f(4, 16, 20, 18), f(16, 16, 3, 3)),
    "max pool": (lambda x: F.max_pool2d(F.relu(x), 2), f(2, 3, 8, 8)),
    "max pool of a volume": (lambda x: F.max_pool3d((x * 2).permute(0, 3, 1, 2).contiguous(), 2), f(3, 4, 8, 6)),
    "fractional pool": (lambda x: F.fractional_max_pool2d(x, 3, 2, _random_samples=torch.full((2, 3, 2), 0.4).to(x.device)), f(2, 3, 9, 9)),
    "embedding": (F.embedding, ints(9, 4, 5), f(9, 6)),
    "embedding bag": (lambda i, w: F.embedding_bag(i, w, mode="mean"), ints(9, 4, 5), f(9, 6)),
    "weighted bags": (lambda i, w, s: sum(F.embedding_bag(i, w, per_sample_weights=s * k, mode="sum") for k in range(8)),
                      ints(9, 4, 5), f(9, 6), f(4, 5)),
    "cross entropy": (lambda x, i: F.cross_entropy(x, i), f(4, 7, 5, 3), ints(7, 4, 5, 3)),
    "gather": (lambda x, i: x.gather(1, i), f(4, 7), ints(7, 4, 5)),
    "sort": (lambda x: x.sort(1)[0].cumsum(0), f(4, 7)),
    "distances": (lambda a, b: torch.cdist(a, b), f(4, 5), f(6, 5)),
    "complex": (lambda x: torch.view_as_complex(x.sin()).abs(), f(4, 3, 2)),
    "bits": (lambda x: torch.view_as_real(x * 2).clone().view(4, -1), torch.randn(4, 3, dtype=torch.cfloat)),
    "solve": (torch.linalg.solve, f(4, 4) + 4 * torch.eye(4), f(4, 2)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name):
    function, *args = OPERATORS[name]
    check(lambda *args: gradients(function, *args), *args)


MODULES = {
    "images": lambda: (nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                                     nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 64, 5)), f(4, 3, 16, 16)),
    "encoder": lambda: (nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), f(3, 10, 16)),
    "LSTM": lambda: (First(nn.LSTM(6, 8, 2, bidirectional=True)), f(5, 3, 6)),
    "GRU": lambda: (First(nn.GRU(6, 8, 2)), f(5, 3, 6)),
}  # fmt: skip


class First(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


@pytest.mark.parametrize("name", MODULES)
def test_two_steps_and_an_evaluation(name):
    def results(x):
        torch.manual_seed(0)
        model = MODULES[name]()[0].to(x.device).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        losses = []
        for _ in range(2):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        with torch.no_grad():
            return [*losses, model.eval()(x), *(p.detach() for p in model.parameters())]

    check(results, MODULES[name]()[1], tolerance=2e-3)


@pytest.mark.parametrize("seed", [1, 2])
def test_all_of_the_above_in_random_layouts(seed):
    tests = "attention or operator or two_steps"
    program = f"import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-n', '0', {__file__!r}, '-k', {tests!r}]))"
    run = run_program(program, LTC_TORCHSCRIPT_LAYOUTS=f"random:{seed}")
    assert run.returncode == 0, run.stdout + run.stderr


# ---- the mode itself


def in_random_layout(tensor, seed):
    torch.ones(1, device=LTC).cpu()  # loads the plugin
    return torch.ops.ltc_torchscript.in_random_layout(tensor, seed)


def has_gaps(tensor):
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) > tensor.numel()


@pytest.mark.parametrize("dtype", [torch.float, torch.bfloat16, torch.long, torch.bool, torch.cdouble])
def test_layouts_hold_the_value(dtype):
    value = torch.randint(2, (3, 1, 4, 5)).to(dtype)
    layouts = [in_random_layout(value, seed) for seed in range(100)]
    assert all(torch.equal(one, value) for one in layouts)
    assert len({one.stride() for one in layouts}) > 50
    assert 5 < sum(one is value or one.data_ptr() == value.data_ptr() for one in layouts) < 50
    assert any(one.storage_offset() for one in layouts) and any(has_gaps(one) for one in layouts)
    assert [one.stride() for one in layouts] == [in_random_layout(value, seed).stride() for seed in range(100)]


def test_gaps_are_poisoned():
    for dtype, is_poison in ((torch.half, torch.isnan), (torch.int, lambda x: x > 1 << 30)):
        memories = [in_random_layout(torch.zeros(6, 7, dtype=dtype), seed) for seed in range(20)]
        wholes = [x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0) for x in memories]
        assert any(len(whole) > 42 for whole in wholes)
        for whole in wholes:
            assert (whole.eq(0) | is_poison(whole)).all() and whole.eq(0).sum() == 42


WRITES_A_GAP = """
import torch, ltc
torch.ones(1, device="ltc").cpu()
for seed in range(20):
    x = torch.ops.ltc_torchscript.in_random_layout(torch.ones(6, 7), seed)
    whole = x.as_strided((x.untyped_storage().nbytes() // 4,), (1,), 0)
    whole.nan_to_num_(7.0)
"""


def test_a_write_beside_the_elements_ends_the_process():
    run = run_program(WRITES_A_GAP)
    assert run.returncode < 0
    assert "something was written beside the elements of a Float[6, 7] with strides" in run.stderr


@pytest.mark.parametrize("value", ["random", "random:", "random:x", "random:-1", "3"])
def test_other_words_are_refused(value):
    run = run_program("import torch, ltc; torch.ones(1, device='ltc')", LTC_TORCHSCRIPT_LAYOUTS=value)
    assert run.returncode != 0
    assert f"layouts is '{value}'; it may be random:SEED" in run.stderr
