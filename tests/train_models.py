"""Trains models on the device, whose plugin LTC_BACKEND names, and on the CPU; prints both losses and what the CPU ran instead.

arguments: the models' names; none: all. The answer is a line of JSON: {name: {"losses": [ours, the CPU's], "fallbacks": {...}}}.
"""

import json
import sys

import torch

from checking import train, train_on_device
from models import ROWS


def main():
    torch.set_num_threads(1)
    found = {}
    for row in ROWS:
        if len(sys.argv) == 1 or row.name in sys.argv[1:]:
            trained, cost = train_on_device(row)
            found[row.name] = {"losses": [trained.losses, train(row, "cpu").losses], "fallbacks": cost.fallbacks}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
