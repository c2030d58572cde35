"""torch.compile(backend="ltc"): the results of eager mode, nothing recorded after the first call."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ltc
from ltc._captured import CapturedFunction
from checking import fallbacks
from comparing import LTC, assert_same, output_of, to_device
from models import hugging_face


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def compiled(function, **options):
    return torch.compile(function, backend="ltc", **options)


def same_twice(function, *args, **options):
    """Runs it on the CPU and, compiled, three times on the device: nothing is recorded by the last two."""
    expected = function(*args)
    run, given = compiled(function, **options), to_device(args)
    assert_same(run(*given), expected)
    ltc.sync()
    ltc.metrics.reset()
    for _ in range(2):
        assert_same(run(*given), expected)
    assert ltc.metrics.counter_value("CapturedCalls") >= 2
    assert ltc.metrics.counter_value("UncachedCompile") == 0
    assert ltc.metrics.counter_value("OpsRecorded") == 0


def test_is_listed():
    assert "ltc" in torch._dynamo.list_backends()


@torch.no_grad()
def test_a_function():
    same_twice(lambda x, y: (x * 2 + y).relu().sum(0), torch.randn(4, 5), torch.randn(4, 5), fullgraph=True)


@torch.no_grad()
def test_finds_the_program_of_the_same_ops_recorded(metrics):
    def function(x, y):
        return (x @ y).tanh()

    x, y = to_device((torch.randn(3, 3), torch.randn(3, 3)))
    traced = function(x, y).cpu()
    compiles = metrics.counter_value("UncachedCompile")
    assert torch.equal(compiled(function)(x, y).cpu(), traced)
    assert metrics.counter_value("UncachedCompile") == compiles


@torch.no_grad()
def test_results_of_all_kinds():
    def function(x, y, n):
        return x, x[1:], y.t(), x * n, None, "text", n, y.t().mul(2).t()

    same_twice(function, torch.randn(4, 5), torch.randn(2, 3), 3)


@torch.no_grad()
def test_results_that_alias_each_other():
    def function(x):
        y = x * 2
        return y, y[0], y.view(-1)

    y, row, flat = compiled(function)(torch.ones(2, 3, device=LTC))
    y, row, flat = compiled(function)(torch.ones(2, 3, device=LTC))
    row.add_(1)
    assert y.tolist() == [[3, 3, 3], [2, 2, 2]]
    assert flat.tolist() == [3, 3, 3, 2, 2, 2]


@torch.no_grad()
def test_arguments_are_written():
    def function(x, y):
        x.add_(y)
        y[0] = 7
        return x.sum()

    run = compiled(function)
    cpu = torch.randn(3, 2), torch.randn(3, 2)
    device = to_device(cpu)
    for _ in range(3):
        assert_same(run(*device), function(*cpu))
        assert_same(device, cpu)
    assert device[0]._version > 0


@torch.no_grad()
def test_arguments_that_alias_each_other():
    def function(x, y):
        x.add_(1)
        return y * 2

    run, base = compiled(function), torch.zeros(4, device=LTC)
    assert run(base, torch.zeros(4, device=LTC)).tolist() == [0, 0, 0, 0]
    assert run(base, base.view(4)).tolist() == [4, 4, 4, 4]
    assert run(base[:2], base[1:3]).tolist() == [6, 4]
    assert base.tolist() == [3, 3, 2, 2]


@torch.no_grad()
def test_a_call_reads_what_was_recorded_before_it(metrics):
    run, x = compiled(lambda x: x * 2), torch.ones(3, device=LTC)
    run(x)
    y = run(x + 1)  # recorded, and not run yet
    assert y.tolist() == [4, 4, 4]
    assert (run(y) + run(y)).tolist() == [16, 16, 16]


@torch.no_grad()
def test_other_geometries_are_other_captures():
    run = compiled(lambda x: x.sum(0) * 2, dynamic=False)
    for x in torch.randn(2, 3), torch.randn(3, 2), torch.randn(3, 2).t(), torch.randn(2, 6)[:, ::2], torch.randn(2, 3).double():
        on_device = to_device(torch.empty(0, dtype=x.dtype)).new_empty_strided(x.shape, x.stride()).copy_(x)
        assert_same(run(on_device), x.sum(0) * 2)


@torch.no_grad()
def test_dynamic_sizes():
    run = compiled(lambda x: x.softmax(0).view(-1)[: x.shape[0]] * x.shape[0], dynamic=True)
    for size in 4, 5, 6, 4:
        x = torch.randn(size, 3)
        assert_same(run(x.to(LTC)), x.softmax(0).view(-1)[:size] * size)


@torch.no_grad()
def test_random_numbers_are_drawn_anew_and_as_recorded():
    def function(x):
        return F.dropout(x, 0.5) + torch.rand_like(x)

    run, x = compiled(function), torch.ones(64, device=LTC)
    torch.manual_seed(3)
    captured = [run(x).cpu() for _ in range(3)]
    torch.manual_seed(3)
    recorded = [function(x).cpu() for _ in range(3)]
    assert not torch.equal(captured[0], captured[1])
    for one, other in zip(captured, recorded):
        assert torch.equal(one, other)


@torch.no_grad()
def test_a_graph_break():
    def function(x):
        x = x * 2
        if x.sum() > 0:
            return x + 1
        return x - 1

    run = compiled(function)
    for _ in range(2):
        assert run(torch.ones(3, device=LTC)).tolist() == [3, 3, 3]
        assert run(-torch.ones(3, device=LTC)).tolist() == [-3, -3, -3]


@torch.no_grad()
def test_a_value_that_is_asked_for_under_fullgraph_is_an_error():
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(lambda x: x + 1 if x.sum() > 0 else x, fullgraph=True)(torch.ones(3, device=LTC))


@torch.no_grad()
def test_tensors_held_by_the_graph():
    held = torch.arange(3.0, device=LTC)
    run = compiled(lambda x: x * torch.tensor([1.0, 2.0, 3.0], device=LTC) + held)
    for _ in range(2):
        assert run(torch.ones(3, device=LTC)).tolist() == [1, 3, 5]
    held.zero_()
    assert run(torch.ones(3, device=LTC)).tolist() == [1, 2, 3]


@torch.no_grad()
def test_a_tensor_of_the_cpu_is_sent_at_each_call():
    run, scale = compiled(lambda x, scale: x * scale), torch.tensor(2.0)
    for value in 2.0, 3.0:
        scale.fill_(value)
        assert run(torch.ones(2, device=LTC), scale).tolist() == [value, value]


@torch.no_grad()
def test_a_graph_that_computes_on_both_devices():
    run = compiled(lambda x, step: x * (step + 1))
    for value in 1.0, 2.0:
        assert run(torch.ones(2, device=LTC), torch.tensor(value)).tolist() == [value + 1, value + 1]


def recorded_by(call):
    """How many ops were recorded meanwhile."""
    before = ltc.metrics.counter_value("OpsRecorded")
    call()
    return ltc.metrics.counter_value("OpsRecorded") - before


@torch.no_grad()
def test_a_changing_float_records_and_compiles_nothing(metrics):
    def function(x, s):
        return (x * s + s).sum() + 2.5

    run, x = compiled(function), torch.rand(10)
    on_device = x.to(LTC)
    for s in 0.5, 1.5, 2.5:  # a constant to TorchDynamo at first, then a number; the third tells it from the other 2.5
        assert_same(run(on_device, s), function(x, s))
    compiles = metrics.counter_value("UncachedCompile")
    for s in 3.5, -0.0, math.inf, 3.5:
        assert recorded_by(lambda s=s: assert_same(run(on_device, s), function(x, s))) == 0
    assert metrics.counter_value("UncachedCompile") == compiles


@torch.no_grad()
def test_a_changing_int_records_nothing_unless_it_is_a_size():
    def scale(x, n):
        return torch.add(x, x, alpha=n) * (n * 2 + 1)

    def cut(x, n):
        return x[:n] * n

    x = torch.rand(40)
    on_device = x.to(LTC)
    for function, is_size in (scale, False), (cut, True):
        run = compiled(function)
        for n in 3, 4, 5:
            assert_same(run(on_device, n), function(x, n))
        assert bool(recorded_by(lambda: assert_same(run(on_device, 7), function(x, 7)))) == is_size  # noqa: B023
        assert_same(run(on_device, 4), function(x, 4))


@torch.no_grad()
def test_numbers_that_were_equal_may_differ():
    def function(x, a, b):
        return x * a + b, a, b + 1

    run, x = compiled(function, dynamic=True), torch.rand(4)
    on_device = x.to(LTC)
    for a, b in (0.5, 0.5), (1.5, 1.5), (2.5, 2.5), (2.5, 3.5), (4.5, 2.5), (6.5, 7.5), (8.5, 8.5):
        assert_same(run(on_device, a, b), function(x, a, b))
    assert recorded_by(lambda: assert_same(run(on_device, 3.5, 9.5), function(x, 3.5, 9.5))) == 0


def test_a_changing_number_in_training():
    def function(x, s):
        return (x * s).exp().sum() * s

    run, x = compiled(function), torch.rand(6)
    on_device = x.to(LTC).requires_grad_()
    x.requires_grad_()
    for s in 0.5, 1.5, 2.5, 3.5:
        ops = recorded_by(lambda s=s: run(on_device, s).backward())
        function(x, s).backward()
        assert_same(on_device.grad, x.grad, rtol=1e-5, atol=1e-6)
    assert ops <= 1  # the gradients are added up


@torch.no_grad()
def test_tensors_of_the_cpu_change_between_their_uses():
    def function(x, step):
        step.add_(1)
        x = x * step
        step.mul_(3)
        return x + step, step, step * 2

    run, x, step, reference = compiled(function), torch.rand(4), torch.tensor(1.0), torch.tensor(1.0)
    for i in range(3):
        before = ltc.metrics.counter_value("Captures")
        (result, *counters), (expected, *others) = run(x.to(LTC), step), function(x, reference)
        assert_same(result, expected)
        assert counters == others
    assert ltc.metrics.counter_value("Captures") == before


def test_a_model_left_on_the_cpu_is_refused():
    with pytest.raises(Exception, match=r"move the model and its inputs there first, with \.to\('ltc'\)"):
        compiled(nn.Linear(2, 2))(torch.ones(1, 2))


@torch.no_grad()
def test_a_function_of_tensors_of_the_cpu_runs_there_with_a_warning():
    with pytest.warns(UserWarning, match=r"a graph without a tensor on device ltc.*\.to\('ltc'\)"):
        result = compiled(lambda x: x + 1)(torch.ones(2))
    assert result.device.type == "cpu" and result.tolist() == [2, 2]


@torch.no_grad()
def test_autocast():
    def function(x, y):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return x @ y

    x, y = torch.randn(4, 4, device=LTC), torch.randn(4, 4, device=LTC)
    for _ in range(2):
        assert compiled(function)(x, y).dtype == torch.bfloat16


def test_hooks_and_buffers():
    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        model[0].register_forward_hook(lambda module, args, output: output * 2)
        return model

    model, reference, x = make().to(LTC), make(), torch.randn(8, 4)
    run = compiled(model)
    for _ in range(3):
        assert_same(run(x.to(LTC)), reference(x), rtol=1e-4, atol=1e-5)
    assert_same(dict(model.named_buffers()), dict(reference.named_buffers()))


def test_eager_mode_records_each_call():
    program = """
        import torch, ltc
        run, jitted, x = torch.compile(lambda x: x * 2, backend="ltc"), ltc.jit(lambda x: x + 1), torch.ones(2, device="ltc")
        print([run(x).tolist(), run(x).tolist(), jitted(x).tolist()], ltc.metrics.counter_value("Captures"))
    """
    assert output_of(program, LTC_EAGER="1").strip() == "[[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]] 0"


@torch.no_grad()
def test_what_cannot_be_captured_is_recorded_at_each_call():
    run, x = compiled(lambda x: torch.poisson(x) * 0 + x), torch.ones(2).to(LTC)
    with pytest.warns(UserWarning, match="records a compiled graph again at each call: .* at .*test_compile.py"):
        assert run(x).tolist() == [1, 1]
    assert run(x).tolist() == [1, 1]


# ---- training: forward, backward and the optimizer


class Lstm(nn.Module):
    """A cell written out."""

    def __init__(self, size=8):
        super().__init__()
        self.gates, self.size = nn.Linear(2 * size, 4 * size), size

    def forward(self, x):
        h = c = x.new_zeros(x.shape[1], self.size)
        for step in x:
            i, f, g, o = self.gates(torch.cat([step, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))


def digits():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.0), nn.Flatten(),
        nn.Linear(16, 10), nn.LogSoftmax(1),
    )  # fmt: skip


def encoder():
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)


def text(make):
    model = make(0.0)
    forward = model.forward
    model.forward = lambda tokens: forward(input_ids=tokens, labels=tokens, return_dict=False)[0]
    return model


def tokens():
    return torch.randint(3, 64, (2, 8))


MODELS = {
    "mlp": (mlp, lambda: torch.randn(4, 8)),
    "digits": (digits, lambda: torch.randn(4, 1, 8, 8)),
    "lstm": (Lstm, lambda: torch.randn(5, 3, 8)),
    "encoder": (encoder, lambda: torch.randn(2, 5, 8)),
    "BERT": (lambda: text(hugging_face.bert), tokens),
    "GPT-2": (lambda: text(hugging_face.gpt2), tokens),
}
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
}


def train(make, batch, optimizer, device, compile_step, after_step=lambda: None):
    torch.manual_seed(0)
    model, data = make().to(device).train(), [batch().to(device) for _ in range(4)]
    optimizer = optimizer(model.parameters())
    run = compiled(model) if compile_step else model
    update = compiled(optimizer.step) if compile_step else optimizer.step
    losses = []
    for x in data:
        optimizer.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        update()
        losses.append(loss.item())
        after_step()
    return losses, {name: parameter.detach().cpu() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("name", MODELS)
def test_training(name, metrics):
    compiles = []
    expected = train(*MODELS[name], OPTIMIZERS["sgd"], "cpu", False)
    actual = train(*MODELS[name], OPTIMIZERS["sgd"], LTC, True,
                   lambda: compiles.append(metrics.counter_value("UncachedCompile")))  # fmt: skip
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)
    assert compiles[1] == compiles[-1]
    assert not fallbacks()


@pytest.mark.parametrize("capturable", [False, True])
@pytest.mark.parametrize("foreach", [False, True])
def test_training_with_adam(foreach, capturable, metrics):
    """Its counters of steps are on the CPU, unless it is capturable."""
    captures = []

    def adam(parameters, capturable=capturable):
        return torch.optim.Adam(parameters, lr=0.01, foreach=foreach, capturable=capturable)

    expected = train(*MODELS["mlp"], functools.partial(adam, capturable=False), "cpu", False)
    actual = train(*MODELS["mlp"], adam, LTC, True, lambda: captures.append(metrics.counter_value("Captures")))
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)
    assert captures[1] == captures[-1]
    assert not fallbacks()


@pytest.mark.parametrize("name", MODELS)
def test_inference(name):
    make, batch = MODELS[name]
    torch.manual_seed(0)
    model, x = make().eval(), batch()
    with torch.no_grad():
        expected = model(x)
        run = compiled(model.to(LTC))
        for _ in range(2):
            assert_same(run(x.to(LTC)), expected, rtol=1e-4, atol=1e-5)


def test_kinds_of_calls_met_before_a_refusal_stay_captured(metrics):
    def run(values):
        (x,) = values
        return [x * 2 if len(x) == 2 else x * x.sum().item()]

    refusals = []
    call = CapturedFunction(run, 0, refusals.append, may_look=False).entry()
    two, three = torch.ones(2, device="ltc"), torch.ones(3, device="ltc")
    assert call(two)[0].tolist() == [2, 2]
    assert call(three)[0].tolist() == [3, 3, 3]
    assert len(refusals) == 1
    metrics.reset()
    assert call(two)[0].tolist() == [2, 2]
    assert metrics.counter_value("CapturedCalls") == 1
    assert call(three)[0].tolist() == [3, 3, 3]
    assert call(torch.ones(4, device="ltc"))[0].tolist() == [4, 4, 4, 4]
    assert metrics.counter_value("CapturedCalls") == 1
    assert len(refusals) == 1
