"""`ltc explain`: causes of costs are named, with their lines."""

import inspect
import json
import os
import subprocess
import sys

import pytest
from causes import SEEDS, SETTINGS

import ltc
from ltc._explain.causes import CAUSES
from ltc._explain.text import MOST_LINES

CASES = [(cause, function) for cause, functions in SEEDS.items() for function in functions]
HERE = os.path.dirname(__file__)


def marked_line(function):
    """"causes.py:31" of the line with the mark; None where there is none."""
    lines, first = inspect.getsourcelines(function)
    return next((f"causes.py:{first + i}" for i, line in enumerate(lines) if "# <-" in line), None)


def explained_elsewhere(function, folder):
    """The findings in a process of its own, with the function's settings and a cache in `folder`."""
    code = f"import ltc, json, causes; print(json.dumps(ltc.explain(causes.{function.__name__})().to_dict()['findings']))"
    environment = {**os.environ, "LTC_VERIFY": "0", "LTC_CACHE_DIR": str(folder), **SETTINGS[function]}
    run = subprocess.run([sys.executable, "-c", code], cwd=HERE, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def explained(cause, function, folder):
    if cause == "loaded from the disk":
        explained_elsewhere(function, folder)
    if function in SETTINGS:
        return explained_elsewhere(function, folder)
    report = ltc.explain(function)()
    assert len(str(report).splitlines()) <= MOST_LINES
    return report.to_dict()["findings"]


@pytest.mark.parametrize("cause, function", CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_cause_is_named(cause, function, tmp_path):
    findings = explained(cause, function, tmp_path)
    line = marked_line(function)
    named = [f for f in findings if f["cause"] == cause and (line is None or f["where"].endswith(line))]
    listed = [f"{f['cause']} | {f['kind']} {f['reason']} {f['where']} {f['count']}x {f['ms']:.2f} ms {f['detail']}" for f in findings]
    assert named, "\n".join(listed)
    assert all(f["what"] for f in named)


def test_causes_have_seeds():
    names = [cause.name for cause in CAUSES]
    assert len(names) == len(set(names))
    assert set(SEEDS) <= set(names)
    assert len(SEEDS) >= 40
