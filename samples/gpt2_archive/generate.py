#!/usr/bin/env python3
"""Generates tokens with a language model of an archive, as generate.cpp does, with NumPy and without PyTorch.

    python samples/gpt2_archive/generate.py ARCHIVE COUNT TOKEN...
"""

import sys

import ltc_runtime
import numpy as np


def generate(session, size, prompt, count):
    """The `count` tokens that follow the prompt. `size`: of the prompts that the archive takes."""
    tokens = np.zeros((1, size), np.int64)
    tokens[0, : len(prompt)] = prompt
    position = np.array([len(prompt)])
    token = session.run("prefill", tokens, position)
    for _ in range(count):
        yield int(token[0])
        token = session.run("decode", token, position)
        position += 1


def main():
    if len(sys.argv) < 4:
        sys.exit("usage: generate.py ARCHIVE COUNT TOKEN...")
    path, count, *prompt = sys.argv[1], *map(int, sys.argv[2:])
    model = ltc_runtime.load(path)
    size = model.functions["prefill"][0][0][2][1]
    if len(prompt) > size:
        sys.exit(f"generate: a prompt has up to {size} tokens")
    print(*generate(model.session(), size, prompt, count))


if __name__ == "__main__":
    main()
