"""Fixtures of all integration tests: the device, counters at zero, seeds."""

import os

os.environ["LTC_CACHE"] = "0"  # a compile is a compile, also in processes that tests start
os.environ["LTC_VERIFY"] = "1"  # the host checks its graphs after each step of compiling
os.environ["OMP_NUM_THREADS"] = "1"  # see below

import pytest
import torch

import ltc  # noqa: F401  registers the device

# Test processes, and those that they start, share the cores, where threads of OpenMP that wait for each other make convolutions
# take seconds. Set before the device's thread begins: both sides of a comparison then add in one order.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def metrics():
    """The counters, at zero, with nothing of earlier tests still queued or traced."""
    ltc.sync()
    ltc.metrics.reset()
    return ltc.metrics


# Files with tests of half a minute.
LONG = {"test_cuda.py", "test_digits.py", "test_how_to.py", "test_operator_sweep.py", "test_patches.py", "test_process.py",
        "test_rules.py"}


def pytest_configure(config):
    config.addinivalue_line("markers", "patch(name): the test is about that patch of PyTorch, and is skipped where it is not installed")


def pytest_runtest_setup(item):
    missing = {mark.args[0] for mark in item.iter_markers("patch")} - set(ltc._patches.active())
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def pytest_collection_modifyitems(items):
    """Long ones first: none begins when the other processors are about to have nothing left to do."""
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_addoption(parser):
    parser.addoption("--every-model", action="store_true", help="other plugins than torchscript train all models, not a few: half an hour")
