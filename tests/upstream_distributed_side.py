"""PyTorch's ``DistributedTest`` on one side: device ``ltc`` with its backend, or the CPU with Gloo.

    python tests/upstream_distributed_side.py --backend ltc --ranks 2 test_all_reduce_sum ...

Prints a line of JSON for each test. The ranks are forked from this process, which has imported PyTorch, and each test has ranks of its own.
``upstream_distributed.py`` runs both sides and compares them.

The tests name their device in three ways. Each is replaced in the text of the module, by the tables below, and nothing else of a test is.

- A test for GPUs says ``.cuda(rank)``, ``"cuda"`` or a number. On ``ltc`` the device has another name, and as many devices as ranks. On the CPU there
  is but one device, and ``DistributedDataParallel`` takes no ``device_ids``.
- A test for the CPU names no device. On ``ltc`` its rank has a default device.
- A test for one backend asks for the backend's name. The names below a condition that would skip the test then include the side's.
"""

import argparse
import faulthandler
import functools
import importlib
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent

BACKEND_RULES = [
    (r'\bBACKEND != ("\w+")', r'BACKEND not in (\1, "SIDE")'),
    (r'is_available\(\{("gloo"|"nccl")\}\)', r'is_available({\1, "SIDE"})'),
    (r'backend=("nccl"|dist\.Backend\.NCCL)', "backend=BACKEND"),
    (r"from torch\.cuda\.amp import autocast, GradScaler",
     "from functools import partial; autocast, GradScaler = partial(torch.autocast, 'DEVICE'), partial(torch.amp.GradScaler, 'DEVICE')"),
]  # fmt: skip
DEVICE_RULES = {
    "ltc": [
        (r'\bif (BACKEND|backend) == "nccl"', r'if \1 in ("nccl", "ltc")'),  # in a test: the backend of an accelerator
        (r"\.cuda\(", ".ltc("),
        (r"\btorch\.cuda\.(?=[a-zA-Z])", "torch.ltc."),
        (r'(?<!feature\[)"cuda(?=[":])', '"ltc'),
    ],
    "gloo": [
        (r"\.cuda\((?:[^()]|\([^()]*\))*\)", '.to("cpu")'),
        (r"\btorch\.cuda\.manual_seed\b", "torch.manual_seed"),
        (r"\btorch\.cuda\.device_count\(\)", 'int(os.environ["WORLD_SIZE"])'),
        (r"\btorch\.cuda\.(?=[a-zA-Z])", "torch.cpu."),
        (r'(?<!feature\[)"cuda:" \+ str\(\w+\)|(?<!feature\[)"cuda(:[^"]*)?"', '"cpu"'),
        (r"\bdevice_ids=(\[[^]]*\]|gpus|gpu_subset)", "device_ids=None"),
        (r"\boutput_device=self\.rank\b", "output_device=None"),
        (r"\bdevice( ?= ?)((self\.|my_)?rank|device_id|0)\b", r'device\1"cpu"'),
        (r"\.to\(((self\.)?rank|device_id)\)", '.to("cpu")'),
        (r"\btorch\.device\((self\.)?rank\)", 'torch.device("cpu")'),
    ],
}
# Their tensors for the time are made by torch.DoubleTensor, on the CPU.
ON_CPU_TOO = {"test_barrier": "cpu:gloo,ltc:ltc", "test_barrier_group": "cpu:gloo,ltc:ltc", "test_barrier_full_group": "cpu:gloo,ltc:ltc"}
IS_OF_OBJECTS = re.compile("_object")  # Python objects, whose tensors keep their device on the way to a rank with another one
FEATURES = ("gpu", "cuda", "ddp", "subgroup", "plugin")


def rewritten(text, side):
    """The text of upstream's module for a side."""
    for pattern, replacement in BACKEND_RULES + DEVICE_RULES[side]:
        text = re.sub(pattern, replacement.replace("SIDE", side).replace("DEVICE", "ltc" if side == "ltc" else "cpu"), text)
    return text


