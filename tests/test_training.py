"""Training loops: the same weights as on the CPU, no compile in the steady state, and what users do around a loop."""

import copy
import io

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import ltc
from comparing import LTC, assert_close, assert_same, output_of, to_device


def mlp():
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))


def cnn():
    """Without the bias that the normalisation takes away again: its gradient is rounding noise, of which Adam makes whole steps."""
    return nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 3))


class Embedder(nn.Module):
    """Token mixing with an embedding that is used twice."""

    def __init__(self):
        super().__init__()
        self.table, self.mix, self.norm = nn.Embedding(11, 8), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, tokens):
        x = self.table(tokens)
        attention = F.softmax(x @ x.transpose(1, 2) / 8**0.5, -1)
        return (self.norm(self.mix(attention @ x)) @ self.table.weight.t()).mean(1)[:, :3]


INPUTS = {mlp: lambda: torch.randn(8, 6), cnn: lambda: torch.randn(4, 1, 10, 10), Embedder: lambda: torch.randint(0, 11, (4, 5))}

OPTIMIZERS = {
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.05, **k),
    "momentum": lambda p, **k: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True, **k),
    "adam": lambda p, **k: torch.optim.Adam(p, lr=0.01, **k),
    "amsgrad": lambda p, **k: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.01, **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, lr=0.01, **k),
    "adadelta": lambda p, **k: torch.optim.Adadelta(p, **k),
    "rmsprop": lambda p, **k: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True, **k),
    "adagrad": lambda p, **k: torch.optim.Adagrad(p, lr=0.05, **k),
}


def batches(model, count):
    torch.manual_seed(1)
    data = [INPUTS[model]() for _ in range(count)]
    return [(x, torch.randint(0, 3, (len(x),))) for x in data]


def train(module, optimizer, data, device, after_step=lambda k: None):
    """The losses of a plain training loop."""
    losses = []
    for k, (x, target) in enumerate(data):
        optimizer.zero_grad()
        loss = F.cross_entropy(module(x.to(device)), target.to(device))
        loss.backward()
        optimizer.step()
        ltc.mark_step()
        after_step(k)
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def fresh(model):
    torch.manual_seed(0)
    return model()


def trained(model, make_optimizer, device, steps=6):
    module = fresh(model).to(device)
    losses = train(module, make_optimizer(module.parameters()), batches(model, steps), device)
    return losses, {name: value.cpu() for name, value in module.state_dict().items()}


def check_training(model, make_optimizer, rtol=1e-4, atol=2e-5):
    losses, state = trained(model, make_optimizer, LTC)
    expected_losses, expected_state = trained(model, make_optimizer, "cpu")
    assert losses == pytest.approx(expected_losses, rel=1e-4)
    for name in expected_state:
        assert_close(state[name], expected_state[name], rtol=rtol, atol=atol)


@pytest.mark.parametrize("model", [cnn, Embedder])
@pytest.mark.parametrize("name", ["momentum", "adamw", "adadelta"])
def test_models(model, name):
    check_training(model, OPTIMIZERS[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["sgd", "adam", "adadelta"])
@pytest.mark.parametrize("model", [mlp, cnn, Embedder])
def test_steady_state(model, name, metrics):
    """After the second step nothing is compiled and the CPU runs no op."""
    module = fresh(model).to(LTC)

    def after_step(k):
        if k == 1:
            ltc.wait_device_ops()
            metrics.reset()

    train(module, OPTIMIZERS[name](module.parameters()), batches(model, 8), LTC, after_step)
    ltc.wait_device_ops()
    assert metrics.counter_value("UncachedCompile") <= 1  # that of the losses' reading, after the loop
    assert metrics.counter_value("CachedCompile") >= 6
    assert [counter for counter in metrics.counter_names() if counter.startswith("aten::")] == []


def test_steady_state_without_reading(metrics):
    module = fresh(mlp).to(LTC)
    optimizer = torch.optim.Adam(module.parameters())
    for k, (x, target) in enumerate(to_device(batches(mlp, 8))):
        if k == 2:
            ltc.wait_device_ops()
            metrics.reset()
        optimizer.zero_grad()
        F.cross_entropy(module(x), target).backward()
        optimizer.step()
        ltc.mark_step()
    ltc.wait_device_ops()
    assert metrics.counter_value("UncachedCompile") == 0
    assert metrics.counter_value("CachedCompile") == 6
    assert [counter for counter in metrics.counter_names() if counter.startswith("aten::")] == []


@pytest.mark.parametrize("name", ["sgd", "momentum", "adamw", "adadelta", "rmsprop"])
def test_changing_the_learning_rate_compiles_nothing(name, metrics):
    module = fresh(mlp).to(LTC)
    optimizer = OPTIMIZERS[name](module.parameters())
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    compiles = []

    def after_step(k):
        scheduler.step()
        compiles.append(metrics.counter_value("UncachedCompile"))

    train(module, optimizer, batches(mlp, 10), LTC, after_step)
    assert compiles[-1] == compiles[1]


def test_thousand_scalars_compile_once(metrics):
    x = torch.ones(4).to(LTC)
    for k in range(1000):
        s = k * 0.5
        result = (x * s + s).sum()
        ltc.mark_step()
        if k % 100 == 0:
            assert result.item() == 8 * s
    assert metrics.counter_value("UncachedCompile") == 1


def test_scheduler_clipping_and_accumulation_match_the_cpu():
    def run(device):
        module = fresh(mlp).to(device)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        norms = []
        for k, (x, target) in enumerate(batches(mlp, 8)):
            (F.cross_entropy(module(x.to(device)), target.to(device)) / 2).backward()
            if k % 2:
                norms.append(nn.utils.clip_grad_norm_(module.parameters(), 0.5))
                optimizer.step()
                optimizer.zero_grad(set_to_none=k % 4 == 1)
                scheduler.step()
                ltc.mark_step()
        return norms, dict(module.named_parameters())

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(reentrant):
    def run(device):
        module = fresh(mlp).to(device)
        x = batches(mlp, 1)[0][0].to(device).requires_grad_()
        torch.manual_seed(5)
        out = checkpoint(lambda v: F.dropout(module(v), 0.0), x, use_reentrant=reentrant)
        out.sin().sum().backward()
        return out.detach(), x.grad, [p.grad for p in module.parameters()]

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-5)


