"""Attention and its gradients by the torchscript plugin's own kernels: beside the CPU in double precision, and the same bits whoever computes them."""

import pytest
import torch
from comparing import assert_close, outputs_however_computed, run_program

LTC = torch.device("ltc")
FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
# queries, keys
LENGTHS = [(1, 1), (64, 64), (5, 7), (33, 130), (300, 270), (1, 600), (64, 17), (17, 300), (530, 9)]
MASKS = ["none", "pairs", "keys", "queries", "by columns", "one"]


def heads(steps, size, apart=True):
    """[2, 3, steps, size], as a layer of heads makes it or one head after the other."""
    return torch.randn(2, steps, 3, size).transpose(1, 2) if apart else torch.randn(2, 3, steps, size)


def mask_of(kind, queries, keys):
    pairs = torch.randn(queries, keys)
    forms = {
        "pairs": lambda: pairs.masked_fill(pairs > 1, -float("inf")),
        "keys": lambda: torch.randn(2, 1, 1, keys),
        "queries": lambda: torch.randn(1, 3, queries, 1),
        "by columns": lambda: torch.randn(keys, queries).t(),
        "one": lambda: torch.randn(1, 1),
    }
    return forms[kind]() if kind in forms else None


def run(q, k, v, g, causal, mask, scale=None):
    out, log_sums = FORWARD(q, k, v, 0.0, causal, attn_mask=mask, scale=scale)
    return out, log_sums, *BACKWARD(g, q, k, v, out, log_sums, 0.0, causal, attn_mask=mask, scale=scale)


def moved(operands, *where):
    return [x.to(*where) if isinstance(x, torch.Tensor) else x for x in operands]


