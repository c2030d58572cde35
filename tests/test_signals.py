"""Ctrl-C while a program waits for the device, whose plugin never answers; and what the rest of the process may still do."""

from pathlib import Path

import pytest

import ltc
from comparing import output_of, run_program

PLUGINS = Path(ltc.__file__).parents[2] / "tests" / "plugins"
needs_test_plugins = pytest.mark.skipif(not PLUGINS.is_dir(), reason="the plugins of the core's own tests are not built")

WAITS = {
    "item": "y.sum().item()",
    "print": "print(y)",
    "copy": "torch.empty(2).copy_(y)",
    "sync": "ltc.sync()",
    "synchronize": "torch.ltc.synchronize()",
    "stream": "torch.ltc.current_stream().synchronize()",
    "event": "event.synchronize()",
    "steps": "[(y.neg_(), ltc.mark_step()) for step in range(100)]",
    "captured": "[negate(y) for step in range(100)]",
}


@needs_test_plugins
@pytest.mark.parametrize("plugin", ["test_hangs", "test_never"])  # in execute, and with an event that is never over
def test_every_wait_ends_with_the_signal(plugin):
    assert output_of(f"""
    import os, signal, threading, torch, ltc
    signal.alarm(120)  # ends the wait that nothing else ends
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(name, wait):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            exec(wait)
        except KeyboardInterrupt:
            print(name, end=" ", flush=True)

    negate = ltc.jit(torch.neg)
    y = -torch.ones(2).to("ltc")
    event = torch.Event("ltc")
    event.record()
    for name, wait in {WAITS!r}.items():
        interrupted(name, wait)
    os._exit(0)
    """, LTC_BACKEND=str(PLUGINS / f"libltc_{plugin}.so"), LTC_LOG="off") == " ".join(WAITS) + " "


@needs_test_plugins
def test_a_wait_for_another_threads_compiler_ends_with_the_signal():
    assert output_of("""
    import os, signal, threading, time, torch, ltc
    signal.signal(signal.SIGINT, signal.default_int_handler)
    x = torch.ones(2).to("ltc")
    ready, begun = (-torch.ones(2).to("ltc")), time.monotonic()
    ready.tolist()
    compiler = threading.Thread(target=lambda: (x * x).tolist())
    compiler.start()
    time.sleep(0.2)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        ready.tolist()
    except KeyboardInterrupt:
        print("interrupted", compiler.is_alive())
    compiler.join()
    print(ready.tolist(), (x * x).tolist())
    """, LTC_BACKEND=str(PLUGINS / "libltc_test_sleeps_in_compile.so"), LTC_LOG="off") == "interrupted True\n[-1.0, -1.0] [1.0, 1.0]\n"


def test_handlers_run_while_a_program_waits_and_nothing_is_lost():
    """The wait goes on after a handler that throws nothing. One that throws in the middle of a step loses no parameter."""
    assert output_of("""
    import os, signal, threading, torch, ltc

    class Late(Exception):
        pass

    calls, read = [], []

    def handler(number, frame):
        calls.append(number)
        read.append((w * 0).sum().item())  # wherever the program waits, a handler may use the device
        if len(calls) > 1:
            raise Late
        threading.Timer(0.2, kill).start()

    signal.signal(signal.SIGUSR1, handler)
    x = torch.eye(1500).to("ltc")
    w, steps = torch.zeros(1500, device="ltc"), 0
    kill = lambda: os.kill(os.getpid(), signal.SIGUSR1)
    threading.Timer(0.2, kill).start()
    try:
        while True:
            y = x @ x @ x @ x
            w += y.sum(0)
            steps += 1
            ltc.mark_step()
    except Late:
        pass
    w = w.cpu()
    print(calls == [signal.SIGUSR1] * 2, read == [0, 0], bool((w == w[0]).all()), abs(w[0].item() - steps) <= 1, (x + 1).sum().item() > 0)
    """) == "True True True True True\n"


# ---- the end of the process


@needs_test_plugins
def test_a_daemon_that_comes_back_from_the_compiler_when_python_ends():
    run = run_program("""
    import sys, threading, time, torch, ltc

    class Slow:
        def __del__(self):
            time.sleep(2)  # Python is ending: a thread that asks for its lock is ended

    sys.slow = Slow()
    x = torch.ones(2).to("ltc")
    threading.Thread(target=lambda: (-x).tolist(), daemon=True).start()
    time.sleep(0.2)
    """, LTC_BACKEND=str(PLUGINS / "libltc_test_sleeps_in_compile.so"))
    assert (run.returncode, run.stderr) == (0, "")


def test_a_handler_that_was_registered_before_the_import_still_reads_values():
    assert output_of("""
    import atexit
    atexit.register(lambda: print(x.item(), (x + 1).item(), y.sum().item()))
    import torch, ltc
    x, y = torch.ones(1, device="ltc") * 3, torch.ones(400, 400).to("ltc")
    """) == "3.0 4.0 160000.0\n"