def test_checkpointing_draws_the_same_dropout():
    x = torch.ones(1000, device=LTC, requires_grad=True)
    out = checkpoint(lambda v: F.dropout(v, 0.5), x, use_reentrant=False)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_retain_graph():
    def run(x):
        y = (x.exp() * x).sum()
        y.backward(retain_graph=True)
        first = x.grad.clone()
        ltc.mark_step()
        y.backward()
        return first, x.grad

    x = torch.randn(4, requires_grad=True)
    assert_same(run(to_device(x)), run(x))


def test_second_backward_without_retaining_raises():
    x = torch.ones(2, device=LTC, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_hooks():
    def run(device):
        module = fresh(mlp).to(device)
        seen = []
        module[0].register_forward_hook(lambda m, args, out: out * 2)
        module[2].register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_out[0].norm()))
        module[5].weight.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
        module[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum()))
        x, target = batches(mlp, 1)[0]
        F.cross_entropy(module(x.to(device)), target.to(device)).backward()
        return seen, [p.grad for p in module.parameters()]

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_evaluation(mode):
    def run(device):
        module = fresh(cnn).to(device)
        train(module, torch.optim.SGD(module.parameters(), lr=0.1), batches(cnn, 2), device)
        module.eval()
        with mode():
            out = module(batches(cnn, 1)[0][0].to(device))
        assert not out.requires_grad
        return out.argmax(1), out

    assert_same(run(LTC), run("cpu"), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("through", ["ltc", "cpu"])
@pytest.mark.parametrize("name", ["momentum", "adam", "adadelta"])
def test_resumed_training_continues_exactly(name, through):
    data = batches(mlp, 6)
    module = fresh(mlp).to(LTC)
    optimizer = OPTIMIZERS[name](module.parameters())
    train(module, optimizer, data[:3], LTC)
    file = io.BytesIO()
    torch.save({"module": module.state_dict(), "optimizer": optimizer.state_dict()}, file)
    expected = train(module, optimizer, data[3:], LTC)

    file.seek(0)
    state = torch.load(file, map_location=through)
    again = mlp().to(LTC)
    again.load_state_dict(state["module"])
    optimizer = OPTIMIZERS[name](again.parameters())
    optimizer.load_state_dict(state["optimizer"])
    assert train(again, optimizer, data[3:], LTC) == expected
    assert_same(dict(again.state_dict()), {key: value.cpu() for key, value in module.state_dict().items()}, rtol=0, atol=0)


def test_training_repeats_exactly():
    def run():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3)).to(LTC)
        return train(module, torch.optim.Adam(module.parameters()), batches(mlp, 5), LTC)

    assert run() == run()


def test_moving_average_of_weights():
    def run(device):
        module = fresh(mlp).to(device)
        average = copy.deepcopy(module)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

        def after_step(k):
            with torch.no_grad():
                for mean, value in zip(average.parameters(), module.parameters()):
                    mean.mul_(0.9).add_(value, alpha=0.1)

        train(module, optimizer, batches(mlp, 4), device, after_step)
        return list(average.parameters())

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-5)


def test_gradients_of_frozen_and_shared_parameters():
    def run(device):
        torch.manual_seed(0)
        frozen, shared = nn.Linear(6, 4).requires_grad_(False), nn.Linear(4, 4)
        module = nn.Sequential(frozen, shared, nn.Tanh(), shared, nn.Linear(4, 3)).to(device)
        assert module[1].weight is module[3].weight
        x, target = batches(mlp, 1)[0]
        F.cross_entropy(module(x.to(device)), target.to(device)).backward()
        assert module[0].weight.grad is None
        return [p.grad for p in module.parameters() if p.grad is not None]

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-5)


def twice(make):
    return nn.Sequential(make(), make())


