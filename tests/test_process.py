"""Processes around their first use of the device. Nothing may change for programs that do not use it."""

import re
from collections import Counter

import pytest

from comparing import output_of, run_program

TRAINING = """
model = torch.nn.Linear(4, 2).to("ltc")
model(torch.ones(3, 4, device="ltc")).sum().backward()
assert model.weight.grad.cpu().tolist() == [[3.0] * 4] * 2
"""


def test_import_after_a_backward():
    assert output_of("import torch\ntorch.ones(2, requires_grad=True).sum().backward()\nimport ltc" + TRAINING + "print('trained')") == "trained\n"


def test_cpu_program_under_ltc_backend_forks_after_a_backward():
    """The variable alone registers the device, which must not start backward threads: they forbid autograd in forked children."""
    assert output_of("""
    import os, torch
    def backward():
        torch.ones(2, requires_grad=True).sum().backward()
    backward()
    child = os.fork()
    if child == 0:
        backward()
        os._exit(0)
    print(os.waitpid(child, 0)[1], torch.autograd.is_multithreading_enabled())
    """, LTC_BACKEND="torchscript") == "0 True\n"


@pytest.mark.parametrize("order", ["before", "after"])
def test_backward_in_threads_of_its_own(order):
    """A script that asks PyTorch for its backward threads gets them."""
    first = "torch.ones(2, requires_grad=True, device='ltc').sum().backward()" if order == "after" else ""
    assert output_of(f"""
    import threading, torch, ltc
    {first}
    seen = set()
    with torch.autograd.set_multithreading_enabled(True):
        x = torch.ones(2, device="ltc", requires_grad=True)
        y = x * 2
        torch.autograd.set_multithreading_enabled(True)
        y.register_hook(lambda g: seen.add(threading.get_ident()))
        y.sum().backward()
    print(x.grad.tolist(), threading.get_ident() in seen)
    """) == "[2.0, 2.0] False\n"


def test_programs_that_only_import_torch():
    """Installed beside them, the package changes nothing: no device, no accelerator, no threads."""
    assert output_of("""
    import sys, threading, torch
    accelerator = torch.accelerator.current_accelerator()  # a PyTorch with CUDA names that, without a GPU too
    print("ltc" in sys.modules, torch.accelerator.is_available(), accelerator in (None, torch.device("cuda")), threading.active_count())
    torch.ones(2, requires_grad=True).sum().backward()
    print(torch.autograd.is_multithreading_enabled(), torch.ones(2).share_memory_().is_shared())
    """, LTC_BACKEND=None) == "False False True 1\nTrue True\n"


def test_late_import_in_a_thread():
    assert output_of("""
    import threading, torch
    torch.ones(2, requires_grad=True).sum().backward()

    def work():
        import ltc
        model = torch.nn.Linear(4, 2).to("ltc")
        model(torch.ones(3, 4, device="ltc")).sum().backward()
        print(model.bias.grad.tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    """) == "[3.0, 3.0]\n"


# ---- exits: programs end while work is queued, recorded or being recorded

ROUNDS = 3
EXITS = {  # how a program with eight threads ends, and its exit code
    "joined": ("[t.join() for t in start(False, 3)]", 0),
    "not joined": ("start(False, 3)", 0),
    "daemons": ("start(True, 10**9)\nloss = train(3)", 0),
    "daemons, sys.exit": ("start(True, 10**9)\ntrain(2)\nsys.exit(3)", 3),
    "daemons, exception": ("start(True, 10**9)\ntrain(2)\nraise KeyError('lost')", 1),
    "sys.exit in a thread": ("t = threading.Thread(target=lambda: (train(2), sys.exit(5)))\nt.start()\nt.join()\ntrain(1)", 0),
    "os._exit": ("start(True, 10**9)\ntrain(2)\nos._exit(4)", 4),
    "exception in a thread": ("t = threading.Thread(target=lambda: train(2) + 'x')\nt.start()\nt.join()", 0),
    "value kept by a module": ("sys.loss = train(2)\nstart(True, 10**9)", 0),
    "hook at exit": ("import atexit\nx = train(2)\natexit.register(lambda: print(x.item() >= 0))", 0),
}


