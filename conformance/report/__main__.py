"""The commands ``levels`` and ``report`` of ``ltc conformance``."""

import argparse
import json
import sys

from . import levels, page, results

FILES = "JSON of ltc conformance, ./dev sweep or tests/train_models.py, in any order, of one plugin or several"


def parse_args(argv):
    parser = argparse.ArgumentParser(prog="ltc conformance")
    commands = parser.add_subparsers(dest="command", required=True)
    say = commands.add_parser("levels", help="print each plugin's level, and what is missing to the next")
    say.add_argument("--json", action="store_true", help="write JSON")
    write = commands.add_parser("report", help="write one HTML page that needs no network")
    write.add_argument("--html", metavar="FILE", required=True)
    for command in (say, write):
        command.add_argument("files", metavar="FILE", nargs="+", help=FILES)
    return parser.parse_args(argv)


def run(args):
    try:
        plugins = results.read(args.files)
    except results.Unusable as error:
        sys.exit(f"ltc conformance {args.command}: {error}")
    if args.command == "levels" and args.json:
        print(json.dumps([levels.facts(plugin) for plugin in plugins], indent=2))
    elif args.command == "levels":
        print("\n".join(map(levels.text, plugins)))
    else:
        with open(args.html, "w", encoding="utf-8") as file:
            file.write(page.page(plugins))


def main(argv=None):
    run(parse_args(argv))


if __name__ == "__main__":
    main()