TWICE = {
    "convolutions": (lambda: twice(lambda: nn.Conv2d(3, 3, 3, padding=1)), (2, 3, 5, 5)),
    "transposed": (lambda: twice(lambda: nn.ConvTranspose1d(3, 3, 3)), (2, 3, 5)),
    "batch norms": (lambda: twice(lambda: nn.BatchNorm2d(3)), (4, 3, 5, 5)),
    "layer norms": (lambda: twice(lambda: nn.LayerNorm(5)), (2, 3, 5)),
    "group norms": (lambda: twice(lambda: nn.GroupNorm(3, 6)), (2, 6, 5)),
    "recurrent layers": (lambda: nn.LSTM(4, 4, num_layers=2), (3, 2, 4)),
    "behind a frozen layer": (lambda: nn.Sequential(nn.Conv2d(3, 3, 1).requires_grad_(False), nn.BatchNorm2d(3), nn.BatchNorm2d(3)), (2, 3, 4, 4)),
}


@pytest.mark.parametrize("name", TWICE)
def test_equal_layers_in_a_row_without_gradient_for_the_first_input(name):
    """The first result of the first layer's backward is not made."""

    def run(device):
        torch.manual_seed(0)
        make, shape = TWICE[name]
        module, x = make().to(device), torch.randn(shape).to(device)
        out = module(x)
        (out[0] if isinstance(out, tuple) else out).square().mul(0.1).sum().backward()
        return [p.grad for p in module.parameters() if p.grad is not None]

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-5)


# ---- two devices

TWO_DEVICES = """
    import torch, torch.nn.functional as F, ltc
    a, b = torch.device("ltc:0"), torch.device("ltc:1")
    assert torch.ltc.device_count() == 2
"""


def two_devices(program):
    return output_of(TWO_DEVICES + program, LTC_BACKEND="torchscript;torchscript")


def test_copies_between_two_devices():
    two_devices("""
    x = torch.arange(6.0).view(2, 3)
    on_a, on_b = x.to(a), x.to(b)
    assert on_a.device == a and on_b.device == b
    assert torch.equal((on_a * 2).to(b).cpu(), x * 2) and (on_a * 2).to(b).device == b
    target = torch.zeros(3, 2, device=b)
    target.t().copy_(on_a + 1)
    assert torch.equal(target.cpu(), (x + 1).t())
    on_b.to(a)[0] = 5
    assert torch.equal(on_b.cpu(), x)
    leaf = torch.ones(3, device=a, requires_grad=True)
    (leaf.to(b) * 3).sum().backward()
    assert leaf.grad.device == a and leaf.grad.tolist() == [3, 3, 3]
    """)


def test_mixing_two_devices_is_an_error():
    two_devices("""
    x, y = torch.ones(2, device=a), torch.ones(2, device=b)
    for wrong in (lambda: x + y, lambda: torch.cat([x, y]), lambda: torch.add(x, x, out=y), lambda: x.add_(y), lambda: torch.where(x > 0, x, y)):
        try:
            wrong()
        except RuntimeError as error:
            message = str(error)
            assert "Expected all tensors to be on the same device" in message, message
            assert "ltc:0" in message and "ltc:1" in message
        else:
            raise AssertionError("mixed devices were accepted")
    assert (x + x).tolist() == (y + y).tolist() == [2, 2]
    """)


def test_current_device():
    two_devices("""
    assert torch.ltc.current_device() == 0 and torch.ones(1, device="ltc").device == a
    with torch.ltc.device(1):
        assert torch.ones(1, device="ltc").device == b and torch.ones(1, device="lazy").device == b
        assert ltc.lazy_device() == b
    assert torch.ltc.current_device() == 0 and ltc.lazy_device(1) == b
    torch.ltc.set_device(1)
    assert torch.zeros(1).to("ltc").device == b
    try:
        torch.ones(1, device="ltc:2")
    except RuntimeError as error:
        assert "no device ltc:2" in str(error), error
    else:
        raise AssertionError("a device that does not exist was accepted")
    """)


def test_training_on_the_second_device():
    two_devices("""
    def train(device):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(device)
        optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
        x, y = torch.randn(16, 4).to(device), torch.randint(0, 2, (16,)).to(device)
        for _ in range(10):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            ltc.mark_step()
        assert module[0].weight.grad.device == torch.device(device)
        return loss.item()
    expected = train("cpu")
    for device in ("ltc:1", "ltc:0"):
        assert abs(train(device) - expected) < 1e-4 * expected
    """)


def test_model_parallel_over_two_devices():
    two_devices("""
    def run(first, second):
        torch.manual_seed(0)
        one, two = torch.nn.Linear(4, 8).to(first), torch.nn.Linear(8, 2).to(second)
        x = torch.randn(5, 4).to(first)
        two(one(x).relu().to(second)).square().sum().backward()
        return one.weight.grad.cpu(), two.weight.grad.cpu()
    for got, expected in zip(run(a, b), run("cpu", "cpu")):
        torch.testing.assert_close(got, expected)
    """)


def test_seeds_of_two_devices():
    two_devices("""
    torch.manual_seed(3)
    x, y = torch.rand(4, device=a), torch.rand(4, device=b)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(4, device=b), y) and torch.equal(torch.rand(4, device=a), x)
    """)