def test_thirty_exits_with_eight_threads():
    """None aborts. The programs are forked from one that has imported everything and not used the device: cheaper than thirty starts."""
    run = run_program(f"""
import os, sys, threading, torch, ltc

def train(steps):
    model = torch.nn.Linear(8, 2).to("ltc")
    for step in range(steps):
        model.zero_grad()
        loss = model(torch.ones(4, 8, device="ltc")).square().mean()
        loss.backward()
        ltc.mark_step()
    return loss

def start(daemon, steps):
    threads = [threading.Thread(target=train, args=(steps,), daemon=daemon) for _ in range(8)]
    for thread in threads:
        thread.start()
    return threads

sys.setswitchinterval(1e-4)  # threads take turns often
wrong = []
for name, (ending, code) in list({EXITS!r}.items()) * {ROUNDS}:
    child = os.fork()
    if child == 0:
        break
    status = os.waitpid(child, 0)[1]
    if status != code << 8:
        wrong.append((name, status))
else:
    print("wrong:", wrong, file=sys.stderr)
    os._exit(bool(wrong))
torch.ones(1, requires_grad=True).sum().backward()  # PyTorch makes its engine anew after a fork, which is safe in one thread only
exec(ending)
""", PYTHONUNBUFFERED=None)  # with it, Python writes a line in pieces, and other threads' lines come between
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout == "True\n" * ROUNDS
    raised = Counter(re.findall(r"^(\w+Error): ", run.stderr, re.MULTILINE))
    assert raised == {"KeyError": ROUNDS, "TypeError": ROUNDS}, run.stderr[-3000:]
    for word in ("terminate called", "Fatal Python error", "core dumped"):
        assert word not in run.stderr, run.stderr[-3000:]


def test_threads_agree_with_one():
    """Eight threads of forward and backward at once give what they give one after the other."""
    assert output_of("""
    import threading, torch, ltc

    def gradient(seed):
        x = torch.arange(32.0).view(4, 8).add(seed).div(40).to("ltc").requires_grad_()
        for _ in range(20):
            y = (x @ x.t()).tanh().sum()
            y.backward()
        return x.grad

    expected, found = [gradient(k).cpu() for k in range(8)], [None] * 8

    def work(k):
        found[k] = gradient(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(all(torch.allclose(a.cpu(), b) for a, b in zip(found, expected)))
    """) == "True\n"


def test_number_of_threads_can_change():
    """The plugin computes in a thread of its own, and in more once somebody waits; PyTorch's number is one per thread."""
    assert output_of("""
        import os, time, torch, ltc
        def helpers():
            return sum(open(f"/proc/self/task/{task}/comm").read() == "ltc_worker\\n" for task in os.listdir("/proc/self/task"))
        def compute():
            (torch.ones(1 << 24, device="ltc") + 1).sum().item()
        torch.set_num_threads(1)
        compute()
        print(helpers())
        torch.set_num_threads(3)
        compute()
        end = time.monotonic() + 10  # a thread has its name a little after it began
        while helpers() < 2 and time.monotonic() < end: time.sleep(0.01)
        print(helpers())
    """) == "0\n2\n"


def test_profiler_sees_the_memory_of_small_tensors():
    """The plugin keeps memory of small CPU tensors, but not while somebody counts it."""
    program = """
import torch, ltc
torch.ones(1).to("ltc").add(1).tolist()  # the plugin is loaded
[torch.ones(1) for _ in range(10)]
with torch.profiler.profile(profile_memory=True) as profile:
    kept = torch.ones(3)
    for _ in range(10): torch.empty(3)
allocated = [event.self_cpu_memory_usage for event in profile.events() if event.name == "aten::empty"]
assert len(allocated) == 11 and min(allocated) > 0, allocated
"""
    output_of(program)
