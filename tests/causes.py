"""Functions that are slow for one reason each, which `ltc explain` is to name: at the line marked `# <-`, or for the whole run."""

import os
import random
import tempfile
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

import ltc

STEPS = 8
SEEDS = {}  # by the cause's name: functions
SETTINGS = {}  # by function: environment variables that it needs, in a process of its own


def seed(cause, **settings):
    def add(function):
        SEEDS.setdefault(cause, []).append(function)
        if settings:
            SETTINGS[function] = settings
        return function

    return add


def rows(count=16):
    return torch.ones(count, 32, device="ltc")


def training(optimizer=torch.optim.SGD, **options):
    torch.manual_seed(0)
    model = nn.Linear(32, 4).to("ltc")
    return model, optimizer(model.parameters(), **({"lr": 0.01} | options))


def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


# ---- values that are read


@seed("print")
def prints_a_tensor():
    for _ in range(STEPS):
        y = rows().sum()
        str(y)  # <-


@seed("item")
def reads_the_loss_in_each_step():
    model, optimizer = training()
    total = 0.0
    for _ in range(STEPS):
        loss = step(model, optimizer, rows())
        total += loss.item()  # <-


@seed("item")
def reads_a_float_in_each_step():
    for _ in range(STEPS):
        y = rows().mean()
        x = float(y)  # <- # noqa: F841


@seed("copy to the CPU")
def copies_results_in_each_step():
    kept = []
    for _ in range(STEPS):
        y = rows() * 2
        kept.append(y.cpu())  # <-


@seed("whole tensor to a list or numpy")
def goes_to_numpy():
    for _ in range(STEPS):
        y = rows() * 2
        y.cpu().numpy()  # <-


@seed("whole tensor to a list or numpy")
def goes_to_a_list():
    for _ in range(STEPS):
        y = rows(2) * 2
        y.tolist()  # <-


@seed("branch on a value")
def branches_on_a_value():
    x = rows()
    for _ in range(STEPS):
        x = x + 1
        if x.sum() > 0:  # <-
            x = x * 0.5


@seed("branch on a value")
def loops_while_a_value_is_large():
    x = rows() * 64
    while x.sum() > 100:  # <-
        x = x * 0.5


@seed("value as a size")
def slices_by_a_value():
    lengths = torch.tensor([3] * STEPS, device="ltc")
    for i in range(STEPS):
        rows()[: lengths[i]].sum()  # <-


@seed("value as a size")
def counts_to_a_value():
    for _ in range(STEPS):
        count = torch.full((), 3, device="ltc", dtype=torch.int64) + 1
        for _ in range(int(count)):  # <-
            pass


@seed("iterating over a tensor")
def goes_over_values():
    for _ in range(STEPS):
        picked = torch.arange(4, device="ltc") * 2
        total = sum(int(v) for v in picked)  # <- # noqa: F841


@seed("optimizer reads")
def has_an_optimizer_that_reads():
    model, optimizer = training(torch.optim.LBFGS, max_iter=4)
    x = rows()

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)  # <-


@seed("gradient clipping")
def clips_with_a_check():
    model, optimizer = training()
    for _ in range(STEPS):
        model(rows()).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # <-
        optimizer.step()


@seed("gradient scaler")
def scales_gradients():
    model, optimizer = training()
    scaler = torch.amp.GradScaler("ltc")
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(model(rows()).square().mean()).backward()
        scaler.step(optimizer)  # <-
        scaler.update()


@seed("anomaly check")
def checks_for_nan():
    for _ in range(STEPS):
        y = rows().sqrt()
        bool(torch.isnan(y).any())  # <-


@seed("saving")
def saves_often():
    model, optimizer = training()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(STEPS):
            step(model, optimizer, rows())
            torch.save(model.state_dict(), os.path.join(folder, "model.pt"))  # <-


@seed("deferred assertion")
def asserts_on_the_device():
    for _ in range(STEPS):
        y = rows()
        torch._assert_async((y > 0).all())
        ltc.sync()  # <-


# ---- waits


