"""What a process may do around its first use of the device, and what must not change for programs that do not use it."""

import pytest

from comparing import output_of

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
    """Whoever asks PyTorch for its backward threads gets them."""
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