def check(*operands, tolerance=1e-5):
    row_major = [x.contiguous() if isinstance(x, torch.Tensor) else x for x in operands]  # ATen takes it for granted of the last dim
    exact, eager, results = run(*moved(row_major, torch.double)), run(*operands), run(*moved(operands, LTC))
    for result, wanted, theirs in zip(results, exact, eager, strict=True):
        assert result.shape == wanted.shape
        assert result.stride() == theirs.stride()
        assert_close(result.cpu(), wanted.float(), rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("queries, keys", LENGTHS)
@pytest.mark.parametrize("causal", [False, True])
def test_lengths_and_masks(queries, keys, causal):
    for size, mask in zip([8, 16, 32, 37, 64, 80], MASKS, strict=True):
        q, k, v, g = heads(queries, size), heads(keys, size), heads(keys, size), heads(queries, size)
        check(q, k, v, g, causal, mask_of(mask, queries, keys))


@pytest.mark.parametrize("size", [1, 3, 8, 15, 16, 17, 31, 32, 33, 48, 64, 100, 128, 256])
def test_sizes_of_heads(size):
    for steps in (1, 20, 140):
        check(heads(steps, size), heads(steps, size), heads(steps, size), heads(steps, size), steps == 20, None)


def test_operands_that_lie_in_many_ways():
    joined = torch.randn(2, 40, 3, 3, 16).transpose(1, 3)
    q, k, v = joined.unbind(2)
    plain, spread = heads(40, 16, apart=False), torch.randn(2, 3, 40, 16, 2)[..., 0]
    across, repeated = torch.randn(2, 3, 16, 40).transpose(2, 3), torch.randn(1, 3, 1, 16).expand(2, 3, 40, 16)
    check(q, k, v, plain, False, None)
    check(plain, spread, across, repeated, True, None)
    check(spread, repeated, plain, across, False, torch.randn(2, 3, 40, 40).transpose(2, 3))
    check(across, plain, repeated, spread, False, torch.randn(40, 80)[:, ::2])


@pytest.mark.parametrize("dtype, tolerance", [(torch.float, 1e-5), (torch.double, 1e-10), (torch.bfloat16, 0.03), (torch.half, 4e-3)])
@pytest.mark.parametrize("order", [(0, 1, 3, 2), (3, 2, 1, 0), (2, 0, 1, 3), (1, 3, 0, 2)])
def test_operands_laid_out_by_the_program(order, dtype, tolerance):
    """Those that a program permutes stay as they lie, contiguous or not."""
    operands = [torch.randn(2, 3, 40, 16).to(dtype).permute(order).contiguous() for _ in range(4)]
    mask = torch.randn(40, 40).to(dtype)
    back = [order.index(i) for i in range(4)]

    def found(*where, masked):
        q, k, v, g = (x.to(*where).permute(back).contiguous() for x in operands)
        return run(q, k, v, g, False, mask.to(*where).t().contiguous() if masked else None)

    for masked in (False, True):
        for result, wanted in zip(found(LTC, masked=masked), found(torch.double, masked=masked), strict=True):
            assert_close(result.cpu().double(), wanted, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("dtype", [torch.float, torch.double, torch.bfloat16, torch.half])
@pytest.mark.parametrize("repeats", ["keys", "queries", "heads"])
def test_operands_that_repeat_what_they_hold(repeats, dtype):
    """One key for all steps, a few queries: what an expand leaves, without memory of its own."""
    sizes = {"keys": (2, 3, 1, 16), "queries": (2, 3, 1, 16), "heads": (2, 1, 70, 16)}[repeats]
    one, others = torch.randn(sizes).to(dtype), [torch.randn(2, 3, 70, 16).to(dtype) for _ in range(2)]
    gradient = torch.randn(2, 3, 70, 16).to(dtype)

    def found(*where):
        repeated = (one.to(*where) * 2).expand(2, 3, 70, 16)
        q, k, v = (repeated, *moved(others, *where)) if repeats == "queries" else (others[0].to(*where), repeated, others[1].to(*where))
        return run(q, k, v, gradient.to(*where), False, None)

    exact = {torch.float: 1e-5, torch.double: 1e-10, torch.bfloat16: 0.03, torch.half: 4e-3}[dtype]
    for result, wanted in zip(found(LTC), found(torch.double), strict=True):
        assert_close(result.cpu().double(), wanted, rtol=exact, atol=4 * exact)


@pytest.mark.parametrize("scale", [0.0, -0.3, 0.7, 2.5])
def test_other_scales(scale):
    check(heads(30, 24), heads(50, 24), heads(50, 24), heads(30, 24), False, None, scale)
    check(heads(30, 24), heads(50, 24), heads(50, 24), heads(30, 24), False, mask_of("pairs", 30, 50), scale)


def test_special_values():
    inf, nan = float("inf"), float("nan")
    for steps in (5, 40, 300):
        q, k, v, g = heads(steps, 16), heads(steps, 16), heads(steps, 16), heads(steps, 16)
        mask = torch.zeros(steps, steps)
        mask[1] = -inf  # sees nothing: zeros
        mask[2, 3] = nan
        mask[3, 1] = inf
        mask[4], mask[4, 0] = -inf, nan
        mask[0, 2:] = -1e30
        found, wanted = (FORWARD(*moved((q, k, v), to), 0.0, False, attn_mask=mask.to(to)) for to in (LTC, "cpu"))
        assert_close(found[0].cpu(), wanted[0], rtol=1e-5, atol=4e-6)
        # The sum of row 3 is NaN or infinite, by the lengths.
        assert_close(found[1].cpu(), wanted[1].masked_fill(wanted[1].isinf(), nan), rtol=1e-5, atol=4e-6)
        assert found[0].cpu()[:, :, 1].eq(0).all() and found[0].cpu()[:, :, 2:5].isnan().all()
        mask[2:5] = 0  # whose gradients would be all that there is
        check(q, k, v, g, False, mask)
        for place, value in ((0, nan), (1, inf), (1, -inf), (2, nan), (2, -inf)):
            changed = [x.clone() for x in (q, k, v)]
            changed[place][0, 1, 2, 3] = value
            # ATen's loses NaN here and there.
            scores = changed[0].double() @ changed[1].double().transpose(2, 3) / 4
            out, log_sums = FORWARD(*moved(changed, LTC), 0.0, False)
            assert_close(out.cpu(), (scores.softmax(-1) @ changed[2].double()).float(), rtol=1e-5, atol=4e-6)
            assert_close(log_sums.cpu().isfinite(), scores.logsumexp(-1).isfinite())


def test_far_apart_scores():
    q, k = heads(50, 32) * 40, heads(70, 32) * 40
    check(q, k, heads(70, 32), heads(50, 32), False, None, tolerance=2e-4)


def test_what_is_atens():
    q = heads(12, 16)
    for x in (q.double(), q.bfloat16()):
        found, wanted = FORWARD(*[x.to(LTC)] * 3, 0.0, True), FORWARD(x, x, x, 0.0, True)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one.cpu(), other)


def test_gradients_of_a_layer():
    torch.manual_seed(0)
    x, weight = torch.randn(3, 50, 48), torch.randn(144, 48) * 0.2

    def step(x, weight):
        x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
        q, k, v = (x @ weight.t()).view(3, 50, 3, 4, 12).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(3, 50, 48)
        (y * x).sum().backward()
        return x.grad, weight.grad

    for one, other in zip(step(x.to(LTC), weight.to(LTC)), step(x.double(), weight.double()), strict=True):
        assert_close(one.cpu(), other.float(), rtol=1e-4, atol=1e-4)


BITS = """
import hashlib, torch, ltc
torch.manual_seed(0)
torch.set_num_threads(THREADS)
digest = hashlib.sha256()
for batch, steps, size, causal in ((4, 64, 32, False), (1, 700, 40, True), (2, 300, 64, False)):
    q, k, v, g = (torch.randn(batch, steps, 3, size).to("ltc").transpose(1, 2) for _ in range(4))
    out, log_sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)
    gradients = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(g, q, k, v, out, log_sums, 0.0, causal)
    for value in (out, log_sums, *gradients):
        digest.update(value.cpu().numpy().tobytes())
print(digest.hexdigest())
"""


@pytest.mark.parametrize("capability", [None, "avx2", "default"])
def test_the_same_bits_from_any_number_of_threads(capability):
    assert len(outputs_however_computed(BITS, capability)) == 1


@pytest.mark.parametrize("capability", ["avx2", "default"])
def test_all_of_the_above_elsewhere(capability):
    tests = "lengths or sizes or lie_in or laid_out or scales or special or far or layer"
    program = f"import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {__file__!r}, '-k', {tests!r}]))"
    run = run_program(program, ATEN_CPU_CAPABILITY=capability)
    assert run.returncode == 0, run.stdout
