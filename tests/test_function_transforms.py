"""torch.func, autograd's machinery around ops, modes and subclasses: the device beside the CPU."""

import contextlib
import functools
import gc
import warnings

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch.autograd.gradcheck import GradcheckError
from torch.autograd.graph import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

import ltc  # noqa: F401
from comparing import LTC, assert_both, assert_same, to_device


def inputs():
    torch.manual_seed(3)
    return torch.randn(3, 4), torch.randn(4, 4)


# ---- torch.func


def parameters_on(module, device):
    return {name: p.detach().to(device) for name, p in module.named_parameters()}


def loss_of(module, p, x):
    return functional_call(module, p, (x,)).square().sum()


def ensemble(x, w):
    torch.manual_seed(5)
    models = [torch.nn.Linear(4, 2) for _ in range(3)]
    stacked, _ = stack_module_state(models)
    base = torch.nn.Linear(4, 2, device="meta")
    stacked = {name: p.detach().to(x.device) for name, p in stacked.items()}
    return vmap(lambda p, x: functional_call(base, p, (x,)), in_dims=(0, None))(stacked, x)


def per_sample_gradients(x, w):
    torch.manual_seed(5)
    module = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 2, 2)), torch.nn.Conv2d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(2, 2))
    p = parameters_on(module, x.device)
    return vmap(grad(lambda p, x: loss_of(module, p, x[None])), in_dims=(None, 0))(p, x)


TRANSFORMS = {
    "grad": lambda x, w: grad(lambda x: (x.sin() ** 2).sum())(x),
    "grad of grad": lambda x, w: vmap(grad(grad(lambda x: x.sin() ** 2)))(x.flatten()),
    "vmap": lambda x, w: vmap(lambda a, b: a @ b, in_dims=(0, None))(x, w),
    "vmap out_dims": lambda x, w: vmap(lambda a: (a @ w, a.sum()), in_dims=1, out_dims=(1, 0))(x[:, :, None].expand(3, 4, 4).contiguous()[0]),
    "vmap chunked": lambda x, w: vmap(lambda a: (a @ w).softmax(-1), chunk_size=2)(x),
    "vmap in place": lambda x, w: vmap(lambda a: a.clone().mul_(2).index_fill_(0, torch.tensor([1], device=x.device), 0.0))(x),
    "vmap of vmap": lambda x, w: vmap(vmap(torch.dot, in_dims=(None, 0)), in_dims=(0, None))(x, w),
    "jvp": lambda x, w: jvp(lambda y: (y @ w).tanh(), (x,), (torch.ones_like(x),)),
    "vjp": lambda x, w: vjp(lambda y: (y @ w).tanh(), x)[1](torch.ones_like(x)),
    "jacrev": lambda x, w: jacrev(lambda y: y.tanh().sum(0))(x),
    "jacfwd": lambda x, w: jacfwd(lambda y: y.tanh().sum(0))(x),
    "hessian": lambda x, w: hessian(lambda y: y.pow(3).sum())(x[0]),
    "linearize": lambda x, w: linearize(lambda y: y.sin(), x)[1](torch.ones_like(x)),
    "functional_call": lambda x, w: grad(lambda p: loss_of(LINEAR, p, x))(parameters_on(LINEAR, x.device)),
    "per-sample gradients": per_sample_gradients,
    "ensemble": ensemble,
}
LINEAR = torch.nn.Linear(4, 2)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # linearize warns of its own doing
        assert_both(TRANSFORMS[name], *inputs(), rtol=1e-4, atol=1e-5)


RANDOM = {
    "rand": lambda x: torch.rand(50, device=x.device),
    "randn_like": torch.randn_like,
    "randint": lambda x: torch.randint(0, 1000, (50,), device=x.device),
    "randperm": lambda x: torch.randperm(50, device=x.device),
    "bernoulli": lambda x: torch.bernoulli(torch.full((50,), 0.5, device=x.device)),
    "dropout": lambda x: torch.nn.functional.dropout(torch.ones(50, device=x.device), 0.5),
}


