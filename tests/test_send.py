"""tensor.to("ltc") of small tensors: what it gives, and that everybody who is to see the call still does.

The call with the device as a keyword goes PyTorch's way, so it says what is to come.
"""

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from comparing import LTC, assert_both, output_of

NAMES = ["ltc", "lazy", "ltc:0", torch.device("ltc"), LTC]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.t(),
    "a part": lambda x: x[1:, 1:],
    "broadcast": lambda x: x[:1].expand(4, 6),
    "one dim of one": lambda x: x[:, :1],
    "scalar": lambda x: x[0, 0],
    "empty": lambda x: x[:0],
    "more than is uploaded at once": lambda x: x.repeat(100, 100),
}


def facts(tensor):
    return tensor.device, tensor.dtype, tensor.shape, tensor.stride(), tensor.requires_grad, tensor.is_leaf, tensor._version


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_every_name_of_the_device(name):
    uploaded = torch.arange(3.0).to(name)
    assert uploaded.device == LTC and uploaded.tolist() == [0, 1, 2]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_as_pytorch_uploads(layout, dtype):
    x = LAYOUTS[layout](torch.arange(24).reshape(4, 6).to(dtype))
    uploaded, expected = x.to("ltc"), x.to(device="ltc")
    assert facts(uploaded) == facts(expected)
    assert torch.equal(uploaded.cpu(), x)


def test_the_value_is_that_of_the_call():
    x = torch.zeros(3)
    uploaded = x.to("ltc")
    x += 1
    uploaded += 2
    assert uploaded.tolist() == [2, 2, 2] and x.tolist() == [1, 1, 1]


def test_conjugates_and_negatives():
    x = torch.tensor([1 + 2j, 3 - 4j])
    assert x.conj().to("ltc").tolist() == x.conj().tolist()
    assert x.conj().imag.to("ltc").tolist() == [-2, 4]


def test_gradients_come_back():
    x = torch.arange(3.0, requires_grad=True)
    (x.to("ltc") ** 2).sum().backward()
    assert x.grad.tolist() == [0, 2, 4] and x.grad.device.type == "cpu"
    with torch.no_grad():
        assert not x.to("ltc").requires_grad


def test_forward_gradients():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.full((2,), 3.0))
        assert forward_ad.unpack_dual(dual.to("ltc") * 2).tangent.tolist() == [6, 6]


def test_inference_mode():
    with torch.inference_mode():
        assert torch.ones(2).to("ltc").is_inference()
    assert not torch.ones(2).to("ltc").is_inference()


def test_transforms():
    assert torch.vmap(lambda row: row.to("ltc") + 1)(torch.zeros(2, 3)).tolist() == [[1, 1, 1], [1, 1, 1]]
    gradient = torch.func.grad(lambda x: (x.to("ltc") ** 2).sum().to("cpu"))(torch.arange(2.0))
    assert gradient.tolist() == [0, 2]


def test_modes_see_the_call():
    seen = []

    class Function(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            seen.append(op)
            return op(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Function():
        x.to("ltc")
    with Dispatch():
        x.to("ltc")
    assert seen == [torch.Tensor.to, torch.ops.aten._to_copy.default]


def test_subclasses_see_the_call():
    seen = []

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    assert type(torch.ones(2).as_subclass(Mine).to("ltc")) is Mine and seen == [torch.Tensor.to]
    assert type(torch.nn.Parameter(torch.ones(2)).to("ltc")) is torch.Tensor


def test_profiler_sees_the_call():
    x = torch.ones(2)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        x.to("ltc")
    assert "aten::_to_copy" in {event.name for event in seen.events()}


def test_traces_have_the_call():
    traced = torch.jit.trace(lambda x: x.to("ltc") + 1, torch.ones(2), check_trace=False)
    assert "aten::to" in str(traced.graph) and traced(torch.zeros(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("device", ["ltc:77", "cuda:0", "no device", 1.5, None])
def test_errors_and_other_meanings_are_pytorchs(device):
    def outcome(call):
        try:
            return facts(call())
        except Exception as error:
            return type(error), str(error).splitlines()[0]

    x = torch.ones(2)
    assert outcome(lambda: x.to(device)) == outcome(lambda: x.to(device, non_blocking=False))


def test_unknown_dtype():
    x = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)
    with pytest.raises((RuntimeError, NotImplementedError)):
        x.to("ltc")


def test_sent_within_a_computation():
    assert_both(lambda x: (x * 2).to(x.device).cpu().to(x.device) + x, torch.arange(3.0))


def test_eager():
    assert output_of("""
    import torch, ltc
    x = torch.ones(2).to("ltc")
    print((x + x).tolist())
    """, LTC_EAGER="1") == "[2.0, 2.0]\n"
