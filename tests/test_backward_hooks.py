"""A user's code within a backward: hooks, functions and what they raise come when and as PyTorch has them."""

import pytest
import torch
import torch.nn.functional as F
from torch.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from backwards import error_of, gradients, loss_of, mlp, on_both, within
from comparing import LTC, output_of

pytestmark = pytest.mark.patch("backward")


# ---- hooks: the core stops before the first node that has one


def name_of_current_node():
    return torch._C._current_autograd_node().name()


HOOKS = {
    "tensor": lambda x, y, z, log: y.register_hook(lambda g: log(name_of_current_node()) or g * 2),
    "leaf": lambda x, y, z, log: x.register_hook(lambda g: log(name_of_current_node()) or g * 2),
    "accumulated": lambda x, y, z, log: x.register_post_accumulate_grad_hook(lambda t: log(t.grad.shape)),
    "multi": lambda x, y, z, log: register_multi_grad_hook([x, y], lambda gs: log([g.shape for g in gs])),
    "multi any": lambda x, y, z, log: register_multi_grad_hook([x, y], lambda g: log(g.shape), mode="any"),
    "node before": lambda x, y, z, log: y.grad_fn.register_prehook(lambda gs: log(name_of_current_node()) or (gs[0] * 2,)),
    "node after": lambda x, y, z, log: y.grad_fn.register_hook(lambda gi, go: log(name_of_current_node())),
    "retained": lambda x, y, z, log: y.retain_grad(),
    "removed": lambda x, y, z, log: y.register_hook(lambda g: log("removed")).remove(),
    "task": lambda x, y, z, log: y.register_hook(lambda g: log(torch._C._current_graph_task_id() >= 0)),
    "callback": lambda x, y, z, log: y.register_hook(
        lambda g: torch.autograd.Variable._execution_engine.queue_callback(lambda: log(x.grad is not None))
    ),
    "grad mode": lambda x, y, z, log: y.register_hook(lambda g: log(torch.is_grad_enabled())),
    "reentrant": lambda x, y, z, log: y.register_hook(torch.enable_grad()(lambda g: within(torch.no_grad)(g.device).sum() * g)),
}


@pytest.mark.parametrize("name", HOOKS)
def test_hooks(name):
    def run(device, log):
        x = torch.arange(1.0, 4.0).to(device).requires_grad_()
        y = x.sin()
        z = (y * y).exp().sum()
        HOOKS[name](x, y, z, log)
        z.backward()
        return x.grad, y.grad if y.retains_grad else None

    assert 3 <= on_both(run) <= 10


def test_nodes_that_wait_are_handed_over():
    """When the hooked node's turn comes, others have some of their gradients, in one case of two inputs."""

    def run(device, log):
        x = torch.arange(1.0, 7.0).to(device).requires_grad_()
        a = x.sin()
        first, second = (a * 2).reshape(2, 3).split([1, 1])
        hooked = first.exp()
        hooked.register_hook(lambda g: log(g.shape) or g * 3)
        (hooked * second.tanh() + first * 1e3 + a[:3] * 1e-3 + a[3:].cos()).sum().backward()
        return x.grad

    assert 3 <= on_both(run) <= 30


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        ctx.log((name_of_current_node(), torch.is_grad_enabled(), torch._C._current_graph_task_id() >= 0))
        torch.set_grad_enabled(True)  # PyTorch takes it back
        return gradient * 2, None


def test_python_function():
    def run(device, log):
        x = torch.arange(1.0, 4.0).to(device).requires_grad_()
        y = Twice.apply(Twice.apply(x.sin(), log).exp(), log)
        y.sum().backward()
        return x.grad

    assert on_both(run) == 1  # the sum


def test_hooks_of_saved_tensors():
    """They are seen by no one before they run: the node that they are called for is known by its name."""

    def run(device, log):
        x = torch.arange(1.0, 4.0).to(device).requires_grad_()

        def unpack(tensor):
            log((name_of_current_node(), torch.is_grad_enabled(), torch._C._current_graph_task_id() >= 0))
            torch.set_grad_enabled(True)  # PyTorch takes it back
            return tensor

        with saved_tensors_hooks(lambda t: t, unpack):
            y = (x.sin() * x.exp()).tanh()
        y.sum().backward()
        return x.grad

    assert on_both(run) >= 2


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(reentrant):
    def run(device, log):
        model, x, y = mlp(device)
        out = checkpoint(model, x.requires_grad_(), use_reentrant=reentrant)
        F.cross_entropy(out, y).backward()
        return [x.grad, *gradients(model)]

    assert on_both(run) > 2


# ---- errors


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise LookupError("no gradient today")


def raise_(error):
    raise error


FAILURES = {
    "function": lambda x: (Fails.apply(x.sin()) * x).sum().backward(),
    "hook": lambda x: (x.sin().register_hook(lambda g: raise_(KeyError("hook"))), x.sin().sum().backward()),
    "saved": lambda x: unpacks_badly(x).backward(),
    "freed": lambda x: [y.backward() for y in [x.exp().sum()] * 2],
    "changed": lambda x: changed_in_place(x).backward(),
    "hook's shape": lambda x: hooked(x, lambda g: g.new_zeros(7)).backward(),
    "callback": lambda x: hooked(
        x, lambda g: torch.autograd.Variable._execution_engine.queue_callback(lambda: raise_(ValueError("callback")))
    ).backward(),
}


def unpacks_badly(x):
    with saved_tensors_hooks(lambda t: t, lambda t: raise_(LookupError("unpack"))):
        return (x.sin() * x.cos()).sum()


def changed_in_place(x):
    y = x.sin()
    z = (y * y).sum()
    with torch.no_grad():
        y.zero_()
    return z


def hooked(x, hook):
    y = x.sin()
    y.register_hook(hook)
    return y.sum()


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name):
    """A node's exception arrives as it is, and the next backward of the thread is as good as any."""

    def run(device, log):
        x = torch.arange(1.0, 4.0).to(device).requires_grad_()
        log(error_of(lambda: FAILURES[name](x)))
        assert torch.is_grad_enabled()
        results = []
        for _ in range(2):
            model, x, y = mlp(device)
            loss_of(model, x, y).backward()
            results += gradients(model)
        return results

    assert on_both(run) > 10


def test_error_keeps_its_traceback():
    with pytest.raises(LookupError, match="no gradient today") as caught:
        Fails.apply(torch.ones(3, device=LTC, requires_grad=True)).sum().backward()
    assert caught.traceback[-1].name == "backward" and caught.traceback[-1].path.name == "test_backward_hooks.py"


def test_warnings_arrive():
    program = """
        import warnings, torch, ltc
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            torch.ones(3, device="ltc", requires_grad=True).exp().sum().backward(create_graph=True)
        print([str(one.message)[:37] for one in seen], ltc.metrics.counter_value("InlinedBackwardNodes"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x = torch.ones(3, device="ltc", requires_grad=True)
            torch.set_warn_always(True)
            try: x.exp().sum().backward(create_graph=True)
            except UserWarning as error: print("raised")
    """
    assert output_of(program).splitlines() == ["['Using backward() with create_graph=Tr'] 3", "raised"]