def needs_devices(count=1, **_):
    """Upstream's decorators ask for GPUs. Here each rank has a device, so they ask for ranks, and mark the test."""

    def decorator(function):
        @functools.wraps(function)
        def wrapper(*arguments, **options):
            return function(*arguments, **options)

        wrapper.names_its_device = True
        ranks = int(os.environ["WORLD_SIZE"])
        return wrapper if ranks >= count else unittest.skip(f"needs {count} devices, there are {ranks}")(wrapper)

    return decorator


def needs_group_of_some(function):
    """For a group of ranks 1 and 2. Upstream's own decorator asks for eight ranks, so these tests run nowhere."""
    return unittest.skipIf(int(os.environ["WORLD_SIZE"]) < 4, "needs 4 ranks")(function)


def upstream_module(side, folder):
    """The rewritten module, imported from ``folder``."""
    from torch.testing._internal import common_distributed as common

    for feature in FEATURES:
        common.DistTestCases.backend_feature[feature].add(side)
    common.skip_if_lt_x_gpu = needs_devices
    common.skip_if_no_gpu = needs_devices()
    common.skip_if_small_worldsize = needs_group_of_some
    common.init_multigpu_helper = lambda ranks, _: {rank: [rank] for rank in range(ranks)}
    common.TIMEOUT_OVERRIDE.clear()
    original = Path(common.__file__).parent / "distributed" / "distributed_test.py"
    (Path(folder) / "upstream_on_side.py").write_text(rewritten(original.read_text(), side))
    sys.path.insert(0, str(folder))
    return importlib.import_module("upstream_on_side")


def test_class(upstream, side):
    """The class that upstream's ``test_distributed_spawn.py`` makes, with ranks that are forked."""
    import torch

    class TestOnSide(upstream.TestDistBackend, upstream.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(multiprocessing.get_context("fork").Process)

        def tearDown(self):
            for process in self.processes:
                process.kill()
                process.join()
            super().tearDown()

        @classmethod
        def _run(cls, rank, test_name, *arguments, **options):
            torch.set_num_threads(1)
            if side == "ltc":
                upstream.BACKEND = ON_CPU_TOO.get(test_name, side)
                torch.ltc.set_device(rank)
                if not getattr(getattr(cls, test_name), "names_its_device", False) and not IS_OF_OBJECTS.search(test_name):
                    torch.set_default_device(f"ltc:{rank}")
            super()._run(rank, test_name, *arguments, **options)

    return TestOnSide


def outcome(case):
    """(result, reason) of a unittest case that is run now."""
    result = unittest.TestResult()
    case.run(result)
    if result.skipped:
        return "skipped", result.skipped[0][1]
    problems = result.errors + result.failures
    return ("failed", problems[0][1]) if problems else ("passed", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", choices=DEVICE_RULES, default="ltc")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--limit", type=int, default=60, help="seconds that a test may take")
    parser.add_argument("names", nargs="*", help="all by default")
    arguments = parser.parse_args()
    os.environ.update(BACKEND=arguments.backend, WORLD_SIZE=str(arguments.ranks), DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(arguments.limit))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("LTC_BACKEND", ";".join(["torchscript"] * arguments.ranks))  # a device for each rank
    report = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        os.environ.update(TEMP_DIR=folder, INIT_METHOD=f"file://{folder}/ranks", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
        import torch._dynamo  # noqa: F401  imported by the first optimizer, which takes seconds

        if arguments.backend == "ltc":
            import ltc  # noqa: F401
        cls = test_class(upstream_module(arguments.backend, folder), arguments.backend)
        for name in arguments.names or unittest.TestLoader().getTestCaseNames(cls):
            begin = time.monotonic()
            log.seek(log.truncate(0))
            faulthandler.dump_traceback_later(arguments.limit + 30, exit=True, file=log)
            result, reason = outcome(cls(name))
            faulthandler.cancel_dump_traceback_later()
            log.seek(0)
            row = {"name": name, "result": result, "reason": reason, "seconds": round(time.monotonic() - begin, 1), "log": log.read()[-4000:]}
            print(json.dumps(row), file=report, flush=True)


if __name__ == "__main__":
    main()
