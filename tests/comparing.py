"""Comparison of tensors of the device with what the CPU gives, and programs run in a process of their own."""

import os
import subprocess
import sys
import textwrap

import fork_server
import torch

LTC = torch.device("ltc", 0)

# A program that prints the error of an index out of range.
BAD_INDEX = """
import torch, ltc
x, rows = torch.ones(4, 3).to("ltc"), torch.tensor([1, 7]).to("ltc")
y = x[rows] + 1
try:
    y.cpu()
except IndexError as error:
    print(error)
"""

# assert_close computes with the values, which PyTorch's CPU cannot do for these.
_AS_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def to_device(tree, device=LTC):
    """The same nested tuples, lists and dicts, with every tensor on the device, and leaves that require gradients again leaves."""
    if isinstance(tree, torch.Tensor):
        return tree.detach().to(device).requires_grad_(tree.requires_grad)
    if isinstance(tree, dict):
        return {key: to_device(value, device) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(to_device(value, device) for value in tree)
    return tree


def assert_same(lazy, cpu, **tolerance):
    """Same structure, dtype, sizes, strides and, within assert_close's tolerance, values; tensors of `lazy` are on the device."""
    if isinstance(cpu, torch.Tensor):
        assert lazy.device.type == "ltc"
        assert lazy.dtype == cpu.dtype
        assert lazy.shape == cpu.shape
        assert lazy.stride() == cpu.stride()
        assert_close(lazy.detach().cpu(), cpu.detach(), **tolerance)
    elif isinstance(cpu, dict):
        assert lazy.keys() == cpu.keys()
        for key in cpu:
            assert_same(lazy[key], cpu[key], **tolerance)
    elif isinstance(cpu, (list, tuple)):
        assert len(lazy) == len(cpu)
        for one, other in zip(lazy, cpu):
            assert_same(one, other, **tolerance)
    else:
        assert lazy == cpu


def assert_close(actual, expected, **tolerance):
    """assert_close for every dtype."""
    if signed := _AS_SIGNED.get(expected.dtype):
        assert actual.dtype == expected.dtype
        actual, expected = actual.clone().view(signed), expected.clone().view(signed)
    torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)


def assert_both(function, *args, **tolerance):
    """Runs the function with the arguments on the CPU and on the device, and compares what it returns."""
    assert_same(function(*to_device(args)), function(*args), **tolerance)


def run_program(program, **env):
    """Runs Python source in a process of its own; variables given as None are unset. Returns its CompletedProcess."""
    environment = {key: value for key, value in {**os.environ, **env}.items() if value is not None}
    program = textwrap.dedent(program)
    if fork_server.suits(environment):
        return fork_server.run(program, environment)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=fork_server.TIMEOUT, env=environment)


def output_of(program, **env):
    """The output of a program that must end well."""
    run = run_program(program, **env)
    assert run.returncode == 0, run.stderr
    return run.stdout


def outputs_however_computed(program, capability):
    """All that a program prints, in whose text THREADS stands for their number, with one and two, kernels interpreted and compiled."""
    return {
        output_of(program.replace("THREADS", threads), LTC_TORCHSCRIPT_KERNELS=kernels, ATEN_CPU_CAPABILITY=capability)
        for threads, kernels in (("1", "off"), ("2", "off"), ("2", "sync"))
    }


def rows_of_edges(length):
    """Twelve rows with a value each at which a softmax or a norm has an edge, the last two of nothing else."""
    inf, nan = float("inf"), float("nan")
    rows = torch.randn(12, length)
    for row, value in enumerate([nan, inf, -inf, 3.4e38, -3.4e38, 88.0, -87.5, -100.0, -104.0, 1e-45]):
        rows[row, length // 2] = value
    rows[10], rows[11] = -inf, -0.0
    return rows
