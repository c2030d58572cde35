"""Wrong use and hostile surroundings: what the user is told, and that the process goes on."""

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import ltc
from comparing import LTC, assert_same, output_of, run_program

PACKAGE = Path(ltc.__file__).parent
PLUGIN = PACKAGE / "plugins" / "libltc_torchscript.so"


# ---- backends that cannot be loaded

# Importing, and asking what there is, must work where the device does not.
USE = """
import torch, ltc
print("imported")
assert not torch.ltc.is_available()
print("asked")
try:
    torch.ones(2, device="ltc")
except RuntimeError as error:
    print("error:", error)
try:
    torch.ones(2, device="ltc")
except RuntimeError as error:
    print("again:", error)
print((torch.ones(2) + 1).tolist())
"""


def error_of_use(**env):
    lines = output_of(USE, **env)
    assert lines.startswith("imported\nasked\nerror: ") and lines.endswith("[2.0, 2.0]\n")
    first, second = lines.removeprefix("imported\nasked\nerror: ").removesuffix("[2.0, 2.0]\n").split("again: ")
    assert first == second
    return first


def test_unknown_backend():
    error = error_of_use(LTC_BACKEND="nonesuch")
    assert "no backend 'nonesuch' (LTC_BACKEND)" in error
    assert "libltc_nonesuch.so" in error
    assert "available backends: " in error and "torchscript" in error


def test_unknown_backend_in_a_list():
    assert "no backend 'nonesuch'" in error_of_use(LTC_BACKEND="torchscript;nonesuch")


def test_missing_file():
    assert "/nowhere/libltc_x.so" in error_of_use(LTC_BACKEND="/nowhere/libltc_x.so")


def test_truncated_library(tmp_path):
    broken = tmp_path / "libltc_broken.so"
    broken.write_bytes(PLUGIN.read_bytes()[:5000])
    by_path = error_of_use(LTC_BACKEND=str(broken))
    by_name = error_of_use(LTC_BACKEND="broken", LTC_PLUGIN_PATH=str(tmp_path))
    for error in (by_path, by_name):
        assert str(broken) in error and "no backend" in error


def test_text_file_as_library(tmp_path):
    text = tmp_path / "libltc_text.so"
    text.write_text("this is no library\n")
    error = error_of_use(LTC_BACKEND="text", LTC_PLUGIN_PATH=str(tmp_path))
    assert str(text) in error and "no backend 'text'" in error


