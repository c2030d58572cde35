"""Data parallel training on up to 1,024 ranks, on paper: recorded steps of a few processes, replayed with the costs of links.

    python bench/scaling.py [--steps N] [--tries N] [--json FILE] [--replay FILE] [--faster-device N] [--unread] [--bucket-mb N] [CASE ...]

A case is a model and a wrapper, such as GPT-2/DDP. The program records its steps in processes of one thread each, and fits the loopback link to a sweep of
all_reduce by Gloo. It then predicts the step of 1, 2 and 4 processes beside the measured one. At last it replays the step on networks of nodes with 8
ranks, with weak scaling: each rank keeps its batch. --replay takes the records from an earlier --json instead.
"""

import argparse
import dataclasses
import json
import os
import sys

from cost_model import NETWORKS, cost, crowded, fit_link, one_link, slowdown
from distributed import MODELS
from recorded_steps import SWEEP, record_quietly
from simulated_ranks import Options, in_buckets, memory_at, simulate

CASES = [*(f"{name}/DDP" for name in MODELS), "GPT-2/FSDP2"]
RECORDED = [1, 2, 4]
RANKS = [1 << power for power in range(11)]
GOOD = 0.8  # efficiency
DEVICE_MEMORY = 80e9
LOSSES = {"communication": "exposed communication", "stragglers": "waiting for stragglers"}


def base_of(records, case):
    """The record that is replayed: of one rank where that has collectives, else of two. DDP calls all_reduce on one rank too."""
    name, wrapper = case.split("/")
    ranks = 1 if wrapper == "DDP" else 2
    return next(one for one in records if (one["model"], one["wrapper"], one["ranks"]) == (name, wrapper, ranks))


# ---- beside measured steps


def sweep_rows(samples, link, cores):
    for ranks, size, seconds in samples:
        yield ranks, size, seconds, cost("all_reduce", size, ranks, one_link("loopback", crowded(link, ranks, cores)), "ring")


def check_rows(records, cases, link, cores):
    """Measured and predicted seconds of a step. Ranks that share a core share its time."""
    for case in cases:
        base = base_of(records, case)
        for ranks in RECORDED:
            name, wrapper = case.split("/")
            measured = next(one for one in records if (one["model"], one["wrapper"], one["ranks"]) == (name, wrapper, ranks))
            options = Options(algorithm="ring", slowdown=slowdown(ranks, cores) / slowdown(base["ranks"], cores))
            outcome = simulate(base, ranks, one_link("loopback", crowded(link, ranks, cores)), options)
            yield {"case": case, "ranks": ranks, "is_base": ranks == base["ranks"], "measured_s": measured["measured_s"], "predicted_s": outcome.step_s,
                   "measured_bytes": memory_at(measured, ranks), "predicted_bytes": memory_at(base, ranks), "others": measured["others"]}  # fmt: skip


# ---- at scale


def scale_rows(base, network, arguments):
    """One row per number of ranks: the step as it is now, without jitter (`even_s`), without overlap (`serial_s`), and in smaller buckets."""
    common = {"algorithm": arguments.algorithm, "is_read": not arguments.unread, "faster_device": arguments.faster_device}
    buckets = {**base, "actions": in_buckets(base["actions"], arguments.bucket_mb * 1e6)}
    first = None
    for ranks in RANKS:
        now = simulate(base, ranks, network, Options(**common))
        even = simulate(base, ranks, network, Options(**common, has_jitter=False))
        serial = simulate(base, ranks, network, Options(**common, overlapped=False))
        smaller = simulate(buckets, ranks, network, Options(**common))
        first = first or now.step_s
        yield {"ranks": ranks, **dataclasses.asdict(now), "efficiency": first / now.step_s, "even_s": even.step_s, "even_communication": even.communication,
               "serial_s": serial.step_s, "serial_communication": serial.communication, "buckets_s": smaller.step_s,
               "buckets_communication": smaller.communication, "bytes": memory_at(base, ranks)}  # fmt: skip


def finding(case, network, rows, base):
    """One sentence from the rows of a case and a network: where efficiency falls and why, the step without jitter and overlap, and memory."""
    start, end = rows[0], rows[-1]
    low = next((row for row in rows if row["efficiency"] < GOOD), None)
    words = [f"{case} on {network.name}: the host takes {start['host']:.0%} of the step of one rank"]
    if low is None:
        words.append(f"efficiency is {end['efficiency']:.0%} at {end['ranks']} ranks")
    else:
        name = max(LOSSES, key=low.get)
        words.append(f"efficiency falls below {GOOD:.0%} at {low['ranks']} ranks, where {LOSSES[name]} takes most ({low[name]:.0%} of the step)")
    name = max(LOSSES, key=end.get)
    words.append(f"at {end['ranks']} ranks {LOSSES[name]} takes {end[name]:.0%} of the step")
    words.append(f"without jitter communication would take {end['even_communication']:.0%} there")
    words.append(f"exposed communication is {end['communication']:.0%}, without overlap {end['serial_communication']:.0%}, "
                 f"in smaller buckets {end['buckets_communication']:.0%}")  # fmt: skip
    return "; ".join([*words, memory_words(base, rows)]) + "."


