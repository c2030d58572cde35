"""Steps that fail, on the device and on the CPU: state, values and types of exceptions must agree. Prints what differs.

Arguments are beginnings of the names of cases; without any, all are run."""

import sys

import torch
import torch.nn.functional as F

import ltc


def copy_of(tensor):
    return tensor.detach().cpu().clone()


def end_of_step(device):
    if device != "cpu":
        ltc.mark_step()


def training(device, optimizer_of, fail, steps=4, barrier=True):
    """Yields the state after each step; steps 1 and 2 fail with `fail(x, y)`."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16, bias=False), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 4)
    ).to(device)
    optimizer = optimizer_of(model.parameters())
    numbers = torch.Generator().manual_seed(1)
    for step in range(steps):
        x, y = torch.randn(32, 8, generator=numbers), torch.randint(0, 4, (32,), generator=numbers)
        try:
            optimizer.zero_grad()
            logits = model(x.to(device))
            target = y.to(device)
            if step in (1, 2):
                logits, target = fail(logits, target)
            loss = F.cross_entropy(logits, target)
            loss.backward()
            optimizer.step()
            if barrier:
                end_of_step(device)
            yield loss.item()
        except (IndexError, RuntimeError) as error:
            yield "IndexError" if isinstance(error, IndexError) else "RuntimeError"
        # The number of steps is counted in Python, which goes on until the error is read.
        for state in optimizer.state.values():
            for name, value in state.items():
                if name != "step":
                    yield copy_of(value)
        yield {name: copy_of(value) for name, value in model.state_dict().items()}
        if step in (1, 2):
            return


def bad_label(logits, target):
    target[3] = 4
    return logits, target


def bad_index(logits, target):
    return logits[torch.tensor([0, 99], device=logits.device)], target[:2]


def too_large(logits, target):
    return logits.repeat(1 << 36, 1).sort(0)[0].mean(0, keepdim=True), target[:1]


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "single AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
}
FAILURES = {"label": bad_label, "index": bad_index, "memory": too_large}


def in_place_writes(device):
    x = torch.zeros(4, device=device)
    other = torch.ones(4, device=device)
    x += 1
    other *= 3
    try:
        x[torch.tensor([9], device=device)] = 5
        x.sum().item()
    except (IndexError, RuntimeError):
        yield "failed"
    yield copy_of(x)
    x += 1
    yield copy_of(x)
    yield copy_of(other)


def accumulated_gradients(device):
    weight = torch.ones(3, 3, device=device, requires_grad=True)
    for index in (0, 9, 1):
        try:
            (weight[torch.tensor([index], device=device)] * 2).sum().backward()
            end_of_step(device)
            weight.grad.sum().item()
        except (IndexError, RuntimeError):
            yield "failed"
        yield copy_of(weight.grad)


def copied_state(device):
    x, target = torch.ones(3, device=device), torch.full((3,), 7.0, device=device)
    try:
        x += x[torch.tensor([5], device=device)]
        target.copy_(x)
        target.sum().item()
    except (IndexError, RuntimeError):
        yield "failed"
    yield copy_of(x)
    yield copy_of(target)


def failed_step_before(device):
    """The step that fails writes nothing; a later one writes what depends on it."""
    x = torch.ones(3, device=device)
    x += 1
    end_of_step(device)
    for _ in range(2):
        try:
            y = x[torch.tensor([9], device=device)]
            end_of_step(device)
            x += y.sum()
            end_of_step(device)
            x.sum().item()
        except (IndexError, RuntimeError):
            yield "failed"
        yield copy_of(x)


def unrelated_values(device):
    """The step that fails writes nothing, and makes other values too."""
    x, at = torch.arange(6.0, device=device), torch.tensor([9], device=device)
    end_of_step(device)
    good = (x * 2).relu() + 1
    total = good.sum()
    try:
        bad = x[at] * 3
        end_of_step(device)
        bad.sum().item()
    except (IndexError, RuntimeError):
        yield "failed"
    yield copy_of(good)
    yield copy_of(total)


def memory_at_the_end(device):
    """The value that is too large comes after writes, and looks at no index."""
    x, y = torch.ones(1000, device=device), torch.ones(1000, device=device)
    end_of_step(device)
    for _ in range(2):
        try:
            x += 1
            y *= x
            x += y
            large = (x.reshape(1000, 1) * torch.full((1 << 43,), 2.0, device=device)).cumsum(0)
            end_of_step(device)
            large.sum().item()
        except (IndexError, RuntimeError):
            yield "failed"
        yield copy_of(x)
        yield copy_of(y)


def many_cells(device):
    """A notebook: mistakes in between, each followed by work that does not depend on it."""
    x = torch.arange(6.0, device=device).reshape(2, 3)
    for mistake in (lambda: x[:, 5], lambda: x[torch.tensor([3], device=device)], lambda: x @ x, lambda: x.view(4, 4)):
        try:
            mistake().sum().item()
        except (IndexError, RuntimeError) as error:
            yield type(error).__name__
        x.mul_(2)
        yield copy_of(x)


CASES = {
    f"{name}, {what}, {'barrier' if barrier else 'read'}": lambda device, o=optimizer, f=fail, b=barrier: training(
        device, o, f, barrier=b
    )
    for name, optimizer in OPTIMIZERS.items()
    for what, fail in FAILURES.items()
    for barrier in (True, False)
}
CASES |= {case.__name__: case for case in (in_place_writes, accumulated_gradients, copied_state, failed_step_before, unrelated_values, memory_at_the_end, many_cells)}


def agree(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(agree(a[key], b[key]) for key in a)
    if isinstance(a, torch.Tensor):
        return torch.allclose(a, b, rtol=1e-4, atol=1e-5)
    return abs(a - b) < 1e-4 if isinstance(a, float) and isinstance(b, float) else a == b


def main():
    wrong = 0
    cases = {name: case for name, case in CASES.items() if name.startswith(tuple(sys.argv[1:]) or "")}
    for name, case in cases.items():
        expected, got = list(case("cpu")), list(case("ltc"))
        for i, (a, b) in enumerate(zip(expected, got, strict=True)):
            if not agree(a, b):
                print(f"{name}, value {i}: {b} instead of {a}")
                wrong += 1
                break
    print(f"{len(cases)} cases, {wrong} wrong")


main()