@pytest.mark.parametrize("name", RANDOM)
def test_vmap_randomness(name):
    x = torch.zeros(4, 50, device=LTC)
    different = vmap(RANDOM[name], randomness="different")(x)
    assert different.shape == (4, 50) and not torch.equal(different[0], different[1])
    if name != "randn_like":  # of a batched tensor: refused by vmap on all devices
        same = vmap(RANDOM[name], randomness="same", out_dims=None if name != "dropout" else 0)(x)
        assert same.shape[-1] == 50 and (same.dim() == 1 or torch.equal(same[0], same[1]))
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(RANDOM[name])(x)


# ---- forward-mode derivatives, checks


def test_forward_mode():
    def derivative(x, w):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, torch.ones_like(x))
            view = (dual * 2).view(-1)[2:7]
            view.mul_(dual.flatten()[:5])
            return [forward_ad.unpack_dual(y).tangent for y in ((dual @ w).exp(), view)]

    assert_both(derivative, *inputs(), rtol=1e-4, atol=1e-4)


CHECKED = {
    "matmul": (lambda a, b: (a @ b).tanh(), torch.float64),
    "complex": (lambda a, b: (a * a.conj()) @ b, torch.complex128),
    "views": (lambda a, b: a.t()[1:].reshape(-1) * b.flatten()[:9], torch.float64),
    "in place": (lambda a, b: a.clone().mul_(2).add_(b[:, :1].sum()), torch.float64),
    "convolution": (lambda a, b: torch.conv1d(a[None], b[None, :3, :2]), torch.float64),
}


@pytest.mark.parametrize("name", CHECKED)
def test_gradcheck(name):
    function, dtype = CHECKED[name]
    a = torch.randn(3, 4, dtype=dtype, device=LTC, requires_grad=True)
    b = torch.randn(4, 4, dtype=dtype, device=LTC, requires_grad=True)
    assert torch.autograd.gradcheck(function, (a, b), check_forward_ad=name != "convolution", check_batched_grad=name != "convolution")
    assert torch.autograd.gradgradcheck(function, (a, b))
    assert torch.autograd.gradcheck(function, (a, b), fast_mode=True)


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(Wrong.apply, torch.randn(3, dtype=torch.float64, device=LTC, requires_grad=True))


def test_anomaly_mode_names_the_op():
    x = torch.zeros(2, device=LTC, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0.*nan"):
            (x.sqrt() * 0).sum().backward()


# ---- custom functions, hooks


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.save_for_backward(a, b)
        ctx.scale = scale
        ctx.mark_non_differentiable(rounded := a.round())
        return a * b * scale, rounded

    @staticmethod
    def backward(ctx, g, _):
        a, b = ctx.saved_tensors
        return g * b * ctx.scale, g * a * ctx.scale, None


class Exp(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a):
        return a.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.saved_tensors[0]


class AddOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x.add_(1))
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def test_custom_functions():
    def work(x, w):
        x = x.clone().requires_grad_()
        product, rounded = Product.apply(x, Exp.apply(x), 3.0)
        assert not rounded.requires_grad
        AddOne.apply(product).sum().backward()
        return x.grad, rounded, vmap(grad(lambda a: Exp.apply(a).sum()))(x.detach()), jvp(Exp.apply, (x.detach(),), (w[:3],))

    assert_both(work, *inputs(), rtol=1e-4, atol=1e-5)


def test_tensor_hooks():
    def work(x, w):
        log, x = [], x.clone().requires_grad_()
        x.register_post_accumulate_grad_hook(lambda t: log.append(("accumulated", t.grad.shape)))
        y = x * 2
        y.register_hook(lambda g: log.append("hook") or g * 2)
        y.grad_fn.register_prehook(lambda g: log.append("before"))
        y.grad_fn.register_hook(lambda gi, go: log.append("after"))
        y.retain_grad()
        handle = x.register_hook(lambda g: log.append("removed"))
        handle.remove()
        (y @ w).sum().backward()
        return log, x.grad, y.grad

    assert_both(work, *inputs(), rtol=1e-4, atol=1e-5)


