"""backward() through the core: the same gradients, errors and order as PyTorch's engine, which has all that is unusual."""

import threading
import weakref

import pytest
import torch
from torch import nn
from torch.autograd.graph import GradientEdge
from torch.utils._python_dispatch import TorchDispatchMode

import ltc
from backwards import CPU, error_of, gradients, loss_of, mlp, on_both, square, inlined_nodes, within
from comparing import LTC, assert_close, assert_same, output_of

pytestmark = pytest.mark.patch("backward")


def nodes_of(*roots):
    """The nodes of a graph."""
    seen, todo = set(), [root.grad_fn for root in roots]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [following for following, _ in node.next_functions]
    return seen


# ---- what the core takes


def test_step():
    def run(device, log):
        model, x, y = mlp(device)
        for _ in range(2):
            loss = loss_of(model, x, y)
            nodes.append(len(nodes_of(loss)))
            assert loss.backward() is None
            assert torch.is_grad_enabled() and torch._C._current_graph_task_id() == -1
        return gradients(model)

    nodes = []
    assert on_both(run) == sum(nodes[2:])


def test_order_is_pytorchs():
    """Gradients that meet are added in one order: big numbers show it."""

    def run(device, log):
        x = torch.full((3,), 1e8).to(device).requires_grad_()
        parts = [x * 1e-4, x * 1.0, x * -1.0, (x * 3.0).tanh() + x * 1e-3, x[:1].sum() * 1e-5]
        sum(part.sum() for part in parts).backward()
        return x.grad

    assert on_both(run) > 10


@pytest.mark.parametrize("create_graph", [False, True])
def test_graph_is_kept(create_graph):
    def run(device, log):
        x = torch.arange(1.0, 4.0).to(device).requires_grad_()
        y = (x**3).sum()
        y.backward(retain_graph=True, create_graph=create_graph)
        first = x.grad
        assert first.requires_grad == create_graph
        if create_graph:
            first.sum().backward()
        y.backward()
        return first.detach(), x.grad.detach()

    assert on_both(run)


def test_several_roots_with_gradients():
    def run(device, log):
        x = torch.arange(1.0, 4.0).to(device).requires_grad_()
        y = x * 2
        roots = [y.exp(), y.sin(), x]  # one is a leaf
        torch.autograd.backward(roots, [torch.full((3,), float(k)).to(device) for k in range(3)])
        return x.grad

    assert on_both(run) == 5  # with the one above the roots


def test_gradient_is_stolen_where_pytorch_steals_it():
    x = torch.ones(3, device=LTC, requires_grad=True)
    gradient = torch.ones(3, device=LTC)
    x.backward(gradient)
    x.grad.zero_()
    assert gradient.tolist() == [1, 1, 1]


def test_layers_of_the_core():
    def run(device, log):
        torch.manual_seed(0)
        lstm = nn.LSTM(4, 8, 2).to(device)
        lstm(torch.randn(3, 2, 4).to(device))[0].square().sum().backward()
        return gradients(lstm)

    assert on_both(run) > 5


def test_mixed_devices():
    def run(device, log):
        torch.manual_seed(0)
        x, w = torch.randn(3, requires_grad=True), torch.ones(3).to(device).requires_grad_()
        y = (x * 2).exp()
        (y.to(device) * w).sum().backward()
        return x.grad.to(device), w.grad

    assert on_both(run) > 5


def test_graph_is_freed():
    x = torch.ones(3, device=LTC, requires_grad=True)
    y = x.exp()
    saved = weakref.ref(y)
    loss = (y * y).sum()
    loss.backward()
    del y
    assert saved() is None
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


# ---- what PyTorch's engine keeps


class Subclass(torch.Tensor):
    pass