def test_plugin_path_that_is_a_file(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no folder\n")
    assert "no backend 'x'" in error_of_use(LTC_BACKEND="x", LTC_PLUGIN_PATH=str(text))


def test_library_that_is_no_plugin():
    core = PACKAGE / "libltc_core.so"
    assert str(core) in error_of_use(LTC_BACKEND=str(core))


def test_good_backend_by_path_and_after_bad_folders(tmp_path):
    program = "import torch, ltc; print((torch.ones(2, device='ltc') + 1).tolist())"
    assert output_of(program, LTC_BACKEND=str(PLUGIN)) == "[2.0, 2.0]\n"
    assert output_of(program, LTC_BACKEND="torchscript", LTC_PLUGIN_PATH=f"{tmp_path}:/nowhere") == "[2.0, 2.0]\n"
    assert output_of(program, LTC_BACKEND=None) == "[2.0, 2.0]\n"


# ---- autoload


def test_import_of_torch_alone_registers_nothing():
    output_of("import torch; assert not hasattr(torch, 'ltc')", LTC_BACKEND=None)


def test_import_of_torch_registers_where_a_backend_is_chosen():
    output_of("import torch; assert (torch.ones(2, device='ltc') + 1).tolist() == [2, 2]", LTC_BACKEND="torchscript")


def test_autoload_can_be_switched_off():
    output_of("import torch; assert not hasattr(torch, 'ltc')", LTC_BACKEND="torchscript", TORCH_DEVICE_BACKEND_AUTOLOAD="0")


def test_import_of_torch_works_with_a_bad_backend():
    output_of("import torch; print(torch.ones(2).tolist())", LTC_BACKEND="nonesuch")


def test_registration_loads_no_plugin():
    output_of("""
    import torch, ltc
    torch.manual_seed(3)
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert "libltc_torchscript" not in open("/proc/self/maps").read()
    torch.ones(1, device="ltc")
    assert "libltc_torchscript" in open("/proc/self/maps").read()
    """, LTC_BACKEND=None)


# ---- operands on the wrong device

# The core says CPUFloatType, as torch._lazy does. In every error text Python shows the other form of names that it knows.
NOT_LAZY = "Input tensor is not a lazy tensor: (torch.FloatTensor|CPUBoolType)"

@pytest.mark.parametrize("wrong", [
    lambda x, y: x + y,
    lambda x, y: y + x,
    lambda x, y: x @ y,
    lambda x, y: x.add_(y),
    lambda x, y: torch.cat([x, y]),
    lambda x, y: torch.where(x > 0, x, y),
    lambda x, y: F.linear(x, y),
    lambda x, y: F.mse_loss(x, y),
    lambda x, y: torch.stack([y, x]),
    lambda x, y: x.masked_fill(y > 0, 1.0),
    lambda x, y: torch.addmm(x, x, y),
])
def test_cpu_tensor_mixed_in(wrong):
    x, y = torch.ones(3, 3, device=LTC), torch.ones(3, 3)
    with pytest.raises(RuntimeError, match=NOT_LAZY):
        wrong(x, y)
    assert (x + 1).sum().item() == 18


def test_cpu_tensor_is_described():
    with pytest.raises(RuntimeError, match=NOT_LAZY + r" of sizes \[2\], argument 'other' of aten::add.Tensor; move it with .to\(\"ltc\"\)"):
        torch.ones(2, device=LTC) + torch.ones(2)


def test_module_left_on_the_cpu():
    with pytest.raises(RuntimeError, match=NOT_LAZY):
        torch.nn.Linear(2, 2)(torch.ones(1, 2, device=LTC))
    with pytest.raises(RuntimeError, match=NOT_LAZY):
        torch.nn.Linear(2, 2).to(LTC)(torch.ones(1, 2))


def test_zero_dim_cpu_tensor_is_accepted():
    x = torch.ones(2, device=LTC)
    assert (x + torch.tensor(2.0)).tolist() == [3, 3]
    assert (torch.tensor(2) * x).tolist() == [2, 2]
    assert x.add_(torch.tensor(1.0)).tolist() == [2, 2]


def test_out_on_the_cpu():
    with pytest.raises(RuntimeError, match="Expected out tensor to have device ltc"):
        torch.add(torch.ones(2, device=LTC), 1, out=torch.empty(2))


# ---- errors of ops

MISTAKES = {
    "broadcast": lambda d: torch.ones(2, device=d) + torch.ones(3, device=d),
    "matmul": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "view": lambda d: torch.ones(6, device=d).view(4, 2),
    "view_of_t": lambda d: torch.ones(2, 3, device=d).t().view(6),
    "index": lambda d: torch.ones(3, device=d)[5],
    "dim": lambda d: torch.ones(3, device=d).sum(2),
    "cat": lambda d: torch.cat([torch.ones(2, 2, device=d), torch.ones(3, 3, device=d)]),
    "linear": lambda d: F.linear(torch.ones(2, 3, device=d), torch.ones(2, 2, device=d)),
    "conv": lambda d: F.conv2d(torch.ones(1, 2, 4, 4, device=d), torch.ones(1, 3, 3, 3, device=d)),
    "stack": lambda d: torch.stack([torch.ones(2, device=d), torch.ones(3, device=d)]),
    "expand": lambda d: torch.ones(2, device=d).expand(3, 3),
    "item": lambda d: torch.ones(2, device=d).item(),
    "squeeze_dim": lambda d: torch.ones(2, device=d).squeeze(4),
    "dtype": lambda d: torch.ones(2, dtype=torch.int64, device=d).mean(),
    "mm_dtypes": lambda d: torch.mm(torch.ones(2, 2, device=d), torch.ones(2, 2, dtype=torch.float64, device=d)),
    "negative_size": lambda d: torch.ones(-1, device=d),
    "gather": lambda d: torch.ones(2, 2, device=d).gather(0, torch.zeros(2, dtype=torch.int64, device=d)),
    "permute": lambda d: torch.ones(2, 3, device=d).permute(0, 0),
    "as_strided": lambda d: torch.ones(4, device=d).as_strided((3, 3), (3, 1)),
    "backward": lambda d: torch.ones(2, device=d).sum().backward(),
    "leaf": lambda d: torch.ones(2, device=d, requires_grad=True).add_(1),
    "batch_norm": lambda d: torch.nn.BatchNorm1d(3).to(d)(torch.ones(1, 3, device=d)),
    "layer_norm": lambda d: F.layer_norm(torch.ones(2, 3, device=d), (4,)),
    "softmax": lambda d: F.softmax(torch.ones(2, device=d), 3),
    "nll": lambda d: F.nll_loss(torch.ones(2, 3, device=d), torch.zeros(3, dtype=torch.int64, device=d)),
    "where": lambda d: torch.where(torch.ones(2, device=d) > 0, torch.ones(3, device=d), 1.0),
    "argmax": lambda d: torch.ones(0, device=d).argmax(),
    "linspace": lambda d: torch.linspace(1j, 2, 3, dtype=torch.float32, device=d),
    "arange": lambda d: torch.arange(1j, 2, device=d),
    "randperm": lambda d: torch.randperm(3, dtype=torch.bool, device=d),
    "geometric": lambda d: torch.ones(2, dtype=torch.complex64, device=d).geometric_(0.5),
    "bernoulli": lambda d: torch.ones(2, dtype=torch.complex64, device=d).bernoulli_(0.5),
    "normal": lambda d: torch.ones(2, dtype=torch.int64, device=d).normal_(),
    "normal_std": lambda d: torch.normal(torch.ones(2, device=d), -1.0),
    "word": lambda d: F.gelu(torch.ones(2, device=d), approximate="nearly"),
    "normal_stds": lambda d: torch.normal(torch.ones(2, device=d), -torch.ones(2, device=d)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_raises_at_the_op_as_on_cpu(name):
    with pytest.raises(Exception) as expected:
        MISTAKES[name]("cpu")
    with pytest.raises(type(expected.value)) as error:
        MISTAKES[name](LTC)
    first_words = str(expected.value).split(".")[0].split("\n")[0][:40]
    assert first_words in str(error.value)


MISTAKES_OF_THE_RUN = {
    "index": lambda d: torch.ones(3, device=d)[torch.tensor([5], device=d)],
    "index_put": lambda d: torch.ones(3, device=d).index_put_((torch.tensor([5], device=d),), torch.ones(1, device=d)),
    "take": lambda d: torch.ones(3, device=d).take(torch.tensor([5], device=d)),
    "embedding": lambda d: F.embedding(torch.tensor([5], device=d), torch.ones(3, 2, device=d)),
    "target": lambda d: F.cross_entropy(torch.ones(1, 3, device=d), torch.tensor([5], device=d)),
    "gather": lambda d: torch.ones(3, device=d).gather(0, torch.tensor([5], device=d)),
    "division": lambda d: torch.ones(3, dtype=torch.int64, device=d) // torch.zeros(3, dtype=torch.int64, device=d),
    "dtype": lambda d: torch.ones(3, device=d) & 1,
}


@pytest.mark.parametrize("name", MISTAKES_OF_THE_RUN)
def test_mistake_that_only_the_run_finds_raises_at_the_read_as_on_cpu(name):
    """It depends on values, or a plugin might have the dtype; afterwards the device works."""
    with pytest.raises(Exception) as expected:
        MISTAKES_OF_THE_RUN[name]("cpu")
    wrong = MISTAKES_OF_THE_RUN[name](LTC)
    with pytest.raises(Exception) as error:
        wrong.cpu()
    assert type(error.value) is type(expected.value)
    assert str(expected.value).split("\n")[0] in str(error.value)
    assert (torch.ones(2, device=LTC) + 1).tolist() == [2, 2]


def test_layouts_of_other_libraries_are_refused():
    with pytest.raises(RuntimeError, match="(?i)mkldnn"):
        torch.zeros(2, 2, layout=torch._mkldnn, device=LTC)
    with pytest.raises(RuntimeError, match="(?i)mkldnn"):
        torch.zeros(2, 2, device=LTC).to_mkldnn()


def test_foreign_memory_is_refused():
    with pytest.raises((RuntimeError, BufferError, TypeError, ValueError)):
        torch.from_dlpack(torch.ones(2, device=LTC)) + 1


# ---- fork

FORK = """
import os, sys, torch, ltc
x = torch.ones(3, device="ltc") + 1
ltc.sync()
sys.stdout.flush()
child = os.fork()
if child == 0:
    try:
        {use}
    except RuntimeError as error:
        print("child:", error)
        sys.stdout.flush()
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
print("parent:", (x + 1).tolist())
"""


@pytest.mark.parametrize("use", ["x + 1", "x.cpu()", "ltc.mark_step()", "torch.ones(2).to('ltc')", "print(x)", "torch.rand(3, device='ltc')"])
def test_fork(use):
    lines = output_of(FORK.format(use=use)).splitlines()
    assert "forked process" in lines[0] and "spawn" in lines[0]
    assert lines[-1] == "parent: [3.0, 3.0, 3.0]"


def test_fork_where_the_child_leaves_the_device_alone():
    """As data loaders do: seeds, CPU work, deletion of inherited tensors, exit."""
    assert output_of("""
    import torch, ltc
    from torch.utils.data import DataLoader, TensorDataset
    x = torch.ones(3, device="ltc") + 1
    ltc.sync()
    loader = DataLoader(TensorDataset(torch.arange(40.0)), batch_size=4, num_workers=2)
    assert sum(batch.to("ltc").sum().item() for (batch,) in loader) == 780
    print((x + 1).tolist())
    """) == "[3.0, 3.0, 3.0]\n"


def test_pinned_memory_of_data_loaders():
    assert output_of("""
    import torch, ltc
    from torch.utils.data import DataLoader, TensorDataset
    loader = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=4, pin_memory=True)
    print(sum(batch.to("ltc", non_blocking=True).sum().item() for (batch,) in loader))
    """) == "28.0\n"


# ---- threads


def in_threads(count, work):
    """Runs work(0..count-1) at once; raises what any of them raised."""
    errors, barrier = [], threading.Barrier(count)

    def guarded(k):
        try:
            barrier.wait()
            work(k)
        except BaseException as error:  # noqa: BLE001  told to the test below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if errors:
        raise errors[0]


def test_threads_trace_and_read_at_once():
    def work(k):
        generator = torch.Generator().manual_seed(k)
        for step in range(30):
            cpu = torch.randn(4, 5, generator=generator)
            x = cpu.to(LTC)
            y = (x @ x.t() + step).relu()
            y[1:] += k
            if step % 3 == 0:
                ltc.mark_step()
            expected = (cpu @ cpu.t() + step).relu()
            expected[1:] += k
            assert_same(y, expected)
            assert torch.isclose(y.sum().cpu(), expected.sum(), rtol=1e-4)

    in_threads(4, work)


def test_threads_train_at_once():
    def train(k, device):
        weight = torch.full((3, 3), 0.1 * (k + 1)).to(device).requires_grad_()
        x = torch.arange(6.0).view(2, 3).to(device)
        for _ in range(10):
            (x @ weight).tanh().sum().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
            weight.grad = None
        return weight.detach()

    in_threads(4, lambda k: assert_same(train(k, LTC), train(k, "cpu"), rtol=1e-4, atol=1e-5))


def test_threads_share_tensors():
    shared = torch.arange(12.0, device=LTC).view(3, 4)

    def work(k):
        for _ in range(30):
            assert (shared * k).sum().item() == 66 * k
            ltc.mark_step()

    in_threads(4, work)


def test_threads_start_the_device_at_once():
    output_of("""
    import threading, torch, ltc
    results = []
    def work():
        results.append((torch.ones(3, device="ltc") + 1).sum().item())
    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert results == [6.0] * 8, results
    """)


def test_no_warnings_in_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.ones(3, device=LTC, requires_grad=True)
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2, 2, 2]


def test_process_without_tensors_exits_cleanly():
    run = subprocess.run([sys.executable, "-c", "import ltc"], env=os.environ, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stderr == ""
