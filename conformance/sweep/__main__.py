"""Runs every operator of PyTorch's operator database on device ltc and compares it with the CPU."""

import argparse
import json
import os
import re
import sys
import time

from . import pool
from .document import document, unexplained
from .report import Report


def parse_args(argv=None):
    parser = argparse.ArgumentParser(prog="./dev sweep", description=__doc__, epilog="LTC_BACKEND names the plugin, as always.")
    parser.add_argument("--ops", metavar="REGEX", default="", help="only operators whose name it matches (search, not full match)")
    parser.add_argument("--modes", metavar="A,B", help="only these of: forward, transposed, channels_last, noncontiguous, backward, out, "
                        "out_view, inplace, inplace_view, errors")
    parser.add_argument("--dtypes", metavar="A,B", help="only these; default: the eleven of the database's that matter")
    parser.add_argument("--samples", metavar="N", type=int, default=6, help="at most so many inputs per operator, mode and dtype, spread "
                        "over all that the database has (default 6; 0: all)")
    parser.add_argument("--shards", metavar="N", type=int, default=os.cpu_count(), help="worker processes (default: one per core)")
    parser.add_argument("--timeout", metavar="S", type=float, default=600, help="for one operator (default 600)")
    parser.add_argument("--show", metavar="N", type=int, default=3, help="failing cases to show per cause (default 3)")
    parser.add_argument("--document", metavar="FILE", help="write the figures and the reasons of fallbacks here")
    parser.add_argument("--json", metavar="FILE", help="write all that was found here")
    return parser.parse_args(argv)


def main():
    args = parse_args()
    from .cases import DTYPES, MODES  # torch takes seconds to load; --help does not need it

    from torch.testing._internal.common_methods_invocations import op_db

    names = [op.formatted_name for op in op_db if re.search(args.ops, op.formatted_name)]
    if not names:
        sys.exit(f"no operator matches {args.ops!r}")
    common = {"modes": _choose("mode", args.modes, MODES), "dtypes": _choose("dtype", args.dtypes, DTYPES), "samples": args.samples}
    report, start = Report(), time.monotonic()
    for request, tallies, crash in pool.run_all([{"op": name, **common} for name in names], args.shards, args.timeout):
        report.add(request["op"], tallies, crash)
        failed = sum(len(tally["failures"]) for tally in tallies)
        note = crash or (f"{failed} of {sum(tally['counted'] for tally in tallies)} failed" if failed else "")
        print(f"[{len(report.ops)}/{len(names)}, {time.monotonic() - start:.0f} s] {request['op']} {note}", file=sys.stderr, flush=True)
    if args.json:
        from ltc_conformance.facts import facts

        found = {"suite": "ltc-sweep", **facts(), "choices": {key: common[key] for key in ("modes", "dtypes", "samples")},
                 "database": [op.formatted_name for op in op_db], "unexplained": unexplained(report), "operators": report.ops}
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(found, file)
    print(report.text(args.show))
    if args.document:
        if missing := unexplained(report):
            sys.exit(f"no document: neither core/ops/op_table.inc nor conformance/sweep/tables.py has a reason for {', '.join(missing)}")
        choices = [f"--{name} {value}" for name in ("ops", "modes", "dtypes", "samples")
                   if (value := getattr(args, name)) not in (None, "")]
        with open(args.document, "w", encoding="utf-8") as file:
            file.write(document(report, os.environ.get("LTC_BACKEND", "torchscript"), " ".join(choices), args.document))
    sys.exit(report.failed())


def _choose(what, given, known):
    chosen = given.split(",") if given else list(known)
    for name in chosen:
        if name not in known:
            sys.exit(f"no such {what}: {name}; there are {', '.join(known)}")
    return chosen


if __name__ == "__main__":
    main()
