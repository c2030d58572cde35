#!/usr/bin/env python3
"""The seven kernels of docs/opencl.md, and softmax and norms of rows with what stands around them: a plugin's generated kernels
beside torch.compile's, in one process, turn by turn.

LTC_BACKEND names the plugin. A call of ours records, looks the program up, runs it and waits; a call of torch.compile's runs it.
Queued: several calls, each a program of its own, and one wait behind them, as in a training step; divided by their number.
Run: what of a single call was the device's part, from the queue's taking it up to its being done, beside torch.compile's whole
call. For the torchscript plugin only: with others the queue sees no more than the submission.
"""

import argparse
import os
import statistics
import time

import torch
import torch.nn.functional as F

import ltc


def chain(x):
    """20 element-wise operations."""
    for i in range(5):
        x = (x * 1.01 + 0.1).abs().clamp(max=3.0)
    return x


def gelu_backward(approximate):
    return lambda grad, x: torch.ops.aten.gelu_backward(grad, x, approximate=approximate)


def normalized(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def attention_weights(scores, mask):
    return torch.softmax(scores * 0.125 + mask, -1)


def gelu_of_norm(x, residual, weight, bias):
    return F.gelu(normalized(x + residual, weight, bias))


KERNELS = {
    "chain4m": (chain, [(4 << 20,)]),
    "gelu backward, tanh [512,3072]": (gelu_backward("tanh"), [(512, 3072), (512, 3072)]),
    "gelu backward, erf [512,3072]": (gelu_backward("none"), [(512, 3072), (512, 3072)]),
    "layer norm [512,128]": (normalized, [(512, 128), (128,), (128,)]),
    "layer norm [64,4096]": (normalized, [(64, 4096), (4096,), (4096,)]),
    "sum over the last dim, 2048x2048": (lambda x: x.sum(1), [(2048, 2048)]),
    "sum over the first dim, 2048x2048": (lambda x: x.sum(0), [(2048, 2048)]),
    "softmax(x * 0.125 + mask) [4096,512]": (attention_weights, [(4096, 512), (4096, 512)]),
    "softmax(x * 0.125 + mask) [8,12,128,128]": (attention_weights, [(8, 12, 128, 128), (128, 128)]),
    "gelu(layer norm(x + r)) [4096,512]": (gelu_of_norm, [(4096, 512), (4096, 512), (512,), (512,)]),
    "gelu(layer norm(x + r)) [1024,4096]": (gelu_of_norm, [(1024, 4096), (1024, 4096), (4096,), (4096,)]),
}


IS_SYNCHRONOUS = os.environ.get("LTC_BACKEND", "torchscript") == "torchscript"


def ours(function, inputs, calls=1):
    for _ in range(calls):
        result = function(*inputs)
        ltc.mark_step()
    ltc.wait_device_ops()
    return result


def repeated(function, inputs, calls):
    for _ in range(calls):
        result = function(*inputs)
    return result


def run_milliseconds(function, inputs):
    """Time of the queue for one call, as ltc.timeline saw it."""
    ltc.timeline.start()
    ours(function, inputs)
    return sum(span["end_ns"] - span["begin_ns"] for span in ltc.timeline.stop() if span["name"] == "execute") / 1e6


def milliseconds(call):
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def warm_milliseconds(call):
    """The threads of the other side spin for a while after their work, and ours are to be awake."""
    left = 30.0
    while left > 0:
        left -= milliseconds(call)
    return milliseconds(call)


def measure(function, shapes, rounds, queued, of):
    """First calls of both; `of` the times of (ours, theirs), for single calls, queued ones and runs."""
    inputs = [torch.randn(shape) for shape in shapes]
    on_device = [x.to("ltc") for x in inputs]
    compiled = torch.compile(function)
    first = milliseconds(lambda: ours(function, on_device)), milliseconds(lambda: compiled(*inputs))
    torch.testing.assert_close(ours(function, on_device).cpu(), compiled(*inputs), rtol=1e-4, atol=1e-4)
    times, runs = {1: ([], []), queued: ([], [])}, []
    for _ in range(rounds):
        for calls, (mine, theirs) in times.items():
            mine.append(warm_milliseconds(lambda: ours(function, on_device, calls)) / calls)
            if calls == 1:
                runs.append(run_milliseconds(function, on_device))
            theirs.append(warm_milliseconds(lambda: repeated(compiled, inputs, calls)) / calls)
    pairs = [*times.values(), (runs, times[1][1])] if IS_SYNCHRONOUS else times.values()
    return first, [[of(t) for t in pair] for pair in pairs]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--queued", type=int, default=10, help="calls before a wait")
    parser.add_argument("--fastest", action="store_true", help="the fastest of the rounds, not the median: for busy machines")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    args = parser.parse_args()
    of = min if args.fastest else statistics.median
    theirs = "torch.compile, ms | ratio"
    heads = ["ms", "queued, ms", "run, ms"] if IS_SYNCHRONOUS else ["ms", "queued, ms"]
    print("| kernel | " + "".join(f"{head} | {theirs} | " for head in heads) + "first call, ms | torch.compile, ms |")
    print("|" + "---|" * (3 + 3 * len(heads)))
    with torch.no_grad():
        for name, (function, shapes) in KERNELS.items():
            if args.only not in name:
                continue
            first, pairs = measure(function, shapes, args.rounds, args.queued, of)
            cells = " | ".join(f"{mine:.3f} | {theirs:.3f} | {mine / theirs:.2f}" for mine, theirs in pairs)
            print(f"| {name} | {cells} | {first[0]:.0f} | {first[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
