"""``ltc explain``: runs a script, and then says where its time went."""

import argparse
import json
import os
import sys

import ltc_run

from . import Report, read
from .record import Recording


def run(options: argparse.Namespace) -> int:
    """The report goes to the standard error, behind the script's own output. Returns the script's exit code."""
    try:
        others = [read(path) for path in options.beside]
        for path in (options.json, options.html):
            if path and path != "-" and not os.path.isdir(os.path.dirname(path) or "."):
                raise ValueError(f"there is no folder for {path}")
    except (OSError, ValueError) as error:
        print(f"ltc explain: {error}", file=sys.stderr)
        return 2
    code, title = 0, " ".join([options.script, *options.args])
    with Recording(title) as recording:
        try:
            ltc_run.run_script(options)
        except ltc_run.NoScript as error:
            print(f"ltc explain: {error}", file=sys.stderr)
            return 2
        except SystemExit as end:
            code = _code_of(end)
        except BaseException as error:
            code = 130 if isinstance(error, KeyboardInterrupt) else 1
            ltc_run.print_error(error)
    sys.stdout.flush()
    report = Report(recording.record)
    if options.html:
        report.save_page(options.html, others)
    if options.json == "-":
        json.dump(report.to_dict(), sys.stdout)
        return code
    print(f"\n{report}", end="", file=sys.stderr)
    if options.json:
        report.save(options.json)
    return code


def _code_of(end: SystemExit) -> int:
    if isinstance(end.code, int) or end.code is None:
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1
