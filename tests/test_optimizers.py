"""Every optimizer and scheduler of PyTorch on the device: the parameters that the CPU gets, nothing compiled once the first steps
are over, nothing run by the CPU."""

import copy
import io

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm
from torch.optim import lr_scheduler, swa_utils
from torch.testing import assert_close

import ltc
from comparing import LTC, assert_same, to_device

STEPS = 10

OPTIONS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5},
        {"lr": 0.1, "maximize": True},
    ],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.01}, {"maximize": True}, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "AdamW": [{}, {"amsgrad": True, "maximize": True}],
    "Adamax": [{}, {"weight_decay": 0.01, "maximize": True}],
    "NAdam": [{}, {"weight_decay": 0.01, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"weight_decay": 0.01, "decoupled_weight_decay": True}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.1}],
    "Adadelta": [{}, {"weight_decay": 0.01, "maximize": True}],
    "RMSprop": [{}, {"momentum": 0.5, "centered": True, "weight_decay": 0.01}],
    "Rprop": [{}, {"etas": (0.4, 1.3), "maximize": True}],
    "ASGD": [{}, {"weight_decay": 0.01, "t0": 2}],
    "Adafactor": [{}, {"weight_decay": 0.01, "beta2_decay": -0.5}],
    "Muon": [{}, {"nesterov": False, "momentum": 0.8}],
}
MODES = [{"foreach": None}, {"foreach": False}, {"foreach": True}, {"fused": True}, {"capturable": True}]

HAS_NO_FOREACH = {"Muon"}
HAS_FUSED = {"SGD", "Adam", "AdamW", "Adagrad"}
HAS_NO_CAPTURABLE = {"SGD", "Adagrad", "Adafactor", "Muon"}

# Where the optimizer itself takes another path later: RAdam once its variance is rectified, ASGD once it averages.
SETTLES = {"RAdam": 7, "ASGD": 6}


def offers(name, mode):
    missing = {"foreach": name in HAS_NO_FOREACH, "fused": name not in HAS_FUSED, "capturable": name in HAS_NO_CAPTURABLE}
    return not any(missing[option] for option in mode)


CASES = [(name, {**options, **mode}) for name in OPTIONS for options in OPTIONS[name] for mode in MODES if offers(name, mode)]
CASES += [("Muon", options) for options in OPTIONS["Muon"]]


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 3, bias=False))


def batches(count=STEPS):
    torch.manual_seed(1)
    return [(torch.randn(5, 6), torch.randint(0, 3, (5,))) for _ in range(count)]


def train(module, optimizer, device, data=None, after_step=lambda k: None):
    for k, (x, target) in enumerate(data or batches()):
        optimizer.zero_grad()
        F.cross_entropy(module(x.to(device)), target.to(device)).backward()
        optimizer.step()
        ltc.mark_step()
        after_step(k)


def make(name, module, options):
    return getattr(torch.optim, name)(module.parameters(), **options)


def on_cpu(options):
    return {key: value for key, value in options.items() if key != "capturable"}


def parameters(module):
    return [p.detach().cpu() for p in module.parameters()]


def fallbacks():
    ltc.wait_device_ops()
    return [counter for counter in ltc.metrics.counter_names() if counter.startswith("aten::")]


class Compiles:
    """How many programs had been compiled after each step."""

    def __init__(self):
        self.after = []

    def __call__(self, k):
        self.after.append(ltc.metrics.counter_value("UncachedCompile"))

    def none_since(self, step):
        return self.after[-1] == self.after[step]


