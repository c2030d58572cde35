"""Everything that failed for a plugin, each with its message and the command that repeats it."""

import re
import shlex
from dataclasses import dataclass

from .levels import diverges
from .results import GOOD

MOST_MESSAGE = 1500  # characters of a message; a report of many failures stays readable
MOST_CASES = 3  # of an operator's cases for one mode and dtype


@dataclass
class Failure:
    name: str
    kind: str  # the outcome, or the part of the results
    message: str
    command: str


def _command(*words, **environment):
    return " ".join([*(f"{key}={shlex.quote(value)}" for key, value in environment.items()), *map(shlex.quote, words)])


def _shortened(message):
    return message if len(message) <= MOST_MESSAGE else message[:MOST_MESSAGE] + " ..."


def _of_checks(plugin):
    path = plugin.result["plugin"]["path"]
    for check in plugin.checks():
        if check["outcome"] in (*GOOD, "not run"):  # the check that hung before it is the failure
            continue
        message = "\n".join(filter(None, (check["reason"], check["message"])))
        command = _command("ltc", "conformance", "--backend", path, "--filter", check["name"], "--verbose")
        yield Failure(check["name"], check["outcome"], _shortened(message), command)


def _of_operators(plugin):
    path = plugin.result["plugin"]["path"]
    for name, op in (plugin.sweep or {"operators": {}})["operators"].items():
        only = f"^{re.escape(name)}$"
        if op["crash"]:
            yield Failure(name, "operator", op["crash"], _command("./dev", "sweep", "--ops", only, LTC_BACKEND=path))
        for tally in op["tallies"]:
            cases = [f"[{case['sample']}] {case['message']}" for case in tally["failures"]]
            if not cases:
                continue
            more = [f"and {len(cases) - MOST_CASES} more cases"] if len(cases) > MOST_CASES else []
            command = _command("./dev", "sweep", "--ops", only, "--modes", tally["mode"], "--dtypes", tally["dtype"], LTC_BACKEND=path)
            yield Failure(f"{name} {tally['mode']} {tally['dtype']}", "operator",
                          _shortened("\n".join(cases[:MOST_CASES] + more)), command)


def _of_models(plugin):
    path = plugin.result["plugin"]["path"]
    for name, model in (plugin.models or {"models": {}})["models"].items():
        reasons = [model["error"]] if model.get("error") else []
        if not reasons and diverges(model):
            reasons.append("losses {}; the CPU's {}".format(*model["losses"]))
        if model.get("fallbacks"):
            reasons.append("ops on the CPU: " + ", ".join(f"{op} ({count})" for op, count in sorted(model["fallbacks"].items())))
        if reasons:
            command = _command("./dev", "python", "tests/train_models.py", name, LTC_BACKEND=path)
            yield Failure(name, "model", _shortened("\n".join(reasons)), command)


def failures(plugin):
    return [*_of_checks(plugin), *_of_operators(plugin), *_of_models(plugin)]
