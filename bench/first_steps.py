"""The first training step of a fresh process, for the table of models: eager, ltc cold and warm, torch.compile warm.

    python bench/first_steps.py [--rounds N] [MODEL ...]

Each figure is the time in ms from the call of the step to its loss, in a process of its own that has imported everything and holds model
and batch on the device. `warm` processes find what one process before them has left on disk; `cold` ones find nothing. The last column is
`ltc warm` as a ratio to eager. The table's figures are medians over the rounds, in which the sides take turns. One thread.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIDES = {"eager": "eager", "ltc cold": "ltc", "ltc warm": "ltc", "torch.compile warm": "compile"}


def measure(side, name):
    """Runs in the process of one figure."""
    import time

    import torch

    sys.path.insert(0, str(ROOT / "tests"))
    import ltc  # noqa: F401  the table needs it
    from checking import Trainer
    from comparing import to_device
    from models import ROWS

    torch.set_num_threads(1)
    device = "ltc" if side == "ltc" else "cpu"
    row = next(row for row in ROWS if row.name == name)
    trainer = Trainer(row, device)
    if side == "compile":
        trainer.module = torch.compile(trainer.module, backend="inductor")
    batch = to_device(row.batch(), device)
    if device == "ltc":
        ltc.sync()
    begin = time.perf_counter()
    trainer.step(batch)[1].item()
    if device == "ltc":
        ltc.sync()
    print(1e3 * (time.perf_counter() - begin))


def run(side, name, folder):
    environment = {**os.environ, "LTC_CACHE_DIR": f"{folder}/ltc", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
    command = [sys.executable, __file__, "--one", side, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def rows_of(name, rounds, sides):
    figures = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as kept:
        for side in sides:
            if side.endswith("warm"):
                run(SIDES[side], name, kept)
        for _ in range(rounds):
            for side in sides:
                with tempfile.TemporaryDirectory() as empty:
                    figures[side].append(run(SIDES[side], name, kept if side.endswith("warm") else empty))
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", action="append", default=[], help="a side that is not measured", choices=SIDES)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    if arguments.one:
        return measure(*arguments.one)
    sys.path.insert(0, str(ROOT / "tests"))
    from models import ROWS

    sides = [side for side in SIDES if side not in arguments.without]
    print("| model |", " | ".join(sides), "| ltc warm / eager |\n|---|" + "---|" * (len(sides) + 1))
    for row in ROWS:
        if arguments.models and row.name not in arguments.models:
            continue
        figures = rows_of(row.name, arguments.rounds, sides)
        cells = {side: statistics.median(times) if None not in times else None for side, times in figures.items()}
        ratios = [warm / eager for warm, eager in zip(figures["ltc warm"], figures["eager"]) if warm and eager]
        shown = " | ".join("failed" if cells[side] is None else f"{cells[side]:.1f}" for side in sides)
        print(f"| {row.name} | {shown} | {statistics.median(ratios) if ratios else float('nan'):.2f} |", flush=True)
    return None


if __name__ == "__main__":
    main()
