#!/usr/bin/env python3
"""Names the digits of test images with the network of an archive, without PyTorch.

    python samples/digits_archive/predict.py ARCHIVE [STATE]

STATE is a file that train.c has written; without it, the network is as the archive has it. LTC_BACKEND chooses the plugin.
"""

import sys
from pathlib import Path

import ltc_runtime
import numpy as np

DATA = Path(__file__).resolve().parent.parent / "digits/data"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: predict.py ARCHIVE [STATE]")
    session = ltc_runtime.load(sys.argv[1]).session()
    if len(sys.argv) == 3:
        session.load(sys.argv[2])
    images = np.fromfile(DATA / "digits-test-images-idx3-ubyte", np.uint8, offset=16).reshape(-1, 8, 8)
    labels = np.fromfile(DATA / "digits-test-labels-idx1-ubyte", np.uint8, offset=8)
    digits = np.concatenate([session.run("predict", images[first : first + 72]) for first in range(0, len(images) - 71, 72)])
    print(f"{(digits == labels[: len(digits)]).sum()} of {len(digits)} test images are right")


if __name__ == "__main__":
    main()