@seed("synchronize")
def waits_in_each_step():
    model, optimizer = training()
    for _ in range(STEPS):
        step(model, optimizer, rows())
        torch.accelerator.synchronize()  # <-


# ---- values that are sent


@seed("tensor sent in each step")
def sends_data():
    for _ in range(STEPS):
        x = torch.randn(16, 32)
        (x.to("ltc") * 2).sum()  # <-
        ltc.mark_step()


@seed("same values sent again")
def sends_the_same_mask():
    mask = torch.ones(16, 32).tril()
    for _ in range(STEPS):
        (rows() * mask.to("ltc")).sum()  # <-
        ltc.mark_step()


@seed("number made a tensor")
def makes_tensors_of_numbers():
    x = rows()
    for i in range(STEPS):
        x = x * torch.tensor(1.0 / (i + 1), device="ltc")  # <-
        ltc.mark_step()


# ---- ops of the CPU


@seed("size from values")
def selects_by_a_mask():
    for _ in range(STEPS):
        x = torch.randn(64, device="ltc")
        x[x > 0].sum()  # <-


@seed("size from values")
def asks_where():
    for _ in range(STEPS):
        x = torch.randn(64, device="ltc")
        torch.nonzero(x)  # <-


@seed("size from values")
def asks_for_unique_values():
    for _ in range(STEPS):
        torch.unique(torch.arange(8, device="ltc") % 3)  # <-


@seed("sparse op on the CPU")
def has_sparse_ops():
    for _ in range(STEPS):
        x = torch.eye(8, device="ltc").to_sparse()
        torch.sparse.log_softmax(x, 1)  # <-


@seed("linear algebra on the CPU", LTC_BACKEND="minimal")
def has_a_decomposition_of_a_matrix():
    for _ in range(STEPS):
        y = torch.linalg.eigh(torch.eye(8, device="ltc"))  # <- # noqa: F841
        ltc.mark_step()


@torch.library.custom_op("causes::twice", mutates_args=(), device_types="cpu")
def twice(x: torch.Tensor) -> torch.Tensor:
    return x + x


@seed("custom op on the CPU")
def has_a_custom_op():
    for _ in range(STEPS):
        y = twice(rows())  # <- # noqa: F841


@seed("op not claimed", LTC_BACKEND="null")
def runs_on_a_plugin_without_ops():
    x = rows()
    for _ in range(STEPS):
        x = x.sin()  # <-
        ltc.mark_step()


@seed("op not claimed", LTC_BACKEND="minimal")
def has_an_op_that_the_plugin_lacks():
    targets, lengths, target_lengths = torch.tensor([[1, 2]], device="ltc"), torch.tensor([8]), torch.tensor([2])
    x = torch.rand(8, 1, 8, device="ltc")
    for _ in range(STEPS):
        y = F.ctc_loss(x.log_softmax(2), targets, lengths, target_lengths)  # <- # noqa: F841
        ltc.mark_step()


@seed("left out by a setting", LTC_CLAIMS="minimal")
def has_no_claims():
    for _ in range(STEPS):
        y = torch.linalg.eigh(torch.eye(8, device="ltc"))  # <- # noqa: F841
        ltc.mark_step()


# ---- compiles


@seed("sizes that change")
def has_many_sizes():
    for n in (5, 9, 3, 12, 7, 4):
        y = rows(n).exp().sum()  # noqa: F841
        ltc.mark_step()


@seed("last, smaller batch")
def has_a_smaller_last_batch():
    weight = torch.ones(32, device="ltc")
    for n in [16] * 9 + [5]:
        x = rows(n)
        y = (x @ weight).square().mean()  # noqa: F841
        ltc.mark_step()


@seed("tensor that grows")
def grows_a_tensor():
    cache = torch.zeros(1, 32, device="ltc")
    for _ in range(6):
        cache = torch.cat([cache, rows(1)])
        y = cache.softmax(0).sum()  # noqa: F841
        ltc.mark_step()


@seed("number that is a constant")
def has_a_number_that_is_a_constant():
    x = rows()
    for i in range(6):
        y = x.norm(p=i + 1.5)  # <- # noqa: F841
        ltc.mark_step()


