#!/usr/bin/env python3
"""Convolutions of the digits sample and of ResNet-18 on images of 32x32, forward and backward, beside eager CPU, turn by turn.

LTC_BACKEND names the plugin. A call of ours records, looks the program up, runs it and waits. The fastest of the rounds counts.
"""

import argparse
import time

import torch
import torch.nn.functional as F

import ltc

# batch, channels, pixels of a side, channels of the result, side of the window, stride, padding
SHAPES = {
    "digits 1": (64, 1, 28, 32, 3, 1, 0),
    "digits 2": (64, 32, 26, 64, 3, 1, 0),
    "resnet first": (32, 3, 32, 64, 3, 1, 1),
    "resnet 64": (32, 64, 32, 64, 3, 1, 1),
    "resnet 64-128": (32, 64, 32, 128, 3, 2, 1),
    "resnet 128": (32, 128, 16, 128, 3, 1, 1),
    "resnet 1x1": (32, 64, 32, 128, 1, 2, 0),
    "resnet 256": (32, 256, 8, 256, 3, 1, 1),
    "resnet 512": (32, 512, 4, 512, 3, 1, 1),
}


def milliseconds(call):
    begin = time.perf_counter()
    call()
    ltc.wait_device_ops()
    return (time.perf_counter() - begin) * 1e3


def calls(x, w, stride, padding, wait):
    """Forward, and forward with both gradients."""
    xg, wg = x.detach().requires_grad_(), w.detach().requires_grad_()

    def forward():
        with torch.no_grad():
            result = F.conv2d(x, w, stride=stride, padding=padding)
        wait()
        return result

    def both():
        gradients = torch.autograd.grad(F.conv2d(xg, wg, stride=stride, padding=padding).sum(), (xg, wg))
        wait()
        return gradients

    return forward, both


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="", help="shapes whose name holds this")
    args = parser.parse_args()
    print("| convolution | forward, ms | eager, ms | ratio | with gradients, ms | eager, ms | ratio |\n|" + "---|" * 7)
    for name, (n, c, side, out, window, stride, padding) in SHAPES.items():
        if args.only not in name:
            continue
        x, w = torch.randn(n, c, side, side), torch.randn(out, c, window, window)
        theirs = calls(x, w, stride, padding, lambda: None)
        ours = calls(x.to("ltc"), w.to("ltc"), stride, padding, ltc.mark_step)
        cells = []
        for mine, eager in zip(ours, theirs):
            got, wanted = mine(), eager()
            for a, b in zip(got if isinstance(got, tuple) else [got], wanted if isinstance(wanted, tuple) else [wanted]):
                torch.testing.assert_close(a.cpu(), b, rtol=1e-3, atol=1e-3 * float(b.abs().max()))
            times = [(milliseconds(mine), milliseconds(eager)) for _ in range(args.rounds)]
            best, other = (min(column) for column in zip(*times))
            cells.append(f"{best:.2f} | {other:.2f} | {best / other:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
