"""Trains models on the device, whose plugin LTC_BACKEND names, and on the CPU; prints both losses and what the CPU ran instead.

arguments: the models' names; none: all. The answer is a line of JSON: {name: {"losses": [ours, the CPU's], "fallbacks": {...}}}, where
a model that raised has its "error" instead. With --json FILE first, results for `ltc conformance levels` go into a file.
"""

import json
import sys

import torch

from checking import train, train_on_device
from models import ROWS


def trained(row):
    expected = train(row, "cpu").losses
    try:
        found, cost = train_on_device(row)
    except Exception as error:  # noqa: BLE001  the other models are still to come
        return {"error": f"{type(error).__name__}: {error}"}
    return {"losses": [found.losses, expected], "fallbacks": cost.fallbacks}


def main(args):
    path, names = (args[1], args[2:]) if args[:1] == ["--json"] else (None, args)
    torch.set_num_threads(1)
    found = {row.name: trained(row) for row in ROWS if not names or row.name in names}
    if path:
        from ltc_conformance.facts import facts

        with open(path, "w", encoding="utf-8") as file:
            json.dump({"suite": "ltc-models", **facts(), "list": [row.name for row in ROWS], "models": found}, file)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
