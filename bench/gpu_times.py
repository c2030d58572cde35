#!/usr/bin/env python3
"""Step times on a GPU: device ltc with the plugin cuda beside eager CUDA and torch.compile, in one process, in turns.

Writes a table; bench/gpu.sh calls it. Needs a PyTorch that has CUDA. LTC_BACKEND=cuda is set here.
"""

import argparse
import os
import statistics
import time

os.environ["LTC_BACKEND"] = "cuda"

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import ltc  # noqa: E402
from workloads import WORKLOADS, Workload, model_workload  # noqa: E402

NAMES = ("mlp", "mnist4", "lstm_unrolled", "enc", "chain4m")
CHAIN_BYTES = 3 * 4 * (4 << 20)  # of chain4m: two inputs are read, one result is written


def _gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            config = GPT2Config(n_layer=6, n_head=8, n_embd=512, n_positions=256, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0)
            self.model = GPT2LMHeadModel(config)

        def forward(self, tokens):
            return self.model(tokens, use_cache=False).logits

    return Logits()


def _resnet18():
    from torchvision.models import resnet18

    return resnet18(num_classes=10)


def _next_token(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01)


_TOKENS = torch.empty(8, 256, dtype=torch.int64)
_IMAGES = torch.empty(32, 3, 64, 64), torch.empty(32, dtype=torch.int64)
MODELS = [
    Workload("gpt2", "GPT-2, 6 layers of 512, batch 8 of 256 tokens, SGD training step",
             model_workload(_gpt2, (_TOKENS, _TOKENS), _sgd, _next_token), block=5),
    Workload("resnet18", "ResNet-18, batch 32 of 64x64, SGD training step", model_workload(_resnet18, _IMAGES, _sgd, F.cross_entropy),
             block=5),
]  # fmt: skip

# What a step runs on, and what its model or function is wrapped in.
SIDES = {
    "eager": ("cuda", lambda f: f),
    "compile": ("cuda", torch.compile),
    "reduce-overhead": ("cuda", lambda f: torch.compile(f, mode="reduce-overhead")),
    "ltc": ("ltc", lambda f: f),
}


def block_seconds(step, device, count):
    """Seconds per step of `count` steps, to the end of the last one's execution."""
    begin = time.perf_counter()
    for _ in range(count):
        if device == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        result = step()  # noqa: F841, alive at the barrier
        if device == "ltc":
            ltc.mark_step()
    ltc.wait_device_ops() if device == "ltc" else torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def measure(workload, rounds):
    """Milliseconds per step by side; a text where a side failed."""
    steps, times = {}, {}
    for side, (device, wrap) in SIDES.items():
        try:
            torch._dynamo.reset()
            steps[side] = workload.make(device, wrap)
            block_seconds(steps[side], device, max(5, workload.block))
            times[side] = []
        except Exception as error:  # the other sides are still worth their figures
            times[side] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            steps.pop(side, None)
    for _ in range(rounds):
        for side, step in steps.items():
            times[side].append(block_seconds(step, SIDES[side][0], workload.block))
    return {side: statistics.median(found) * 1e3 if isinstance(found, list) else found for side, found in times.items()}


def copy_rate():
    """Bytes per second that a copy on the device reads and writes."""
    source = torch.empty(1 << 28, device="cuda")
    target = torch.empty_like(source)
    target.copy_(source)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10):
        target.copy_(source)
    torch.cuda.synchronize()
    return 10 * 2 * 4 * source.numel() / (time.perf_counter() - begin)


def cell(value):
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workloads", metavar="A,B", help="only these")
    args = parser.parse_args()
    known = [w for w in WORKLOADS if w.name in NAMES] + MODELS
    chosen = [w for w in known if not args.workloads or w.name in args.workloads.split(",")]
    rate = copy_rate()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}; a copy moves {rate / 1e12:.2f} TB/s\n")
    print("| step, ms | " + " | ".join(SIDES) + " | ltc / compile | ltc / reduce-overhead |")
    print("|---" * (len(SIDES) + 3) + "|")
    for workload in chosen:
        times = measure(workload, args.rounds)
        ratios = [
            f"{times['ltc'] / times[other]:.2f}" if isinstance(times["ltc"], float) and isinstance(times[other], float) else "-"
            for other in ("compile", "reduce-overhead")
        ]
        print(f"| {workload.name} | " + " | ".join(map(cell, times.values())) + " | " + " | ".join(ratios) + " |", flush=True)
        if workload.name == "chain4m" and isinstance(times["ltc"], float):
            share = CHAIN_BYTES / (times["ltc"] / 1e3) / rate
            print(f"\nchain4m runs at {share:.0%} of the copy's rate\n", flush=True)


if __name__ == "__main__":
    main()
