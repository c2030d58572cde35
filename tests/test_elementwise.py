"""Ops element by element, forward and backward, against the CPU: dtypes, in place, into `out`."""

import pytest
import torch
import torch.nn.functional as F

import ltc  # noqa: F401
from comparing import LTC, assert_both
from op_samples import check, f, i, pos, unit

# ---- element by element

UNARY = ("abs ceil floor round trunc frac sign exp exp2 expm1 sin cos tan tanh sinh cosh asinh atan erf erfc sigmoid neg square relu "
         "positive deg2rad sinc isnan isinf isfinite signbit logical_not sgn").split()
UNARY_POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma".split()
UNARY_UNIT = "asin acos atanh erfinv".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    op = getattr(torch, name)
    check(op, [f(3, 4)])
    check(lambda x: op(x.t()[1:]), [f(3, 4)])


@pytest.mark.parametrize("name", UNARY_POSITIVE)
def test_unary_of_positive(name):
    check(getattr(torch, name), [pos(3, 4)])


@pytest.mark.parametrize("name", UNARY_UNIT)
def test_unary_of_unit(name):
    check(getattr(torch, name), [unit(3, 4)])


@pytest.mark.parametrize("name", "abs neg sign square sin exp sqrt isnan bitwise_not logical_not".split())
def test_unary_of_integers(name):
    assert_both(getattr(torch, name), i(3, 4).abs())


@pytest.mark.parametrize("name", "abs angle exp sin sqrt reciprocal conj_physical real imag sgn".split())
def test_unary_of_complex(name):
    assert_both(getattr(torch, name), torch.randn(3, 4, dtype=torch.complex64))


BINARY = "add sub mul div atan2 maximum minimum fmax fmin hypot logaddexp pow remainder fmod eq ne lt le gt ge copysign".split()


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    op = getattr(torch, name)
    check(op, [pos(3, 4), pos(3, 4)])
    check(op, [pos(3, 1), pos(2, 1, 4)])
    check(op, [pos(4, 3).detach().t().requires_grad_(), pos(3, 4)])
    check(op, [pos(3, 4), pos()])


SAMPLES = {
    torch.bool: torch.tensor([True, False, True]),
    torch.uint8: torch.tensor([3, 1, 200], dtype=torch.uint8),
    torch.int32: torch.tensor([3, -1, 2], dtype=torch.int32),
    torch.int64: torch.tensor([3, -1, 2]),
    torch.float16: torch.tensor([0.5, -1, 2], dtype=torch.float16),
    torch.bfloat16: torch.tensor([0.5, -1, 2], dtype=torch.bfloat16),
    torch.float32: torch.tensor([0.5, -1, 2]),
    torch.float64: torch.tensor([0.5, -1, 2], dtype=torch.float64),
    torch.complex64: torch.tensor([0.5, 1j, 2 + 1j]),
}


# The CPU cannot divide the first. PyTorch has the second since 2.14; the device does not.
HALF_COMPLEX = {torch.complex32, getattr(torch, "bcomplex32", None)}


@pytest.mark.parametrize("dtype", SAMPLES, ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "true_divide"])
def test_type_promotion(name, dtype):
    op = getattr(torch, name)
    x = SAMPLES[dtype]
    for other in SAMPLES.values():
        assert_both(op, x, other)
        if torch.result_type(x, other[2]) not in HALF_COMPLEX:
            assert_both(op, x, other[2])  # 0-dim does not promote within a category
    for number in (2, 2.5, True) if torch.result_type(x, 1j) in HALF_COMPLEX else (2, 2.5, True, 1 + 2j):
        assert_both(lambda x: (op(x, number), op(number, x)), x)


def test_python_numbers():
    def results(x, n):
        return (x + 1, 1 + x, x - 2.5, 2.5 - x, x * True, x / 3, 3 / x, x // 2, x % 2, x ** 2, x ** 0.5, 2 ** x, x ** -1, x > 1, 1 > x,
                n + 1, n + 1.5, n * True, n / 2, n // 2, n % 3, n ** 2, n & 1, n | 2, n ^ 3, n << 1, n >> 1, -n, ~n, abs(n), n == 2,
                torch.add(x, 1, alpha=2), torch.sub(x, x, alpha=0.5), torch.add(n, n, alpha=3), torch.where(x > 1, x, 0.0),
                torch.clamp(x, 0.6, 1.2), torch.clamp(n, min=-1), n.clamp(max=2), torch.rsub(x, 2), x.lerp(x * 2, 0.25),
                x.add(float("inf")), x.mul(float("nan")), n + 2**40, n.float() + 2**60)

    assert_both(results, pos(3, 4).detach(), i(3, 4))