def test_hooks_in_the_optimizer():
    """Steps taken as gradients arrive."""

    def step(p):
        p.data.sub_(0.1 * p.grad)
        p.grad = None

    def work(x, w):
        module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
        with torch.no_grad():
            for p in module.parameters():
                p.fill_(0.1)
        module.to(x.device)
        for p in module.parameters():
            p.register_post_accumulate_grad_hook(step)
        for _ in range(3):
            module(x).square().sum().backward()
        return [p.detach() for p in module.parameters()]

    assert_both(work, *inputs(), rtol=1e-4, atol=1e-5)


def test_module_hooks():
    def work(x, w):
        log, module = [], torch.nn.Linear(4, 2)
        torch.nn.init.constant_(module.weight, 0.5), torch.nn.init.zeros_(module.bias)
        module.to(x.device)
        module.register_forward_pre_hook(lambda m, i: log.append("before"))
        module.register_forward_hook(lambda m, i, o: log.append("after") or o * 2)
        module.register_full_backward_pre_hook(lambda m, g: log.append("backward"))
        module.register_full_backward_hook(lambda m, gi, go: log.append(gi[0].shape))
        x = x.clone().requires_grad_()
        module(x).sum().backward()
        return log, x.grad

    assert_both(work, *inputs())


@pytest.mark.parametrize("context", [lambda: saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(LTC)), save_on_cpu, lambda: save_on_cpu(pin_memory=True)],
                         ids=["hooks", "save_on_cpu", "pinned"])
def test_saved_tensors_elsewhere(context):
    x = inputs()[0].to(LTC).requires_grad_()
    with context():
        y = x.sin().exp()
    y.sum().backward()
    assert_same(x.grad, (x.cpu().sin().exp() * x.cpu().cos()).detach())


def test_mutation_of_saved_tensors():
    with allow_mutation_on_saved_tensors():
        x = torch.ones(2, device=LTC, requires_grad=True)
        y = x.clone()
        z = (y**2).sum()
        y.sin_()
        z.backward()
    assert x.grad.tolist() == [2, 2]


# ---- checkpointing, deep and nested graphs


