"""Levels of a plugin. They are computed from results alone: nothing in a file says that a plugin has one."""

import math
import re
from dataclasses import dataclass, field

from .results import GOOD

BRONZE_TIERS = ("loader", "abi", "memory", "execute", "async", "errors", "threads")  # and all that no higher level names
SILVER_TIERS = ("ops", "programs")
# Optional in the ABI, required for Platinum: patterns for the checks.
FEATURES = {
    "symbolic sizes": r"\w*Symbolic\.",
    "saved executables": r"\w*Saved\.|Cache",
    "several devices": r"\w*Devices\.",
    "stress": r"Stress",
}
# The least that a sweep must have run for Gold.
MODES, DTYPES, SAMPLES = ("forward", "backward"), ("float32", "int64", "int32", "bool"), 2
NEAR = 1e-3  # losses of a model, relative to the CPU's
_SHOWN = 8  # names in a line of text


@dataclass
class Missing:
    """One reason why a plugin does not have a level."""

    what: str
    count: int = 1
    names: list = field(default_factory=list)

    def text(self):
        more = f", and {len(self.names) - _SHOWN} more" if len(self.names) > _SHOWN else ""
        return f"{self.count:6}  {self.what}{': ' if self.names else ''}{', '.join(self.names[:_SHOWN])}{more}"


def _bad(checks):
    """The checks with other outcomes than good ones, by tier and outcome."""
    groups = {}
    for check in checks:
        if check["outcome"] not in GOOD:
            groups.setdefault((check["tier"], check["outcome"]), []).append(check["name"])
    return [Missing(f"{tier}: {outcome}", len(names), names) for (tier, outcome), names in groups.items()]


def _bronze(plugin):
    """The contract, in a complete run of a suite whose sources are known."""
    other = [tier for tier in plugin.result["tiers"] if tier not in SILVER_TIERS and not re.match(FEATURES["stress"], tier, re.I)]
    return [
        *(Missing(f"{tier}: the suite has no such tier") for tier in BRONZE_TIERS if tier not in plugin.result["tiers"]),
        *([] if plugin.result["host"]["clean"] else [Missing("the suite was built from changed or unknown sources")]),
        *(Missing(f"{tier}: checks without a result", count) for tier, count in plugin.not_run().items()),
        *_bad([check for tier in other for check in plugin.checks(tier)]),
    ]


def _silver(plugin):
    """Every op of the minimal opset for every dtype of the device; the vendor's list excuses none."""
    missing = []
    for tier in SILVER_TIERS:
        checks = plugin.checks(tier)
        excused = [check["name"] for check in checks if check["outcome"] == "unsupported" and check["reason"]]
        found = _bad(checks) + ([Missing(f"{tier}: unsupported by the vendor's list", len(excused), excused)] if excused else [])
        if not found and not any(check["outcome"] == "passed" for check in checks):
            found.append(Missing(f"{tier}: no check passed"))
        missing += found
    return missing


def _sweep(sweep):
    if sweep is None:
        return [Missing("operators: no sweep was given")]
    operators, choices = sweep["operators"], sweep["choices"]
    lacking = [*(set(MODES) - set(choices["modes"])), *(set(DTYPES) - set(choices["dtypes"]))]
    failed = {name: sum(len(tally["failures"]) for tally in op["tallies"]) for name, op in operators.items()}
    failed = {name: count for name, count in failed.items() if count}
    crashed = [name for name, op in operators.items() if op["crash"]]
    groups = {
        "not run": sorted(set(sweep["database"]) - set(operators)),
        "modes and dtypes left out": sorted(lacking),
        "crashed or timed out": crashed,
        "on the CPU without a reason in the op table": sweep["unexplained"],
    }
    found = [Missing(f"operators: {what}", len(names), names) for what, names in groups.items() if names]
    if 0 < choices["samples"] < SAMPLES:
        found.append(Missing(f"operators: fewer than {SAMPLES} samples of each"))
    return found + ([Missing("operators: cases failed", sum(failed.values()), list(failed))] if failed else [])


def diverges(model):
    """Whether a model's losses are not the CPU's."""
    ours, cpu = model["losses"]
    return len(ours) != len(cpu) or not ours or not all(math.isclose(a, b, rel_tol=NEAR) for a, b in zip(ours, cpu))


def _models(models):
    if models is None:
        return [Missing("models: no results were given")]
    found = models["models"]
    groups = {
        "not run": [name for name in models["list"] if name not in found],
        "failed": [name for name, model in found.items() if model.get("error")],
        "losses are not the CPU's": [name for name, model in found.items() if not model.get("error") and diverges(model)],
        "ops on the CPU": [name for name, model in found.items() if model.get("fallbacks")],
    }
    return [Missing(f"models: {what}", len(names), names) for what, names in groups.items() if names]


def _gold(plugin):
    """PyTorch's operators and a list of models, through the plugin."""
    return _sweep(plugin.sweep) + _models(plugin.models)


def _platinum(plugin):
    """The optional abilities."""
    missing = []
    for feature, pattern in FEATURES.items():
        checks = [check for check in plugin.checks() if re.match(pattern, check["name"])]
        bad = _bad(checks)
        missing += [Missing(f"{feature}: {one.what}", one.count, one.names) for one in bad]
        if not checks:
            missing.append(Missing(f"{feature}: the suite has no check of it"))
        elif not bad and not any(check["outcome"] == "passed" for check in checks):
            missing.append(Missing(f"{feature}: no check passed"))
    return missing


LEVELS = {"Bronze": _bronze, "Silver": _silver, "Gold": _gold, "Platinum": _platinum}


def assess(plugin):
    """The plugin's level or None, the next one or None, and what is missing to that."""
    level = None
    for name, missing_for in LEVELS.items():
        if missing := missing_for(plugin):
            return level, name, missing
        level = name
    return level, None, []


def text(plugin):
    level, following, missing = assess(plugin)
    head = f"{plugin.title}: {level or 'no level'}"
    return "\n".join([head, *([f"  missing to {following}:"] if following else []), *(one.text() for one in missing)])


def facts(plugin):
    """The same as values for JSON; the names are complete."""
    level, following, missing = assess(plugin)
    return {"plugin": plugin.title, "level": level, "next": following, "missing": [vars(one) for one in missing]}
