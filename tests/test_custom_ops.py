"""Ops that other libraries register with torch.library. With a shape function (register_fake) they are recorded by name, for a plugin
that claims them or for the CPU; without one they run at once on the CPU, as their results' sizes may depend on values. Those made of
other ops are recorded as these."""

import pathlib
import re

import numpy
import pytest
import torch

import ltc
from comparing import LTC, assert_both, assert_same, output_of, run_program


@torch.library.custom_op("ltc_lib::sin", mutates_args=(), device_types="cpu")
def library_sin(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(numpy.sin(x.numpy()))


@library_sin.register_fake
def _(x):
    return torch.empty_like(x)


library_sin.register_autograd(
    lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


@torch.library.custom_op("ltc_lib::scaled", mutates_args=(), device_types="cpu")
def scaled(x: torch.Tensor, n: int, scale: float = 2.0, negate: bool = False, mode: str = "sum") -> tuple[torch.Tensor, torch.Tensor]:
    y = x * n * scale * (-1 if negate else 1)
    return y, getattr(y, mode)()


@torch.library.custom_op("ltc_lib::scale_", mutates_args={"x"}, device_types="cpu")
def scale_(x: torch.Tensor, k: float) -> None:
    x.mul_(k)


@torch.library.custom_op("ltc_lib::composed", mutates_args=())
def composed(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + x


LIBRARY = torch.library.Library("ltc_lib", "FRAGMENT")
SCHEMAS = {
    "twice(Tensor x, float k=1.0) -> Tensor": lambda x, k=1.0: x * 2 * k,
    "increment_(Tensor(a!) x) -> Tensor(a!)": lambda x: x.add_(1),
    "flat(Tensor(a) x) -> Tensor(a)": lambda x: x.view(-1),
    "each(Tensor[] xs, Tensor? y=None) -> Tensor[]": lambda xs, y=None: [x + 1 if y is None else x + y for x in xs],
    "cast(Tensor x, ScalarType dtype) -> Tensor": lambda x, dtype: x.to(dtype),
    "placed(Tensor x, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool non_blocking=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor":
        lambda x, *, dtype=None, **placement: x.to(dtype),
    "total(Tensor x) -> float": lambda x: float(x.sum()),
    "positive(Tensor x) -> Tensor": lambda x: x[x > 0].clone(),
}
for schema, kernel in SCHEMAS.items():
    LIBRARY.define(schema)
    LIBRARY.impl(schema.partition("(")[0], kernel, "CPU")
torch.library.register_fake("ltc_lib::placed", lambda x, *, dtype=None, **placement: torch.empty_like(x, dtype=dtype), lib=LIBRARY)
LIBRARY.define("nowhere(Tensor x) -> Tensor")
library = torch.ops.ltc_lib


def test_recorded_by_name():
    x = torch.randn(3, device=LTC)
    y = library_sin(x * 2)
    assert "ltc_lib::sin" in ltc.graph()
    assert_same(y, (x * 2).cpu().sin())


def test_claimed_by_name(metrics):
    """The TorchScript plugin runs whatever PyTorch knows by that name."""
    x = torch.randn(3)
    on_device = x.to(LTC)
    for _ in range(3):
        y = library_sin(on_device * 2) + 1
        ltc.mark_step()
    assert_same(y, (x * 2).sin() + 1)
    assert metrics.counter_value("UncachedCompile") == 1
    assert metrics.counter_value("FallbackBarrier") == 0
    assert metrics.counter_value("ltc_lib::sin") == 0


SIN = """
    import torch, ltc

    @torch.library.custom_op("ltc_lib::sin", mutates_args=(), device_types="cpu")
    def sin(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    sin.register_fake(torch.empty_like)
    x = torch.ones(2).to("ltc")
    for _ in range(3):
        y = sin(x) + 1
        ltc.mark_step()
"""
PLUGIN_THAT_CLAIMS_NOTHING = pathlib.Path(ltc._C.__file__).parents[2] / "tests" / "plugins" / "libltc_test_memory.so"


def test_run_by_the_host_inside_the_program():
    """Without a barrier: a host step of the compiled program."""
    assert output_of(SIN + """
    value = ltc.metrics.counter_value
    print(torch.equal(y.cpu(), torch.ones(2).sin() + 1))
    print(value("ltc_lib::sin"), value("UncachedCompile"), value("FallbackBarrier"))
    """, LTC_BACKEND=str(PLUGIN_THAT_CLAIMS_NOTHING)) == "True\n3 1 0\n"


def test_forbidden_fallback_names_the_op():
    run = run_program(SIN, LTC_BACKEND=str(PLUGIN_THAT_CLAIMS_NOTHING), LTC_FALLBACK="error")
    assert run.returncode != 0 and "ltc_lib::sin" in run.stderr


def test_without_a_shape_function(metrics):
    """Run at once: only the values say how large the result is."""
    x = torch.tensor([1.0, -2.0, 3.0])
    assert_both(lambda x: library.positive(x) * 2, x)
    assert metrics.counter_value("ltc_lib::positive") == 1 and metrics.counter_value("FallbackBarrier") <= 1


def test_arguments_of_all_kinds():
    assert_both(lambda x: scaled(x, 3), torch.randn(2, 3))
    assert_both(lambda x: scaled(x, 3, 0.5, negate=True, mode="amax"), torch.randn(2, 3))
    assert_both(lambda x: library.twice(x, 3.0), torch.randn(3))
    assert_both(lambda x: library.cast(x, torch.float64), torch.randn(3))
    assert_both(lambda x, y: library.each([x, y]) + library.each([x], y), torch.randn(3), torch.randn(3))


def test_results_that_are_numbers():
    assert library.total(torch.tensor([1.0, -2.0, 3.0], device=LTC) * 2) == 4.0


def test_ops_that_write():
    def work(x):
        scale_(x[1], 3.0)  # a view: seen through its base
        y = library.increment_(x)
        return x, y is x, library.flat(x).add_(1), x

    assert_both(work, torch.randn(3, 2))


PLACEMENT = ("memory_format", "layout", "device", "pin_memory", "non_blocking", "generator")


def test_placement_is_not_sent():
    """An op that has all of these arguments, and PyTorch's own with each."""
    x = torch.randn(1, 2, 3, 4, device=LTC)
    values = [
        library.placed(x, dtype=torch.float64, layout=torch.strided, device=torch.device(LTC), pin_memory=False, non_blocking=True,
                       memory_format=torch.contiguous_format, generator=None),
        x.to(torch.float64, non_blocking=True, memory_format=torch.channels_last),
        torch.arange(4, dtype=torch.int64, layout=torch.strided, device=LTC, pin_memory=False),
        torch.empty_like(x, memory_format=torch.preserve_format).bernoulli_(0.5, generator=torch.Generator(LTC)),
    ]
    assert values[0].dtype == torch.float64
    nodes = [line for line in ltc.graph().splitlines() if " = " in line]
    assert any("ltc_lib::placed" in node and "dtype=f64" in node for node in nodes)
    names = {name for node in nodes for name in re.findall(r"(\w+)=", node.split("{")[-1])}
    assert names >= {"dtype", "size"} and names.isdisjoint(PLACEMENT)


def test_made_of_other_ops():
    x = torch.randn(3, device=LTC)
    y = composed(x)
    assert "aten::sin" in ltc.graph()
    assert_same(y, composed(x.cpu()))


def test_gradients(metrics):
    def work(x):
        x = x.clone().requires_grad_()
        (library_sin(x) * 2).sum().backward()
        return x.grad

    assert_both(work, torch.randn(3))
    x = torch.randn(3, device=LTC, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(library_sin, x) and torch.autograd.gradgradcheck(library_sin, x)


def test_transforms_and_capture():
    x = torch.randn(2, 3)
    assert_both(torch.vmap(composed), x)
    compiled = torch.compile(lambda x: library_sin(x) + 1, backend="aot_eager", fullgraph=True)
    assert_same(compiled(x.to(LTC)), x.sin() + 1)


def test_without_a_kernel():
    with pytest.raises(NotImplementedError, match="Could not run 'ltc_lib::nowhere'"):
        library.nowhere(torch.ones(2, device=LTC))


def test_error_of_the_kernel():
    LIBRARY.define("refuses(Tensor x) -> Tensor")

    def refuses(x):
        raise ValueError(f"no tensors of {x.dim()} dimensions")

    LIBRARY.impl("refuses", refuses, "CPU")
    with pytest.raises(ValueError, match="no tensors of 2 dimensions"):
        library.refuses(torch.ones(2, 2, device=LTC))


def test_kernel_for_the_device():
    """A library may bring its own, under the key of the device: PrivateUse1."""
    LIBRARY.define("own(Tensor x) -> Tensor")
    LIBRARY.impl("own", lambda x: x * 7, "PrivateUse1")
    assert library.own(torch.ones(2, device=LTC)).tolist() == [7, 7]