def saving_products(context, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op == torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE


CHECKPOINTED = {
    "reentrant": lambda f, x: checkpoint(f, x, use_reentrant=True),
    "not reentrant": lambda f, x: checkpoint(f, x, use_reentrant=False),
    "nested": lambda f, x: checkpoint(lambda x: checkpoint(f, x, use_reentrant=False).cos(), x, use_reentrant=False),
    "nested reentrant": lambda f, x: checkpoint(lambda x: checkpoint(f, x, use_reentrant=True).cos(), x, use_reentrant=True),
    "mixed": lambda f, x: checkpoint(lambda x: checkpoint(f, x, use_reentrant=True).cos(), x, use_reentrant=False),
    "sequential": lambda f, x: checkpoint_sequential([f, torch.cos, f], 2, x, use_reentrant=False),
    "selective": lambda f, x: checkpoint(
        f, x, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, saving_products)
    ),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_checkpointing(name):
    def work(x, w):
        x = x.clone().requires_grad_()
        CHECKPOINTED[name](lambda x: (x @ w).tanh(), x).sum().backward()
        return x.grad

    assert_both(work, *inputs(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["reentrant", "not reentrant", "nested", "nested reentrant"])
def test_checkpointed_dropout_draws_the_same(name):
    def gradient(run):
        torch.manual_seed(7)
        x = torch.ones(200, device=LTC, requires_grad=True)
        run(lambda x: torch.nn.functional.dropout(x * 2, 0.5).sin(), x).sum().backward()
        return x.grad

    plain = (lambda f, x: f(x)) if "nested" not in name else (lambda f, x: f(x).cos())
    assert_same(gradient(functools.partial(CHECKPOINTED[name])), gradient(plain).cpu())


class Reenter(torch.autograd.Function):
    """Its backward runs another backward, `depth` times inside each other."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if ctx.depth > 0:
            with torch.enable_grad():
                x = torch.ones(2, device=g.device, requires_grad=True)
                Reenter.apply(x, ctx.depth - 1).sum().backward()
                g = g * x.grad
        return g, None


def test_backward_inside_backward():
    """Deeper than the 60 calls after which PyTorch hands over to another thread."""
    x = torch.ones(2, device=LTC, requires_grad=True)
    Reenter.apply(x, 150).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_deep_graph():
    """Deep enough to overflow the stack of a backward or a deletion that recurses."""
    x = torch.ones(2, device=LTC, requires_grad=True)
    y = x
    for _ in range(110_000):
        y = y * 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    z = y.detach()
    del y
    gc.collect()
    assert z.tolist() == [1, 1]


# ---- modes and subclasses see the ops


class Functions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.log.append(function.__name__)
        return function(*args, **(kwargs or {}))


class Ops(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.log.append(str(op))
        return op(*args, **(kwargs or {}))


def hot_and_cold_ops(x, w):
    return [x + x, x * 2, x @ w, x.view(-1), x.clone().add_(1), torch.zeros(2, device=x.device), x.sum(), x.neg(), x.to(torch.float64)]


@pytest.mark.parametrize("mode", [Functions, Ops])
@pytest.mark.parametrize("context", [contextlib.nullcontext, torch.no_grad, torch.inference_mode])
def test_modes(mode, context):
    """Also those that the device's own kernels take past PyTorch's autograd."""

    def seen(x, w):
        with context(), mode() as active:
            hot_and_cold_ops(x, w)
        return active.log

    assert seen(*to_device(inputs())) == seen(*inputs())


def test_subclass_sees_functions():
    class Logged(torch.Tensor):
        log = []

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.log.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    x = inputs()[0].to(LTC).as_subclass(Logged)
    y = (x + 1).mul(2)
    assert type(y) is Logged and Logged.log == ["add", "mul"]
    assert torch.Tensor.cpu(y).as_subclass(torch.Tensor).equal((inputs()[0] + 1) * 2)


class Wrapper(torch.Tensor):
    """Holds another tensor and sees the ops on it."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        args, kwargs = tree_map(lambda t: t.inner if isinstance(t, cls) else t, (args, kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, op(*args, **kwargs))


def test_wrapper_subclass():
    def work(x, w):
        leaf = Wrapper(x.clone()).requires_grad_()
        y = ((leaf + leaf) @ Wrapper(w)).relu()
        assert type(y) is Wrapper
        y.sum().backward()
        return y.inner.detach(), leaf.grad.inner

    assert_both(work, *inputs(), rtol=1e-4, atol=1e-5)


# ---- capture


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_torch_compile_captures(backend):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    compiled = torch.compile(module.to(LTC), backend=backend, fullgraph=True)
    x = inputs()[0].to(LTC).requires_grad_()
    compiled(x).square().sum().backward()
    gradients = [p.grad.cpu() for p in module.parameters()]
    module.zero_grad()
    module.cpu()(x.detach().cpu()).square().sum().backward()
    for lazy, p in zip(gradients, module.parameters(), strict=True):
        torch.testing.assert_close(lazy, p.grad, rtol=1e-4, atol=1e-5)


def test_export_and_make_fx():
    class Doubled(torch.nn.Module):
        def forward(self, x):
            return (x * 2).relu()

    x = inputs()[0]
    program = torch.export.export(Doubled(), (x.to(LTC),))
    assert_same(program.module()(x.to(LTC)), Doubled()(x))
    traced = torch.fx.experimental.proxy_tensor.make_fx(Doubled())(x.to(LTC))
    assert "aten.mul.Tensor" in traced.code and "aten.relu" in traced.code
    assert_same(traced(x.to(LTC)), Doubled()(x))


def test_jit_trace_and_script():
    x, w = inputs()
    assert_same(torch.jit.trace(lambda x: (x * 2).tanh(), x.to(LTC))(x.to(LTC)), (x * 2).tanh())

    @torch.jit.script
    def looped(x, w):
        for _ in range(3):
            x = (x @ w).tanh()
        return x

    assert_both(looped, x, w, rtol=1e-4, atol=1e-5)

    @torch.jit.script
    def indexed(x, index):
        y = x[:, index].clone()
        y[1, index] = 7.0
        return y, x[x > 0]

    assert_both(indexed, x, torch.tensor([1, 0]))