def test_integer_division_and_shifts():
    def results(x, y):
        return (x // y, x % y, torch.div(x, y, rounding_mode="trunc"), torch.div(x, y, rounding_mode="floor"), x.float() // y, x.fmod(y),
                x & y, x | y, x ^ y, x << (y.abs() % 4), x >> (y.abs() % 4), torch.gcd(x, y), x.bool() & y.bool(), torch.logical_xor(x, y))

    assert_both(results, i(5, 5), i(5, 5) + 20)


def test_division_by_zero():
    assert_both(lambda x: (x / 0, 0 / x, -x / 0.0, x % 0, x.log()), torch.tensor([0.0, 1, -1]))
    for device in (LTC, "cpu"):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            (torch.tensor([1, 2], device=device) // torch.tensor([0, 1], device=device)).cpu()


IN_PLACE = {
    "add_": lambda x, y: x.add_(y),
    "sub_alpha": lambda x, y: x.sub_(y, alpha=2),
    "mul_number": lambda x, y: x.mul_(3),
    "div_": lambda x, y: x.div_(y),
    "iadd_row": lambda x, y: x.add_(y[0]),
    "pow_": lambda x, y: x.pow_(2),
    "exp_": lambda x, y: x.exp_(),
    "relu_": lambda x, y: x.relu_(),
    "clamp_": lambda x, y: x.clamp_(0.6, 1.0),
    "sigmoid_": lambda x, y: x.sigmoid_(),
    "addcmul_": lambda x, y: x.addcmul_(y, y, value=0.5),
    "addcdiv_": lambda x, y: x.addcdiv_(y, y + 1, value=0.5),
    "lerp_": lambda x, y: x.lerp_(y, 0.3),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 1, 7.0),
    "fill_tensor": lambda x, y: x.fill_(y[0, 0]),
    "zero_": lambda x, y: x.zero_(),
    "eq_": lambda x, y: x.eq_(y),
    "logical_and_": lambda x, y: x.logical_and_(y > 1),
    "tril_": lambda x, y: x.tril_(),
    "t_": lambda x, y: x.t_(),
    "squeeze_": lambda x, y: x.unsqueeze_(0).squeeze_(0),
    "transpose_": lambda x, y: x.transpose_(0, 1).add_(1),
    "index_add_": lambda x, y: x.index_add_(0, torch.tensor([0, 2], device=x.device), y[:2], alpha=2),
    "index_fill_": lambda x, y: x.index_fill_(1, torch.tensor([1, 3], device=x.device), 5),
    "index_copy_": lambda x, y: x.index_copy_(0, torch.tensor([2, 0], device=x.device), y[:2]),
    "scatter_": lambda x, y: x.scatter_(1, torch.tensor([[0, 1], [2, 3]], device=x.device), y[:2, :2]),
    "scatter_number": lambda x, y: x.scatter_(1, torch.tensor([[0], [2]], device=x.device), 9.0),
    "scatter_add_": lambda x, y: x.scatter_add_(0, torch.zeros(3, 4, dtype=torch.int64, device=x.device), y),
    "masked_scatter_": lambda x, y: x.masked_scatter_(y > 1, y * 2),
    "copysign_": lambda x, y: x.copysign_(-y),
    "cumsum_": lambda x, y: x.cumsum_(1),
    "swap": lambda x, y: (x.mul_(y), y.add_(x), x.sub_(y)),
    "set_columns": lambda x, y: x[:, ::2].copy_(y[:, :2]),
    "baddbmm_": lambda x, y: x.view(1, 3, 4).baddbmm_(y.view(1, 3, 4), torch.ones(1, 4, 4, device=x.device)),
    "addmm_": lambda x, y: x.addmm_(y, torch.ones(4, 4, device=x.device), beta=0.5, alpha=2),
    "nan_to_num_": lambda x, y: x.log_().nan_to_num_(),
    "erfinv_": lambda x, y: x.mul_(0.1).erfinv_(),
    "addmv": lambda x, y: x[:, 0].addmv_(y, torch.ones(4, device=x.device)),
    "hardtanh_": lambda x, y: F.hardtanh_(x),
    "leaky_relu_": lambda x, y: F.leaky_relu_(x, 0.1),
    "elu_": lambda x, y: F.elu_(x.sub_(1)),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name):
    """On a whole tensor, and on a view of a larger one."""

    def results(x, y, big):
        out = IN_PLACE[name](x, y)
        if name not in ("t_", "squeeze_", "transpose_", "baddbmm_"):
            IN_PLACE[name](big[1:4, ::2], y.clone())
        return out, x, y, big

    assert_both(results, pos(3, 4).detach(), pos(3, 4).detach(), pos(5, 8).detach())


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_in_place_keeps_dtype_or_raises():
    assert_both(lambda n: n.add_(2).mul_(True), i(3))
    assert_both(lambda h: h.add_(torch.ones(3, device=h.device)), torch.ones(3, dtype=torch.float16))
    for device in (LTC, "cpu"):
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            torch.ones(3, dtype=torch.int64, device=device).add_(1.5)
        with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
            torch.ones(3, device=device).add_(torch.ones(2, 3, device=device))
        with pytest.raises(RuntimeError, match=r"output with shape \[1, 3\] doesn't match the broadcast shape \[2, 3\]"):
            torch.ones(1, 3, device=device).ldexp_(torch.ones(2, 3, device=device))
        with pytest.raises(RuntimeError, match=r"output with shape \[1, 3\] doesn't match the broadcast shape \[2, 3\]"):
            torch.ones(1, 3, device=device).logical_and_(torch.ones(2, 3, device=device))
        with pytest.raises(RuntimeError, match="2D tensor expected"):
            torch.ones((), device=device).addr_(torch.ones(2, device=device), torch.ones(3, device=device))


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_in_place_on_what_it_resizes():
    assert_both(lambda x, y: x.addbmm_(y, y), torch.tensor(3.0), f(2, 3, 3).detach())