class SeesAll(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def by_grad(device):
    x, y = square(device)
    return torch.autograd.grad(y, x)[0]


def by_inputs(device):
    x, y = square(device)
    y.backward(inputs=[x])
    return x.grad


def of_subclass(device):
    x, y = square(device)
    y.as_subclass(Subclass).backward()
    return x.grad.as_subclass(torch.Tensor)


def of_edge(device):
    x, y = square(device)
    torch.autograd.backward(GradientEdge(y.grad_fn, 0), torch.ones((), device=device))
    return x.grad


def of_no_tensor(device):
    x, y = square(device)
    y.cpu().backward()
    return x.grad


def by_func(device):
    return torch.func.grad(lambda x: (x * x).sum())(torch.arange(1.0, 4.0).to(device))


DELEGATED = {
    "grad": by_grad,
    "inputs": by_inputs,
    "anomaly": within(torch.autograd.detect_anomaly),
    "profiler": within(torch.profiler.profile),
    "mode": within(SeesAll),
    "subclass": of_subclass,
    "edge": of_edge,
    "cpu": of_no_tensor,
    "func": by_func,
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", DELEGATED)
def test_unusual_calls(name):
    assert on_both(lambda device, log: DELEGATED[name](device)) == 0
    assert on_both(lambda device, log: within(torch.no_grad)(device)) == 3  # the next one


def test_threads_of_pytorch():
    program = """
        import torch, ltc
        x = torch.ones(3, device="ltc", requires_grad=True)
        y = (x * x).sum()
        with torch.autograd.set_multithreading_enabled(True): y.backward()
        print(x.grad.tolist(), ltc.metrics.counter_value("InlinedBackwardNodes"))
    """
    assert output_of(program) == "[2.0, 2.0, 2.0] 0\n"


def test_other_attributes():
    engine = torch.autograd.Variable._execution_engine
    assert isinstance(engine, torch._C._ImperativeEngine)
    assert engine.is_checkpoint_valid()
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        engine.queue_callback(lambda: None)


def test_argument_errors():
    def errors(device):
        x = torch.ones(3).to(device).requires_grad_()
        one = torch.ones(()).to(device)
        run = torch.autograd.Variable._execution_engine.run_backward
        usual = {"allow_unreachable": True, "accumulate_grad": True}
        return [
            error_of(call)
            for call in (
                lambda: x.backward(),
                lambda: x.detach().sum().backward(),
                lambda: (x * 2).backward(one),
                lambda: (x * 2).sum().backward(x.detach().cpu()),
                lambda: (x * 2).sum().backward(1),
                lambda: torch.autograd.backward([x.sum(), x.sum()], [one]),
                lambda: torch.autograd.backward([]),
                lambda: run(),
                lambda: run((x.sum(),), (one,), False, False, (), **usual, more=1),
                lambda: run((x.sum(),), (one, one), False, False, (), **usual),
                lambda: run([x.sum()], (one,), False, False, (), **usual),
                lambda: run((x.sum(),), (None,), False, False, (), **usual),
                lambda: run((x.detach(),), (one,), False, False, (), **usual),
                lambda: run((x.sum(),), (one,), "no", False, (), **usual),
                lambda: run((x.sum(),), (one.long(),), False, False, (), **usual),
                lambda: torch.vmap(lambda v: v.sum().backward())(x),
            )
        ]

    assert errors(LTC) == errors(CPU)


def test_profiler_sees_the_nodes():
    _, y = square(LTC)
    with torch.profiler.profile() as profile:
        y.backward()
    names = {event.name for event in profile.events()}
    assert {"autograd::engine::evaluate_function: MulBackward0", "MulBackward0"} <= names


def test_compiled_backward():
    def run(device, log):
        model, x, y = mlp(device)
        compiled = torch.compile(model, backend="ltc" if device is LTC else "eager")
        loss_of(compiled, x, y).backward()
        return gradients(model)

    assert on_both(run) >= 2  # those of the loss


# ---- backward inside a backward, and in threads


class Inner(torch.autograd.Function):
    """Its backward runs another, of as many levels as are left."""

    @staticmethod
    def forward(ctx, x, levels):
        ctx.levels = levels
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        if ctx.levels:
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (Inner.apply(x.sin(), ctx.levels - 1) * x).sum().backward()
            return gradient * x.grad, None
        return gradient * 2, None


@pytest.mark.parametrize("levels", [1, 5, 70])  # from 60 on PyTorch goes on in another thread
def test_backward_inside_backward(levels):
    def run(device, log):
        x = torch.full((2,), 0.5).to(device).requires_grad_()
        (Inner.apply(x.sin(), levels) * x.exp()).sum().backward()
        return x.grad

    assert on_both(run) > 2 * levels


def test_threads():
    def work(k):
        model, x, y = models[k]
        for _ in range(20):
            model.zero_grad()
            loss_of(model, x * (k + 1), y).backward()

    models = [mlp(LTC) for _ in range(6)]
    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for k in range(6):
        model, x, y = mlp(CPU)
        loss_of(model, x * (k + 1), y).backward()
        assert_same(gradients(models[k][0]), gradients(model))


def test_threads_share_a_graph():
    def work():
        for _ in range(20):
            loss.backward(retain_graph=True)

    model, x, y = mlp(LTC)
    loss = loss_of(model, x, y)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    expected, x, y = mlp(CPU)
    loss_of(expected, x, y).backward()
    for found, one in zip(gradients(model), gradients(expected)):
        assert_close(found.cpu() / 80, one)
