"""Registers, spills and shared memory of the cuda plugin's kernels, for the models that tests train and for attention of common sizes.
Needs NVRTC and no GPU.

A build with tests has a plugin that compiles each graph as the cuda plugin does, and runs nothing. NVRTC's assembler says what each
kernel takes. Ends with 1 if a kernel spills more than a few registers, or takes more shared memory than a block gets unasked."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
MOST_SHARED_BYTES = 48 << 10  # CUDA C++ Programming Guide, "Compute Capabilities": static shared memory of a block
# Attention's key gradient for heads of 128 halves spills 200: its operands and sums take 192 of a thread's 255 registers.
MOST_SPILLED_BYTES = 256
WORK = """
import itertools, sys, torch, ltc
from checking import run_both_programs
from comparing import LTC
from models import ROWS

for row in ROWS:
    if row.name in sys.argv[1:]:
        run_both_programs(row, LTC, dropout=0.1)
if "attention" in sys.argv[1:]:
    forms = itertools.product((torch.float32, torch.bfloat16), (64, 128), ("causal", "mask", "neither"))
    for dtype, width, form in forms:
        q, k, v = (torch.randn(8, 12, 1024, width, device=LTC, dtype=dtype, requires_grad=True) for _ in range(3))
        mask = torch.randn(1024, 1024, device=LTC, dtype=dtype) if form == "mask" else None
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=form == "causal")
        attended.backward(torch.ones_like(attended))
        ltc.mark_step()
        ltc.wait_device_ops()
"""


class Kernel(NamedTuple):
    name: str
    registers: int
    spilled_bytes: int  # stored and loaded
    stack_bytes: int
    shared_bytes: int


def kernels_of(text):
    """The kernels of a file that the option `resources` of the test's plugin made: for each compile, names and then the assembler's log."""
    names, kernel, sizes = {}, "", (0, 0)
    for line in text.splitlines():
        if found := re.fullmatch(r"(ltc_kernel_\d+) is (\w+)", line):
            names[found[1]] = found[2]
        elif found := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = found[1]
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            sizes = int(found[1]), int(found[2]) + int(found[3])
        elif found := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            yield Kernel(names[kernel], int(found[1]), sizes[1], sizes[0], int(shared[1]) if shared else 0)


def compile_models(plugin, capability, models):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "resources"
        path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path, "LTC_CACHE": "0", "LTC_BACKEND": f"{plugin}:capability={capability},resources={file}"}
        subprocess.run([sys.executable, "-c", WORK, *models], env=environment, check=True, stdout=subprocess.DEVNULL)
        return list(kernels_of(file.read_text()))


def main():
    sys.path.insert(0, str(ROOT / "tests"))
    import ltc
    from models import ROWS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help="names, separated by commas, of which 'attention' is one; default: all")
    parser.add_argument("--capabilities", default="80,90,100", help="80 is 8.0; default: %(default)s")
    parser.add_argument("--largest", type=int, default=5, help="kernels to name for each capability, those of the most registers; default: %(default)s")
    parser.add_argument("--plugin", default=Path(ltc.__file__).parents[2] / "tests" / "libltc_cuda_compile_only.so", help="default: the build's")
    options = parser.parse_args()
    known = [row.name for row in ROWS] + ["attention"]
    models = options.models.split(",") if options.models else known
    if unknown := sorted(set(models) - set(known)):
        parser.error(f"no such model: {', '.join(unknown)}; there are: {', '.join(known)}")
    failed = []
    print(f"{', '.join(models) if options.models else 'all models and attention'}: evaluation and a training step")
    print("| capability | kernels | registers: median | most | kernels that spill | bytes spilled: most | shared memory: most |\n|---|---|---|---|---|---|---|")
    largest = []
    for capability in options.capabilities.split(","):
        kernels = sorted(compile_models(options.plugin, capability, models), key=lambda kernel: -kernel.registers)
        if not kernels:
            parser.error(f"no kernel was compiled for {capability}")
        spilled = [kernel.spilled_bytes for kernel in kernels if kernel.spilled_bytes]
        shared = max(kernel.shared_bytes for kernel in kernels)
        print(f"| {capability} | {len(kernels)} | {kernels[len(kernels) // 2].registers} | {kernels[0].registers} | {len(spilled)} "
              f"| {max(spilled, default=0)} | {shared} bytes |", flush=True)  # fmt: skip
        failed += [(capability, k) for k in kernels if k.spilled_bytes > MOST_SPILLED_BYTES or k.shared_bytes > MOST_SHARED_BYTES]
        largest += [(capability, kernel) for kernel in kernels[: options.largest]]
    for capability, kernel in largest:
        print(f"{capability}: {kernel.registers} registers, {kernel.shared_bytes} bytes shared, {kernel.stack_bytes} bytes of stack: {kernel.name[:90]}")
    for capability, kernel in failed:
        print(f"BEYOND THE LIMITS: {capability}: {kernel}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
