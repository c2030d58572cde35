"""backward() through the core: the same gradients, hooks, errors and order as PyTorch's engine, which has all that is unusual."""

import threading
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import GradientEdge, register_multi_grad_hook, saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import ltc
from comparing import LTC, assert_close, assert_same, output_of

CPU = torch.device("cpu")


def straight_nodes(function):
    """How many nodes the core evaluated itself while the function ran."""
    before = ltc.metrics.counter_value("StraightNodes")
    function()
    return ltc.metrics.counter_value("StraightNodes") - before


def nodes_of(*roots):
    """The nodes of a graph."""
    seen, todo = set(), [root.grad_fn for root in roots]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [following for following, _ in node.next_functions]
    return seen


def mlp(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    return model, torch.randn(5, 4).to(device), torch.randint(0, 3, (5,)).to(device)


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def gradients(model):
    return [p.grad for p in model.parameters()]


def on_both(run):
    """Calls `run(device, log)` with both devices and compares what it returns and logs; how many nodes the core evaluated."""
    logs = {CPU: [], LTC: []}
    expected = run(CPU, logs[CPU].append)
    found = []
    count = straight_nodes(lambda: found.append(run(LTC, logs[LTC].append)))
    assert_same(found[0], expected)
    assert logs[LTC] == logs[CPU]
    return count


def error_of(function):
    try:
        function()
    except Exception as error:
        return type(error), str(error).replace("ltc:0", "cpu").replace("[ltcFloatType", "[torch.FloatTensor")
    return None


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


def square(device):
    x = torch.arange(1.0, 4.0).to(device).requires_grad_()
    return x, (x * x).sum()


def by_grad(device):
    x, y = square(device)
    return torch.autograd.grad(y, x)[0]


def by_inputs(device):
    x, y = square(device)
    y.backward(inputs=[x])
    return x.grad


def within(context):
    def run(device):
        x, y = square(device)
        with context():
            y.backward()
        return x.grad

    return run


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
        print(x.grad.tolist(), ltc.metrics.counter_value("StraightNodes"))
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
    """What a node throws arrives as it is, and the next backward of the thread is as good as any."""

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
    assert caught.traceback[-1].name == "backward" and caught.traceback[-1].path.name == "test_backward_engine.py"


def test_warnings_arrive():
    program = """
        import warnings, torch, ltc
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            torch.ones(3, device="ltc", requires_grad=True).exp().sum().backward(create_graph=True)
        print([str(one.message)[:37] for one in seen], ltc.metrics.counter_value("StraightNodes"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x = torch.ones(3, device="ltc", requires_grad=True)
            torch.set_warn_always(True)
            try: x.exp().sum().backward(create_graph=True)
            except UserWarning as error: print("raised")
    """
    assert output_of(program).splitlines() == ["['Using backward() with create_graph=Tr'] 3", "raised"]


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
