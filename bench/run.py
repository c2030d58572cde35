#!/usr/bin/env python3
"""Times device ltc beside eager CPU and, if asked, beside others: all take turns, so that whatever disturbs one disturbs all."""

import argparse
import contextlib
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sides import SIDES
from workloads import ONCE, RECORDED, WORKLOADS

HERE = Path(__file__).parent
STEADY = [(row, "ms") for row in WORKLOADS] + [(row, "ns") for row in RECORDED]
ROWS = WORKLOADS + RECORDED + ONCE
QUIET_SECONDS = 0.02  # between two sides' blocks: OpenMP's threads go on spinning for some ms after their work
LARGE = [row for row in WORKLOADS if row.large]


def words(row):
    """The words that choose a row: its name and the name's first word."""
    return {row.name, row.name.split()[0]}


def chosen(parser, names):
    if not names:
        return [row for row in ROWS if row not in LARGE]
    wanted = set(names.split(","))
    rows = [row for row in ROWS if wanted & words(row)]
    if unknown := wanted.difference(*map(words, rows)):
        parser.error(f"no workload {', '.join(sorted(unknown))}; `--list` names them")
    return rows


def parse_args():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--workloads", metavar="A,B", help="only these; `--list` names them")
    parser.add_argument("--sides", metavar="A,B", default="ltc", help="which to time, or all that need no GPU; `--list` names them (default ltc)")
    parser.add_argument("--against", metavar="SIDE", default="eager", help="what they are divided by (default eager)")
    parser.add_argument("--list", action="store_true", help="name workloads and sides, and stop")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads of PyTorch's CPU kernels (default 1)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a first impression")
    parser.add_argument("--history", metavar="FILE", help="add all figures to this file, a line of JSON per run")
    args = parser.parse_args()
    if args.list:
        for title, rows in (("workloads", ROWS), ("sides", SIDES)):
            print(title, *(f"  {row.name:<18} {row.about}" for row in rows), sep="\n")
        sys.exit()
    known = {side.name: side for side in SIDES}
    names = [side.name for side in SIDES if side.device != "cuda"] if args.sides == "all" else args.sides.split(",")
    if unknown := [name for name in [args.against, *names] if name not in known]:
        parser.error(f"no side {unknown[0]}; there are {', '.join(known)}")
    args.sides = [known[args.against]] + [side for side in SIDES if side.name in names and side.name != args.against]
    args.rows = chosen(parser, args.workloads)
    return args


class Worker:
    """A side's process (worker.py)."""

    def __init__(self, side, threads, cache, **env):
        threads = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}  # read when torch is loaded
        if side.device != "ltc":  # PyTorch's autograd on CUDA fails beside another accelerator (pytorch/pytorch#161129)
            env["LTC_BACKEND"] = ""  # which keeps PyTorch from loading ltc
        self._process = subprocess.Popen(
            [sys.executable, HERE / "worker.py", side.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **threads, **side.env, **env, "LTC_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor"},
        )  # fmt: skip
        self.side = side

    def ask(self, *command):
        """The answer's value; RuntimeError where the side cannot do it."""
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"its process ended with {self._process.wait()}"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


class Result:
    """The result of one workload: seconds per step or op of each round by side, failures and disturbances."""

    def __init__(self, name, unit, against):
        self.name, self.unit, self.against = name, unit, against
        self.seconds, self.errors, self.disturbances = {}, {}, {}

    def median(self, side):
        return statistics.median(self.seconds[side])

    def ratio(self, side):
        """The median of the rounds' own ratios."""
        return statistics.median(b / a for a, b in zip(self.seconds[self.against], self.seconds[side]))

    def row(self, sides):
        scale, digits = {"ms": (1e3, 3), "ns": (1e9, 0)}[self.unit]
        text = f"{self.name:<18}"
        text += f"{self.median(self.against) * scale:>12.{digits}f} {self.unit}" if self.is_measured else f"{'fails':>15}"
        for side in sides[1:]:
            text += f"{self.ratio(side.name):>13.2f}" if self.is_measured and side.name in self.seconds else f"{'fails':>13}"
        return text

    @property
    def is_measured(self):
        return self.against in self.seconds

    def json(self):
        if not self.is_measured:
            return {"name": self.name, "errors": self.errors}
        ratios = {side: self.ratio(side) for side in self.seconds}
        return {"name": self.name, "seconds": self.median(self.against), "ratios": ratios, "errors": self.errors}