def identify(case):
    name, options = case
    return "-".join([name, *(f"{key}={value}" for key, value in options.items())])


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_steps(case, metrics):
    name, options = case
    module, expected = mlp().to(LTC), mlp()
    compiles = Compiles()
    train(module, make(name, module, options), LTC, after_step=compiles)
    assert compiles.none_since(SETTLES.get(name, 3)), compiles.after
    assert fallbacks() == []
    assert ltc.metrics.counter_value("DryRuns") == 0
    train(expected, make(name, expected, on_cpu(options)), "cpu")
    assert_close(parameters(module), parameters(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("name", sorted(HAS_FUSED))
def test_fused_steps_in_other_precisions(name, dtype):
    def run(device):
        module = mlp().to(device, dtype)
        optimizer = make(name, module, {"fused": True, "weight_decay": 0.01})
        train(module, optimizer, device, [(x.to(dtype), target) for x, target in batches(4)])
        return parameters(module)

    tolerance = {"rtol": 2e-2, "atol": 1e-3} if dtype == torch.bfloat16 else {}
    for lazy, cpu in zip(run(LTC), run("cpu")):
        assert lazy.dtype == dtype
        assert_close(lazy, cpu, **tolerance)


@pytest.mark.parametrize("name", sorted(HAS_FUSED))
def test_fused_steps_record_less(name, metrics):
    recorded = []
    for fused in (False, True):
        module = mlp().to(LTC)
        optimizer = make(name, module, {"fused": fused, "weight_decay": 0.01})
        train(module, optimizer, LTC, batches(2))
        before = metrics.counter_value("OpsRecorded")  # counted at barriers
        optimizer.step()
        ltc.mark_step()
        recorded.append(metrics.counter_value("OpsRecorded") - before)
    assert recorded[1] < recorded[0], recorded


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_all_numbers_of_a_fused_step_may_change(name, metrics):
    """Momenta and decays too, as schedules of them do."""
    module, expected, compiles = mlp().to(LTC), mlp(), Compiles()

    def optimizer_of(model, options):
        options = {"lr": 0.1, "weight_decay": 0.1, **options, **({"momentum": 0.5} if name == "SGD" else {})}
        optimizer = make(name, model, options)
        (group,) = optimizer.param_groups

        def after_step(k):
            group.update(lr=0.1 / (k + 1), weight_decay=0.1 / (k + 1))
            betas = {"betas": (0.8 + k / 100, 0.9 + k / 200), "eps": 1e-8 * (k + 1)}
            group.update({"momentum": 0.5 + k / 100} if name == "SGD" else betas)
            compiles(k)

        return optimizer, after_step

    optimizer, after_step = optimizer_of(module, {"fused": True})
    train(module, optimizer, LTC, after_step=after_step)
    assert compiles.none_since(3), compiles.after
    optimizer, after_step = optimizer_of(expected, {})
    train(expected, optimizer, "cpu", after_step=after_step)
    assert_close(parameters(module), parameters(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", [{}, {"fused": True}, {"foreach": False}], ids=str)
@pytest.mark.parametrize("device", ["cpu", "ltc"])
def test_learning_rate_as_a_tensor(device, mode, metrics):
    """One on the CPU is read each step without a compile, one on the device never is."""
    options = {"lr": torch.tensor(0.01, device=device), "capturable": device == "ltc", **mode}
    module, expected = mlp().to(LTC), mlp()
    optimizer, compiles = make("Adam", module, options), Compiles()

    def after_step(k):
        options["lr"].mul_(0.9)
        compiles(k)

    train(module, optimizer, LTC, after_step=after_step)
    assert compiles.none_since(3) and fallbacks() == []
    number = make("Adam", expected, {"lr": 0.01})
    train(expected, number, "cpu", after_step=lambda k: number.param_groups[0].update(lr=0.01 * 0.9 ** (k + 1)))
    assert_close(parameters(module), parameters(expected), rtol=1e-4, atol=1e-6)


DIFFERENTIABLE = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD"]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_differentiable_steps(name):
    def run(device):
        torch.manual_seed(0)
        weight, gradient = (torch.randn(5).to(device).requires_grad_() for _ in range(2))
        param = weight.clone()
        optimizer = getattr(torch.optim, name)([param], lr=0.1, weight_decay=0.0, differentiable=True) if name != "Rprop" else (
            torch.optim.Rprop([param], lr=0.1, differentiable=True))
        param.grad = gradient * 2
        optimizer.step()
        param.square().sum().backward()
        return param.detach(), weight.grad, gradient.grad

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs(line_search):
    def run(device):
        module = mlp().to(device)
        x, target = (tensor.to(device) for tensor in batches(1)[0])
        optimizer = torch.optim.LBFGS(module.parameters(), lr=0.5, max_iter=5, line_search_fn=line_search)

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), target)
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(3)]
        return losses, parameters(module)

    losses, weights = run(LTC)
    expected_losses, expected_weights = run("cpu")
    assert losses == pytest.approx(expected_losses, rel=1e-3)
    assert_close(weights, expected_weights, rtol=1e-3, atol=1e-4)


# ---- schedulers

SCHEDULERS = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda k: 0.95**k),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda k: 0.9),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 5, 8]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.5, 6),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.1, total_iters=8),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 20),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 12),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, 3),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.2, STEPS + 1),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=4), lr_scheduler.ExponentialLR(o, 0.9)], [4]),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.1, 4), lr_scheduler.ExponentialLR(o, 0.9)]),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=1),
    "SWALR": lambda o: swa_utils.SWALR(o, 0.05, anneal_epochs=5),
}


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_compile_nothing(name, optimizer, metrics):
    def run(device, compiles=lambda k: None):
        module = mlp().to(device)
        made = make(optimizer, module, {"lr": 0.1, "momentum": 0.9} if optimizer == "SGD" else {"lr": 0.1})
        scheduler = SCHEDULERS[name](made)

        def after_step(k):
            scheduler.step(*[1.0] * (name == "ReduceLROnPlateau"))
            compiles(k)

        train(module, made, device, after_step=after_step)
        return parameters(module)

    compiles = Compiles()
    lazy = run(LTC, compiles)
    assert compiles.none_since(3), compiles.after
    assert fallbacks() == []
    assert_close(lazy, run("cpu"), rtol=1e-4, atol=1e-5)