def memory_words(base, rows):
    memory = base["memory"]
    state = sum(memory[part] for part in ("parameters", "gradients", "optimizer")) * (base["ranks"] if base["wrapper"] == "FSDP2" else 1)
    first, last = (megabytes(rows[i]["bytes"]) for i in (0, -1))
    if base["wrapper"] == "FSDP2":
        return f"memory goes from {first} to {last} MB per rank"
    per_number = (state + memory["other"]) / base["numbers"]
    fills = f"{DEVICE_MEMORY / per_number / 1e9:.1f} G parameters fill {DEVICE_MEMORY / 1e9:.0f} GB before activations"
    return f"{first} MB per rank at any number of ranks, {per_number:.0f} bytes of values per parameter, so {fills}"


# ---- output


def megabytes(size):
    return f"{size / 1e6:.2f}"


def print_table(columns, rows):
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)


def error(predicted, measured):
    return f"{100 * (predicted / measured - 1):+.0f} %"


def print_check(sweep, link, check, cores):
    print(f"Loopback: alpha {1e6 * link.alpha:.0f} us, beta {link.beta / 1e9:.2f} GB/s. {cores} cores.\n")
    print_table(["ranks", "bytes", "all_reduce, ms", "fitted", "error"],
                [(n, size, f"{1e3 * seconds:.3f}", f"{1e3 * fitted:.3f}", error(fitted, seconds)) for n, size, seconds, fitted in sweep])  # fmt: skip
    print_table(["case", "ranks", "measured, ms", "predicted", "error", "MB per rank", "predicted MB", "other programs"],
                [(row["case"], f"{row['ranks']}{' (replayed)' if row['is_base'] else ''}", f"{1e3 * row['measured_s']:.2f}", f"{1e3 * row['predicted_s']:.2f}",
                  error(row["predicted_s"], row["measured_s"]), megabytes(row["measured_bytes"]), megabytes(row["predicted_bytes"]), f"{row['others']:.0%}")
                 for row in check])  # fmt: skip


def print_scale(case, network, rows):
    print(f"{case}, {network.name}:\n")
    shares = ("compute", "host", "communication", "stragglers")
    columns = ["ranks", "step, ms", "efficiency", *shares, "no jitter, ms", "communication", "serial, ms", "communication", "in buckets, ms",
               "communication", "MB per rank"]  # fmt: skip
    print_table(columns, [(row["ranks"], f"{1e3 * row['step_s']:.2f}", f"{row['efficiency']:.2f}", *(f"{row[share]:.0%}" for share in shares),
                           f"{1e3 * row['even_s']:.2f}", f"{row['even_communication']:.0%}", f"{1e3 * row['serial_s']:.2f}",
                           f"{row['serial_communication']:.0%}", f"{1e3 * row['buckets_s']:.2f}", f"{row['buckets_communication']:.0%}", megabytes(row["bytes"])) for row in rows])  # fmt: skip


def recorded(arguments):
    """The records, the samples of the sweep, and the number of cores of the machine that recorded them."""
    if arguments.replay:
        with open(arguments.replay) as file:
            found = json.load(file)
        return found["records"], found["sweep"], found["cores"]
    records = [record_quietly(ranks, arguments.steps, case.split("/"), arguments.tries) for case in arguments.cases for ranks in RECORDED]
    sweeps = [record_quietly(ranks, arguments.steps, SWEEP, arguments.tries) for ranks in RECORDED if ranks > 1]
    return records, [sample for sweep in sweeps for sample in sweep["samples"]], os.cpu_count()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--tries", type=int, default=1, metavar="N", help="record up to N times where other programs use the processors, and keep the best")
    parser.add_argument("--json", metavar="FILE", help="write records, checks, tables and findings")
    parser.add_argument("--replay", metavar="FILE", help="take the records from this file")
    parser.add_argument("--algorithm", default="best", choices=["best", "ring", "tree", "halving"])
    parser.add_argument("--faster-device", type=float, default=1.0, metavar="N", help="compute takes an Nth of its recorded time")
    parser.add_argument("--unread", action="store_true", help="the script reads no loss, so that the host records up to two steps ahead")
    parser.add_argument("--bucket-mb", type=float, default=4.0, help="of all_reduce, in the columns in buckets")
    parser.add_argument("cases", nargs="*", default=CASES)
    arguments = parser.parse_args()
    records, samples, cores = recorded(arguments)
    link = fit_link(samples, cores)
    sweep, check = list(sweep_rows(samples, link, cores)), list(check_rows(records, arguments.cases, link, cores))
    print_check(sweep, link, check, cores)
    scale, findings = [], []
    for case in arguments.cases:
        base = base_of(records, case)
        for network in NETWORKS:
            rows = list(scale_rows(base, network, arguments))
            print_scale(case, network, rows)
            scale.append({"case": case, "network": network.name, "rows": rows})
            findings.append(finding(case, network, rows, base))
    print("\n".join(f"- {one}" for one in findings))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"cores": cores, "link": dataclasses.asdict(link), "sweep": samples, "records": records, "check": check, "scale": scale,
                       "findings": findings}, file)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
