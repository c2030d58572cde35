"""Operators that skip the dispatcher: the same results, and everybody who is to see an operator still does."""

import textwrap

import pytest
from comparing import output_of

PROGRAMS = {
    "results": """
        x, y = torch.randn(3, 4), torch.randn(4)
        a, b = x.to("ltc"), y.to("ltc")
        numbers = [2, -3, 0.5, True, 2**40, 1e300, 1 + 2j]
        def run(x, y):
            yield from (x + y, x - y, x * y, x / y, y + x, y - x, y / x, x + x[0], x.T * x.T, x.long() + 2, x.long() / 2, x.long() * 2.5)
            for n in numbers:
                yield from (x + n, n + x, x * n, n * x, x / n, n / x)
                if n is not True: yield from (x - n, n - x)
        for got, wanted in zip(run(a, b), run(x, y), strict=True):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            torch.testing.assert_close(got.cpu(), wanted, equal_nan=True)
    """,
    "errors are PyTorch's": """
        a = torch.ones(3).to("ltc")
        def message(f):
            try: f()
            except Exception as error: return type(error), str(error)
        assert message(lambda: a + torch.ones(4).to("ltc")) == message(lambda: torch.add(a, torch.ones(4).to("ltc")))
        assert message(lambda: a + torch.ones(3)) == message(lambda: torch.add(a, torch.ones(3)))
        assert message(lambda: a + "b")[0] is TypeError and message(lambda: a * 2**70) is not None
    """,
    "gradients": """
        a = torch.randn(3).to("ltc").requires_grad_()
        (a * 2 + a / 4 - a * a).sum().backward()
        torch.testing.assert_close(a.grad.cpu(), (2.25 - 2 * a.detach()).cpu())
        for f in (lambda x: x + 1, lambda x: 1.5 - x, lambda x: x - 1, lambda x: 2 * x, lambda x: x / 4, lambda x: x.half() * 2.5):
            c = a.detach().cpu().requires_grad_()
            for _ in range(2):  # the dispatcher's first
                got, wanted = f(a), f(c)
                assert got.dtype == wanted.dtype and got.grad_fn.name() == wanted.grad_fn.name()
                assert [e[0] is None for e in got.grad_fn.next_functions] == [e[0] is None for e in wanted.grad_fn.next_functions]
                torch.testing.assert_close(torch.autograd.grad(got.sum(), a)[0].cpu(), torch.autograd.grad(wanted.sum(), c)[0])
        import torch.autograd.forward_ad as fwAD
        with fwAD.dual_level():
            assert fwAD.unpack_dual(fwAD.make_dual(a.detach(), torch.ones(3).to("ltc")) * 3).tangent.tolist() == [3, 3, 3]
        assert (a.detach() * 2).requires_grad is False
    """,
    "subclasses": """
        seen = []
        class Sub(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})
        a = torch.ones(3).to("ltc")
        s = a.as_subclass(Sub)
        assert type(s + a) is Sub and type(a + s) is Sub and type(2 * s) is Sub
        assert seen == [torch.Tensor.add, torch.Tensor.add, torch.Tensor.mul] or len(seen) == 3, seen
        p = torch.nn.Parameter(a)
        assert (a - p).tolist() == [0, 0, 0] and (a / p).requires_grad
    """,
    "others may say what + is": """
        class Mine:
            def __add__(self, other): return "add"
            def __radd__(self, other): return "radd"
            def __rtruediv__(self, other): return "rtruediv"
        a = torch.ones(3).to("ltc")
        assert a + Mine() == "radd" and Mine() + a == "add" and a / Mine() == "rtruediv"
        before = torch.Tensor.__add__
        torch.Tensor.__add__ = lambda self, other: "patched"
        assert a + a == "patched"
        del torch.Tensor.__add__
        assert torch.Tensor.__add__ is before and (a + a).tolist() == [2, 2, 2]
    """,
    "modes": """
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        a = torch.ones(3).to("ltc")
        seen = []
        class Functions(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(func.__name__)
                return func(*args, **(kwargs or {}))
        class Dispatches(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))
        with Functions(): a + a
        with Dispatches(): a * 2
        assert len(seen) == 2 and "add" in seen[0] and "aten.mul" in seen[1], seen
        with torch.profiler.profile() as profile: a - a
        assert any("aten::sub" in event.name for event in profile.events())
        with torch.inference_mode(): assert (a + a).is_inference()
    """,
    "transforms": """
        a = torch.randn(5, 3).to("ltc")
        assert torch.vmap(lambda x: x * 2 + x)(a).shape == (5, 3)
        torch.testing.assert_close(torch.func.grad(lambda x: (x * x).sum())(a).cpu(), (2 * a).cpu())
        torch.testing.assert_close(torch.func.jvp(lambda x: x * x, (a,), (a,))[1].cpu(), (2 * a * a).cpu())
        traced = torch.jit.trace(lambda x: x * 2 + x, a)
        assert "aten::mul" in str(traced.graph)
        assert "aten.mul" in torch.fx.experimental.proxy_tensor.make_fx(lambda x: x * 2)(a).code
        with torch.autocast("ltc", dtype=torch.bfloat16): assert (a.bfloat16() + a).dtype == torch.float32
        assert torch.compile(lambda x: x * 2 + x, backend="ltc")(a).shape == a.shape
    """,
    "threads": """
        import threading
        def work(k):
            x = torch.full((8,), float(k)).to("ltc")
            for _ in range(500): x = x * 1.0 + 1
            results[k] = x.sum().item()
        results = {}
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert results == {k: 8 * (k + 500) for k in range(8)}, results
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    program = f"import warnings, torch, ltc\nwarnings.simplefilter('ignore')\n{textwrap.dedent(PROGRAMS[name])}\nprint('done')"
    assert "done" in output_of(program, LTC_PATCHES="operators")