@seed("dtype that changes")
def changes_its_dtype():
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = torch.ones(16, 32, device="ltc", dtype=dtype)
        for _ in range(3):
            y = (x * 2 + 1).sum()  # noqa: F841
            ltc.mark_step()


@seed("steps that differ")
def branches_at_random():
    random.seed(1)
    x = rows()
    for _ in range(12):
        y = x * 2
        for name in random.choices(("sin", "cos", "exp", "tanh"), k=2):
            y = getattr(y, name)()
        y = y.relu().sum()
        ltc.mark_step()


@seed("results that differ")
def keeps_results_now_and_then():
    x = rows()
    for i in range(8):
        steps = [x * 2]
        for name in ("sin", "cos", "tan"):
            steps.append(getattr(steps[-1], name)())
        kept = [step for k, step in enumerate(steps) if i >> k & 1 or k == 3]  # noqa: F841
        del steps
        ltc.mark_step()


@seed("first compile", LTC_CACHE="1")
def compiles_once():
    for _ in range(STEPS):
        y = (rows() * 3.5).atan().cosh().sum()  # noqa: F841
        ltc.mark_step()


@seed("loaded from the disk", LTC_CACHE="1")
def starts_warm():
    y = (torch.ones(3, 5, device="ltc") * 7).erf().sum()  # noqa: F841
    ltc.mark_step()


@seed("nothing is kept on the disk", LTC_CACHE="0")
def keeps_no_programs():
    y = (rows() * 3).asinh().sum()  # noqa: F841
    ltc.mark_step()


@seed("compiled in the background", LTC_BACKGROUND_COMPILE="1", LTC_CACHE="0")
def compiles_in_the_background():
    for _ in range(100_000):  # as many as a busy machine needs
        y = (rows() * 3 + 2).sum()  # noqa: F841
        ltc.sync()
        if ltc.metrics.counter_value("BackgroundCompile"):
            break


# ---- steps


@seed("every op runs at once", LTC_EAGER="1")
def is_eager():
    x = rows()
    for _ in range(STEPS):
        x = x * 2  # <-


@seed("no step ends", LTC_AUTO_STEP="0")
def ends_no_step():
    x = rows(1)
    for _ in range(40_000):
        x = x * 1.0001
    x.sum().item()


@seed("small steps")
def has_steps_of_one_op():
    x = rows()
    for _ in range(50):
        x = x + 1
        ltc.mark_step()


@seed("calls of compiled functions")
def calls_a_compiled_function():
    compiled = ltc.jit(lambda x: x * 2 + 1)
    for _ in range(STEPS):
        x = rows() * 3
        compiled(x)  # <-


@seed("step that fails")
def looks_up_a_bad_index():
    table = torch.ones(4, 8, device="ltc")
    for _ in range(3):
        good = table * 2
        bad = F.embedding(torch.tensor([9], device="ltc"), table)
        ltc.mark_step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                bad.cpu()
            except Exception:
                pass
        del good, bad


# ---- the whole run


@seed("both sides are checked", LTC_VALIDATE="1")
def is_validated():
    rows().sum().item()


@seed("graphs are checked", LTC_VERIFY="1")
def is_verified():
    rows().sum().item()


@seed("whole stacks", LTC_STACKS="1")
def records_stacks():
    rows().sum().item()


@seed("the device is the limit")
def has_much_to_compute():
    x = torch.rand(700, 700, device="ltc")
    for _ in range(60):
        x = (x @ x).softmax(1)
        ltc.mark_step()


@seed("Python is the limit", LTC_CACHE="0")
def has_much_to_do_itself():
    x = rows(1)
    for _ in range(10):
        x = x + 1
        time.sleep(0.05)  # the script's own work
        ltc.mark_step()


@seed("tried on the CPU first")
def writes_to_results():
    for _ in range(STEPS):
        out = torch.empty(0, device="ltc")
        torch.linalg.inv_ex(torch.eye(4, device="ltc"), out=(out, torch.empty(0, dtype=torch.int32, device="ltc")))