def test_complex_ends():
    assert_both(lambda x: torch.linspace(1j, 2, 5, device=x.device) + x, f(5).detach())


# ---- out=


def test_out():
    def results(x, y):
        out = torch.empty(3, 4, device=x.device)
        same = torch.add(x, y, out=out)
        assert same is out
        resized = torch.empty(0, device=x.device)
        torch.mul(x, y, out=resized)
        strided = torch.zeros(4, 3, device=x.device).t()
        torch.sub(x, y, out=strided)
        view = torch.zeros(5, 8, device=x.device)
        torch.exp(x, out=view[1:4, ::2])
        wide = torch.empty(3, 4, device=x.device, dtype=torch.float64)
        torch.mul(x, 2, out=wide)
        itself = x.clone()
        torch.add(itself, itself, out=itself)
        product = torch.mm(x, y.t(), out=torch.empty(0, device=x.device))
        total = torch.sum(x, 1, out=torch.empty(0, device=x.device))
        values, places = torch.max(x, 1, out=(torch.empty(0, device=x.device), torch.empty(0, device=x.device, dtype=torch.int64)))
        joined = torch.cat([x, y], out=torch.empty(0, device=x.device))
        steps = torch.arange(3, out=torch.empty(0, device=x.device))
        chosen = torch.index_select(x, 0, torch.tensor([1], device=x.device), out=torch.empty(0, device=x.device))
        ordered = torch.sort(x, out=(torch.empty(0, device=x.device), torch.empty(0, device=x.device, dtype=torch.int64)))
        compared = torch.lt(x, y, out=torch.empty(0, device=x.device, dtype=torch.bool))
        return (out, resized, strided, view, wide, itself, product, total, values, places, joined, steps, chosen, tuple(ordered), compared)

    assert_both(results, pos(3, 4).detach(), pos(3, 4).detach())


@pytest.mark.parametrize("device", ["cpu", "ltc"])
def test_wrong_out(device):
    x = torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.add(x, x, out=torch.empty(3, dtype=torch.int64, device=device))
    with pytest.raises(RuntimeError):
        torch.mm(torch.ones(2, 2, device=device), torch.ones(2, 2, device=device), out=torch.empty(2, 2, dtype=torch.int64, device=device))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(x.clone().requires_grad_(), 1, out=torch.empty(3, device=device))


def test_resized_out_warns_as_on_cpu():
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(torch.ones(3, device=LTC), 1, out=torch.empty(2, device=LTC))