# ---- groups, clipping, state


def test_parameter_groups():
    def run(device):
        module = nn.Sequential(*mlp(), nn.Linear(3, 3)).to(device)
        optimizer = torch.optim.AdamW([{"params": module[0].parameters(), "lr": 0.1}, {"params": module[2].parameters()}],
                                      lr=0.01, weight_decay=0.1)
        train(module, optimizer, device, batches(3))
        optimizer.add_param_group({"params": module[3].parameters(), "lr": 0.05, "betas": (0.8, 0.9), "amsgrad": True})
        module[2].requires_grad_(False)
        train(module, optimizer, device, batches(5))
        optimizer.param_groups[0]["weight_decay"] = 0.5
        train(module, optimizer, device, batches(2))
        return parameters(module)

    assert_close(run(LTC), run("cpu"), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("foreach", [None, False, True])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf"), 0.5])
def test_clip_grad_norm(norm_type, foreach, metrics):
    def run(device, compiles=lambda k: None):
        module, norms = mlp().to(device), []
        for k, (x, target) in enumerate(batches(6)):
            module.zero_grad()
            (F.cross_entropy(module(x.to(device)), target.to(device)) * (k + 1)).backward()
            norms.append(clip_grad_norm_(module.parameters(), 0.5 + k, norm_type, foreach=foreach))
            ltc.mark_step()
            compiles(k)
        return norms, [p.grad for p in module.parameters()]

    compiles = Compiles()
    lazy = run(LTC, compiles)
    assert compiles.none_since(1) and fallbacks() == []
    assert_same(lazy, run("cpu"), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("foreach", [None, False, True])
def test_clip_grad_value_and_total_norm(foreach):
    def run(device):
        module = mlp().to(device)
        x, target = (tensor.to(device) for tensor in batches(1)[0])
        F.cross_entropy(module(x), target).backward()
        norm = get_total_norm([p.grad for p in module.parameters()], foreach=foreach)
        clip_grad_value_(module.parameters(), 0.02, foreach=foreach)
        return norm, [p.grad for p in module.parameters()]

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-6)


def test_a_norm_that_is_not_finite_can_be_an_error():
    p = nn.Parameter(torch.ones(3, device=LTC))
    p.grad = torch.full((3,), float("nan"), device=LTC)
    with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
        clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none):
    def run(device):
        module = mlp().to(device)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        x, target = (tensor.to(device) for tensor in batches(1)[0])
        F.cross_entropy(module(x), target).backward()
        held = module[0].weight.grad
        optimizer.zero_grad(set_to_none=set_to_none)
        assert (module[0].weight.grad is None) == set_to_none
        if not set_to_none:
            assert module[0].weight.grad is held
        for _ in range(2):  # accumulate
            F.cross_entropy(module(x), target).backward()
        return held, [p.grad for p in module.parameters()]

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("here, there", [(LTC, "cpu"), ("cpu", LTC), (LTC, LTC)], ids=str)
@pytest.mark.parametrize("name", OPTIONS)
def test_state_moves_between_devices(name, here, there):
    """Training goes on where the state is loaded as it would have gone on where it was saved."""
    options = OPTIONS[name][1]
    module = mlp().to(here)
    optimizer = make(name, module, options)
    train(module, optimizer, here, batches(3))
    file = io.BytesIO()
    torch.save({"module": module.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, map_location=there)
    again = mlp().to(there)
    again.load_state_dict(state["module"])
    resumed = make(name, again, options)
    resumed.load_state_dict(state["optimizer"])
    for (param, values), before in zip(resumed.state.items(), optimizer.state.values()):
        for key, value in values.items():
            if isinstance(value, torch.Tensor) and key != "step":
                assert value.device.type == param.device.type and value.dtype == before[key].dtype
    for one, device, stepper in ((module, here, optimizer), (again, there, resumed)):
        train(one, stepper, device, batches(6)[3:])
    assert_close(parameters(again), parameters(module), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("average", ["swa", "ema", "ema_single"])
def test_averaged_models(average):
    functions = {
        "swa": {},
        "ema": {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
        "ema_single": {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},
    }

    def run(device):
        module = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
        for p in module.parameters():
            p.data.copy_(torch.linspace(-1, 1, p.numel()).view_as(p))
        module.to(device)
        averaged = swa_utils.AveragedModel(module, use_buffers=average == "ema", **functions[average])
        train(module, torch.optim.SGD(module.parameters(), lr=0.1), device, batches(6),
              after_step=lambda k: averaged.update_parameters(module))
        if average != "ema":
            swa_utils.update_bn([x.to(device) for x, _ in batches(3)], averaged)
        return dict(averaged.module.state_dict())

    assert_same(run(LTC), run("cpu"), rtol=1e-4, atol=1e-5)


def test_hooks_of_an_optimizer():
    module = mlp().to(LTC)
    optimizer = torch.optim.Adam(module.parameters())
    seen = []
    optimizer.register_step_pre_hook(lambda *args: seen.append("before"))
    optimizer.register_step_post_hook(lambda *args: seen.append("after"))
    train(module, optimizer, LTC, batches(2))
    assert seen == ["before", "after"] * 2


def test_a_copied_optimizer_goes_on():
    module = mlp().to(LTC)
    optimizer = torch.optim.Adam(module.parameters())
    train(module, optimizer, LTC, batches(2))
    again = mlp().to(LTC)
    again.load_state_dict(module.state_dict())
    copied = torch.optim.Adam(again.parameters())
    copied.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for one, stepper in ((module, optimizer), (again, copied)):
        train(one, stepper, LTC, batches(4)[2:])
    assert_same(dict(again.state_dict()), to_device(dict(module.state_dict()), "cpu"), rtol=0, atol=0)