def measure(row, unit, workers, rounds):
    """A result in the steady state."""
    result, ready = Result(row.name, unit, workers[0].side.name), []
    for worker in workers:
        try:
            worker.ask("prepare", row.name)
            ready.append((worker, worker.ask("disturbances")))
        except RuntimeError as error:
            result.errors[worker.side.name] = str(error)
    for _ in range(rounds):
        for worker, _ in ready:
            time.sleep(QUIET_SECONDS)
            result.seconds.setdefault(worker.side.name, []).append(worker.ask("block"))
    for worker, before in ready:
        after = worker.ask("disturbances")
        if more := {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}:
            result.disturbances[worker.side.name] = more
    return result


def measure_once(row, args, rounds):
    """Two results of what happens in a fresh process: with no program kept on disk, and with those of the process before."""
    cold, warm = (Result(f"{row.name} {kind}", "ms", args.against) for kind in ("cold", "warm"))
    for _ in range(rounds):
        for side in args.sides:
            with tempfile.TemporaryDirectory() as cache:
                for result in (cold, warm):
                    worker = Worker(side, args.threads, cache)
                    try:
                        result.seconds.setdefault(side.name, []).append(worker.ask("once", row.name))
                    except RuntimeError as error:
                        result.errors[side.name] = str(error)
                    worker.close()
    return cold, warm


def results(args):
    """Yields a result for each chosen workload."""
    steady = [(row, unit) for row, unit in STEADY if row in args.rows]
    once = [row for row in ONCE if row in args.rows]
    with tempfile.TemporaryDirectory() as cache, contextlib.ExitStack() as stack:
        workers = []
        for side in args.sides if steady else []:
            # Programs that are compiled in the background elsewhere are ready after the warm-up.
            workers.append(Worker(side, args.threads, cache, LTC_TORCHSCRIPT_KERNELS="sync"))
            stack.callback(workers[-1].close)
        for row, unit in steady:
            yield measure(row, unit, workers, 5 if args.quick else 15)
    for row in once:
        yield from measure_once(row, args, 1 if args.quick else 3)


def plot(found, sides, width=64, least=0.05, most=20):
    """Ratios on a logarithmic scale, a line per workload; what they are divided by is at the bar, each other side a letter."""

    def column(ratio):
        share = math.log(min(max(ratio, least), most) / least) / math.log(most / least)
        return round(share * (width - 1))

    letters = dict(zip((side.name for side in sides[1:]), "ABCDEFGHI"))
    yield ", ".join(f"{letter} {name}" for name, letter in letters.items()) + f"; from {least} to {most} of {sides[0].name}'s time, | is 1"
    for result in (result for result in found if result.is_measured):
        line = [" "] * width
        line[column(1)] = "|"
        for name in result.seconds:
            if name in letters:
                line[column(result.ratio(name))] = letters[name]
        yield f"{result.name:<18}{''.join(line).rstrip()}"


def cpu_model():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown"


def processor_time():
    """Time of all processors since the start: used, and asked for by a virtual machine but given to others by its host."""
    try:
        with open("/proc/stat") as lines:
            user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, lines.readline().split()[1:9])
    except (OSError, ValueError):
        return 0, 0
    return user + nice + system + irq + softirq, stolen


def stolen_share(before):
    used, stolen = (after - earlier for after, earlier in zip(processor_time(), before))
    return stolen / max(used + stolen, 1)


def main():
    args = parse_args()
    before = processor_time()
    facts = {"date": datetime.date.today().isoformat(), "cpu": cpu_model(), "threads": args.threads, "against": args.against}
    print(f"{facts['cpu']}, {args.threads} thread(s); time of a step, and the others' as a ratio to it: below 1 is faster than {args.against}")
    print(f"{'':<18}{args.against:>15}" + "".join(f"{side.name:>13}" for side in args.sides[1:]))
    found = []
    for result in results(args):
        found.append(result)
        print(result.row(args.sides), flush=True)
    print("", *plot(found, args.sides), "", sep="\n")
    for result in found:
        for side, error in result.errors.items():
            print(f"FAILS: {result.name} on {side}: {error}")
        for side, counts in result.disturbances.items():
            print(f"NOT A STEADY STATE: {result.name} on {side}: {counts} while it was timed")
    disturbed = any(result.disturbances for result in found)
    if not disturbed:
        print("compiles and fallbacks while timed: 0")
    facts["stolen"] = stolen_share(before)
    print(f"processor time that the machine's host gave to others: {facts['stolen']:.0%} of what was asked for")
    if args.history:
        with open(args.history, "a", encoding="utf-8") as file:
            file.write(json.dumps({**facts, "results": [result.json() for result in found]}) + "\n")
    sys.exit(disturbed or any(side.startswith("ltc") for result in found for side in result.errors))


if __name__ == "__main__":
    main()
