"""Softmax and layer norms of rows that run in one loop with the element-wise operations around them: beside the CPU, and the same bits
whoever computes them."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from comparing import assert_close, outputs_however_computed, rows_of_edges, run_program

import ltc

LTC = torch.device("ltc")
SIZES = [(1, 1), (100, 1), (7, 33), (4100, 3), (70, 128), (3, 5001), (130, 1000), (2, 3, 17, 31), (2, 3, 16, 64), (5,), (3, 70000), (0, 5), (4, 0)]
HAS_COMPILER = (Path(ltc.__file__).parent / "libltc_host_compiler.so").exists()


def check(function, *operands, **tolerance):
    """All results are wanted at once."""
    expected, results = function(*operands), function(*[x.to(LTC) for x in operands])
    ltc.mark_step()
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == wanted.shape
        assert_close(result.cpu(), wanted, **{"rtol": 3e-5, "atol": 3e-6, **tolerance})


def operands_of(sizes):
    return torch.randn(sizes), torch.randn(sizes), torch.randn(sizes[-1:]), torch.randn(sizes[-1:])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_with_what_stands_before_and_after(sizes):
    x, y, row, other = operands_of(sizes)
    shape = sizes[-1:]
    check(lambda x, y: [torch.softmax(x * 0.125 + y, -1)], x, y)
    check(lambda x, row: [torch.softmax(x, -1) * row], x, row)
    check(lambda x, y, w, b: [F.gelu(F.layer_norm(x + y, shape, w, b))], x, y, row, other)
    check(lambda x, w: [F.layer_norm(x, shape, w).tanh()], x, row)
    check(lambda x: [F.layer_norm(x * x, shape)], x)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_what_stands_between_may_be_wanted_too(sizes):
    x, y, row, other = operands_of(sizes)

    def run(x, y, w, b):
        before = x + y
        normal, mean, scale = torch.native_layer_norm(before, sizes[-1:], w, b, 1e-5)
        after = torch.sigmoid(normal) * before
        again = torch.softmax(after, -1)
        return before, normal, mean, scale, after, again, normal > 0, again * before + y

    check(run, x, y, row, other, atol=1e-4 if sizes[-1:] == (1,) else 3e-5)


def test_results_of_a_row_are_there_when_all_of_it_is():
    x = torch.randn(300, 64)

    def run(x):
        normal, mean, scale = torch.native_layer_norm(x * 2, (64,), None, None, 1e-5)
        centred = (x * 2 - mean) * scale
        total = torch.softmax(normal, -1)
        return centred - normal + 1, total.sum(1), total.mean(0), torch.softmax(total.exp().sum(1) * 1e-3, 0)

    check(run, x)


def test_weights_that_the_program_makes():
    """They have the sizes of the rows themselves, so that they might seem to be element-wise operations of the same loop."""
    x, y = torch.randn(640), torch.randn(640)
    check(lambda x, y: [F.layer_norm(x + y, (640,), x * 2, y.tanh()) * x], x, y)


def test_operands_that_lie_in_many_ways():
    x, row, column = torch.randn(200, 48), torch.randn(48), torch.randn(200, 1)
    forms = [x.t().contiguous().t(), torch.stack([x, x], -1)[..., 0], x[:1].expand(200, 48), x]
    for form in forms:
        check(lambda x, row, column: [torch.softmax(x * row + column, -1) + column], form, row, column)
        check(lambda x, row, column: [F.layer_norm(x, (48,), row) * column], form, torch.stack([row, row], -1)[:, 0], column)
        check(lambda x, flags: [torch.softmax(x.masked_fill(flags, -float("inf")), -1), flags & (x > 0)], form, x < 0.5)
    image = torch.randn(2, 8, 6, 10).contiguous(memory_format=torch.channels_last)
    check(lambda x: [torch.softmax(x * 2, -1) + x], image)


def test_over_other_dims_and_types_they_stand_apart():
    x = torch.randn(20, 30, 40)
    check(lambda x: [torch.softmax(x * 2, 1) + x, torch.softmax(x * 2, 0)], x)
    check(lambda x: [torch.softmax((x * 2).double(), -1).float() + x, torch.softmax((x * 2), -1, dtype=torch.double)], x)
    check(lambda x: [F.layer_norm(x + 1, (30, 40)) * x], x)
    check(lambda x, w: [torch.softmax(x * w, -1), F.layer_norm(x * w, (40,), w) + F.layer_norm(x * w, (30, 40))], x, torch.randn(40))


@pytest.mark.parametrize("length", [1, 5, 16, 37, 200])
def test_special_values(length):
    rows = rows_of_edges(length)
    check(lambda x: [torch.softmax(x * 1.0, -1), torch.softmax(-x, -1) * -1.0], rows, rtol=3e-6, atol=1e-43)
    small = rows[rows.abs().amax(1) != 3.4e38]  # whose squares are no infinity
    check(lambda x: [F.layer_norm(x * 1.0, (length,)) * 1.0, F.relu(F.layer_norm(-x, (length,)))], small, atol=3e-5)
    zeros = torch.full((3, length), -0.0).to(LTC)
    assert torch.signbit((torch.softmax(zeros * 1.0, -1) * -0.0).cpu()).all()


@pytest.mark.parametrize("sizes", [(33, 63), (8, 12, 16, 16), (7, 4099)], ids=str)
def test_random_numbers_are_those_of_their_positions(sizes):
    x = torch.randn(sizes).to(LTC)
    torch.manual_seed(3)
    dropped = F.dropout(torch.softmax(x * 2, -1), 0.25)
    torch.manual_seed(3)
    kept = F.dropout(torch.ones(sizes, device=LTC), 0.25)
    assert_close((torch.softmax(x * 2, -1) * kept).cpu(), dropped.cpu())


def test_a_training_step():
    x, y, w, b = torch.randn(64, 80), torch.randn(64, 80), torch.randn(80), torch.randn(80)

    def run(*operands):
        x, y, w, b = (value.detach().requires_grad_() for value in operands)
        value = F.gelu(F.layer_norm(x * 2 + y, (80,), w, b))
        (torch.softmax(value * 0.3 + y, -1) * x).sum().backward()
        return x.grad, y.grad, w.grad, b.grad

    check(run, x, y, w, b, atol=1e-4)


BITS = """
import hashlib, torch, ltc
F = torch.nn.functional
torch.manual_seed(0)
torch.set_num_threads(THREADS)
digest = hashlib.sha256()
for rows, length in ((8200, 16), (400, 336), (700, 1040), (9, 40000), (33, 63), (5000, 1)):
    x, y, row = torch.randn(rows, length).to("ltc"), torch.randn(rows, length).to("ltc"), torch.randn(length).to("ltc")
    before = x * 0.5 + y
    normal = F.layer_norm(before, (length,), row)
    weights = torch.softmax(F.gelu(normal) * row, -1)
    for value in (before, weights, F.dropout(weights, 0.2).tanh() * normal, torch.softmax(x + y, -1)):
        digest.update(value.cpu().numpy().tobytes())
print(digest.hexdigest())
"""


@pytest.mark.parametrize("capability", [None, "avx2", "default"])
def test_the_same_bits_from_any_number_of_threads_compiled_or_not(capability):
    assert len(outputs_however_computed(BITS, capability)) == 1


@pytest.mark.skipif(not HAS_COMPILER, reason="built without LLVM")
@pytest.mark.parametrize("capability", [None, "avx2", "default"])
def test_all_of_the_above_compiled(capability):
    tests = "with_what or wanted_too or lie_in or special or positions or there_when"
    program = f"import pytest, sys; sys.exit(pytest.main(['-q', '-s', '-p', 'no:cacheprovider', {__file__!r}, '-k', {tests!r}]))"
    run = run_program(program, LTC_TORCHSCRIPT_KERNELS="sync", ATEN_CPU_CAPABILITY=capability, LTC_LOG="debug")
    assert run.returncode == 0, run.stdout
    assert run.stderr.count("host kernels, ") > 5  # they are for all sizes
