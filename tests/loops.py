"""Loops of many shapes, without mark_step(), and what each may cost the device. tests/test_loops.py runs them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TURNS = 12
SHAPES = {}


@dataclass
class Shape:
    """A loop as a generator that yields after each turn and returns what it computed, and what it costs exactly."""

    run: Callable
    compiles: int  # with those of what is read at the end
    turns: int  # the last one with a compile
    ops: int  # in the programs that were run


def shape(**cost):
    def register(run):
        SHAPES[run.__name__] = Shape(run, **cost)
        return run

    return register


def net(device, outputs=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, outputs)).to(device)


def batches(device, count=TURNS):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        yield torch.randn(4, 6, generator=generator).to(device), torch.randint(0, 3, (4,), generator=generator).to(device)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def update(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


@shape(compiles=3, turns=2, ops=352)
def training(device):
    model = net(device)
    optimizer = sgd(model)
    for x, y in batches(device):
        update(model, optimizer, x, y)
        yield
    return list(model.parameters())


@shape(compiles=3, turns=2, ops=342)
def sum_of_losses(device):
    model = net(device)
    optimizer = sgd(model)
    total = torch.zeros((), device=device)
    for x, y in batches(device):
        total += update(model, optimizer, x, y)
        yield
    return total


@shape(compiles=3, turns=2, ops=329)
def list_of_losses(device):
    model = net(device)
    optimizer = sgd(model)
    losses = []
    for x, y in batches(device):
        losses.append(update(model, optimizer, x, y))
        yield
    return losses


@shape(compiles=3, turns=2, ops=1110)
def adversaries(device):
    """Two optimizers in each turn."""
    maker, judge = net(device, outputs=6), net(device)
    of_maker, of_judge = sgd(maker), sgd(judge)
    for x, y in batches(device):
        of_judge.zero_grad()
        (F.cross_entropy(judge(x), y) - judge(maker(x).detach()).square().mean()).backward()
        of_judge.step()
        of_maker.zero_grad()
        judge(maker(x)).square().mean().backward()
        of_maker.step()
        yield
    return [*maker.parameters(), *judge.parameters()]


@shape(compiles=5, turns=6, ops=288)
def gradients_of_several_batches(device):
    model = net(device)
    optimizer = sgd(model)
    for i, (x, y) in enumerate(batches(device)):
        F.cross_entropy(model(x), y).backward()
        if i % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
        yield
    return list(model.parameters())


@shape(compiles=1, turns=1, ops=312)
def no_optimizer(device):
    model = net(device)
    for x, y in batches(device):
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        yield
    return list(model.parameters())


@shape(compiles=3, turns=2, ops=352)
def an_optimizer_for_each_parameter(device):
    model = net(device)
    optimizers = [torch.optim.SGD([parameter], lr=0.05, momentum=0.9) for parameter in model.parameters()]
    for x, y in batches(device):
        F.cross_entropy(model(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        yield
    return list(model.parameters())


@shape(compiles=1, turns=1, ops=264)
def optimizers_within_the_backward(device):
    model = net(device)
    optimizers = {parameter: torch.optim.SGD([parameter], lr=0.05) for parameter in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    for x, y in batches(device):
        F.cross_entropy(model(x), y).backward()
        yield
    return list(model.parameters())


@shape(compiles=12, turns=2, ops=909)
def lbfgs(device):
    model = net(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2, history_size=2)
    data = list(batches(device, 1))[0]

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data[0]), data[1])
        loss.backward()
        return loss

    for _ in range(TURNS):
        optimizer.step(closure)
        yield
    return list(model.parameters())


@shape(compiles=3, turns=2, ops=400)
def average_of_the_weights(device):
    model = net(device)
    optimizer = sgd(model)
    averages = [parameter.detach().clone() for parameter in model.parameters()]
    for x, y in batches(device):
        update(model, optimizer, x, y)
        torch._foreach_lerp_(averages, [parameter.detach() for parameter in model.parameters()], 0.1)
        yield
    return averages


@shape(compiles=3, turns=2, ops=444)
def validation(device):
    model = net(device)
    optimizer = sgd(model)
    held_out = list(batches(device, 3))
    scores = []
    for i, (x, y) in enumerate(batches(device)):
        update(model, optimizer, x, y)
        if i % 3 == 2:
            with torch.no_grad():
                scores.append(sum((model(x).argmax(1) == y).sum() for x, y in held_out).item())
        yield
    return torch.tensor(scores)


@shape(compiles=2, turns=1, ops=352)
def early_stopping(device):
    model = net(device)
    optimizer = sgd(model)
    best = float("inf")
    for x, y in batches(device):
        loss = update(model, optimizer, x, y).item()
        if loss > best + 10:
            break
        best = min(best, loss)
        yield
    return list(model.parameters())


@shape(compiles=4, turns=4, ops=324)
def metric_now_and_then(device):
    model = net(device)
    optimizer = sgd(model)
    norms = []
    for i, (x, y) in enumerate(batches(device)):
        update(model, optimizer, x, y)
        if i % 7 == 1:
            norms.append(model[0].weight.detach().norm())
        yield
    return norms


@shape(compiles=8, turns=3, ops=1384)
def reinforcement(device):
    """An environment on the CPU: each action is read."""
    policy = net(device)
    optimizer = sgd(policy)
    state = torch.linspace(-1, 1, 6)
    for _ in range(TURNS):
        scores = []
        for _ in range(3):
            probabilities = policy(state.to(device)).softmax(0)
            action = int(probabilities.argmax())
            scores.append(probabilities[action].log())
            state = (state * 0.9 + 0.1 * (action - 1)).roll(1)
        optimizer.zero_grad()
        (-torch.stack(scores).sum()).backward()
        optimizer.step()
        yield
    return list(policy.parameters())


@shape(compiles=5, turns=4, ops=508)
def recurrent_of_several_lengths(device):
    torch.manual_seed(0)
    cell = nn.GRUCell(6, 8).to(device)
    optimizer = sgd(cell)
    lengths = [3, 5, 4] * (TURNS // 3)
    for length in lengths:
        hidden = torch.zeros(2, 8, device=device)
        for x in torch.ones(length, 2, 6).to(device):
            hidden = cell(x, hidden)
        optimizer.zero_grad()
        hidden.square().mean().backward()
        optimizer.step()
        yield
    return list(cell.parameters())


@shape(compiles=5, turns=4, ops=344)
def two_models_in_turns(device):
    models = net(device), net(device, outputs=5)
    optimizers = [sgd(model) for model in models]
    for i, (x, y) in enumerate(batches(device)):
        update(models[i % 2], optimizers[i % 2], x, y)
        yield
    return [*models[0].parameters(), *models[1].parameters()]


@shape(compiles=2, turns=1, ops=336)
def transforms(device):
    model = net(device)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(parameters, x, y):
        return F.cross_entropy(torch.func.functional_call(model, parameters, (x,)), y)

    for x, y in batches(device):
        gradients = torch.func.grad(loss)(parameters, x, y)
        parameters = {name: value - 0.1 * gradients[name] for name, value in parameters.items()}
        yield
    return list(parameters.values())


@shape(compiles=3, turns=2, ops=376)
def checkpointing(device):
    model = net(device)
    optimizer = sgd(model)
    for x, y in batches(device):
        optimizer.zero_grad()
        F.cross_entropy(torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False), y).backward()
        optimizer.step()
        yield
    return list(model.parameters())


@shape(compiles=4, turns=4, ops=232)
def exception(device):
    """In every third turn, between forward and backward."""
    model = net(device)
    optimizer = sgd(model)
    for i, (x, y) in enumerate(batches(device)):
        try:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if i % 3 == 1:
                raise ValueError
            loss.backward()
            optimizer.step()
        except ValueError:
            pass
        yield
    return list(model.parameters())


@shape(compiles=6, turns=2, ops=400)
def notebook(device):
    """Each cell prints."""
    model = net(device)
    optimizer = sgd(model)
    printed = []
    for x, y in batches(device):
        printed.append(str(x.sum().round().item()))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        printed.append(f"{loss.item():.3f}")
        loss.backward()
        printed.append(f"{model[0].weight.grad.abs().max().item():.3f}")
        optimizer.step()
        yield
    return list(model.parameters())


@shape(compiles=4, turns=2, ops=2104)
def nested(device):
    """Adaptation by gradients within each turn."""
    model = net(device)
    optimizer = sgd(model)
    for x, y in batches(device):
        fast = list(model.parameters())
        for _ in range(2):
            gradients = torch.autograd.grad(F.cross_entropy(forward(fast, x), y), fast, create_graph=True)
            fast = [weight - 0.1 * gradient for weight, gradient in zip(fast, gradients)]
        optimizer.zero_grad()
        F.cross_entropy(forward(fast, x), y).backward()
        optimizer.step()
        yield
    return list(model.parameters())


def forward(weights, x):
    return F.linear(F.relu(F.linear(x, *weights[:2])), *weights[2:])


@shape(compiles=3, turns=2, ops=352)
def workers(device):
    """The batches of a DataLoader."""
    model = net(device)
    optimizer = sgd(model)
    data = TensorDataset(torch.randn(4 * TURNS, 6, generator=torch.Generator().manual_seed(2)), torch.arange(4 * TURNS) % 3)
    for x, y in DataLoader(data, batch_size=4, num_workers=2):
        update(model, optimizer, x.to(device), y.to(device))
        yield
    return list(model.parameters())


@shape(compiles=3, turns=2, ops=352)
def profiled(device):
    model = net(device)
    optimizer = sgd(model)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        for x, y in batches(device):
            update(model, optimizer, x, y)
            yield
    return list(model.parameters())


@shape(compiles=3, turns=3, ops=344)
def two_threads(device):
    """That take turns."""
    models = [net(device), net(device)]
    optimizers = [sgd(model) for model in models]
    data = list(batches(device))
    for i in range(0, TURNS, 2):
        for which in (0, 1):
            thread = threading.Thread(target=update, args=(models[which], optimizers[which], *data[i + which]))
            thread.start()
            thread.join()
            yield
    return [*models[0].parameters(), *models[1].parameters()]


@shape(compiles=3, turns=0, ops=24001)
def iteration(device):
    """Nothing but x = f(x)."""
    x = torch.ones(8, device=device)
    for _ in range(TURNS):
        for _ in range(1000):
            x = x * 1.0001 + 0.0001
        yield
    return x


@shape(compiles=3, turns=2, ops=4255)
def predictions(device):
    """In a list that grows, and counted."""
    model = net(device)
    found, hits = [], torch.zeros((), dtype=torch.long, device=device)
    for _ in range(TURNS):
        for x, y in batches(device, 50):
            with torch.no_grad():
                found.append(model(x).argmax(1))
                hits += (found[-1] == y).sum()
        yield
    return [hits, *found]
