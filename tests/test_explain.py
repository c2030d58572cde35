"""`ltc explain`: causes of costs are named, with their lines."""

import inspect
import json
import os
import subprocess
import sys

import pytest
import torch
from causes import SEEDS, SETTINGS

import ltc
from ltc._explain.causes import CAUSES, table
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


def test_the_document_has_the_causes():
    with open(os.path.join(HERE, "..", "docs", "why-is-it-slow.md"), encoding="utf-8") as file:
        assert table() in file.read(), "docs/why-is-it-slow.md says how to write it"


# ---- the report


def two_steps(x):
    for _ in range(2):
        x = x * 2
        ltc.mark_step()
    return x


def test_the_result_is_kept_and_the_report_is_a_text():
    report = ltc.explain(two_steps)(torch.ones(3, device="ltc"))
    assert report.result.tolist() == [4, 4, 4]
    assert "2 steps of" in str(report) and "two_steps" in str(report)
    assert report.record.dropped == 0 and not report.record.events[0]["is_part"]


def test_parts_add_up_to_the_whole():
    report = ltc.explain(two_steps)(torch.ones(3, device="ltc"))
    assert sum(report.record.parts.values()) == pytest.approx(report.record.seconds * 1e3, rel=0.02)
    assert all(event["self_ns"] >= 0 for event in report.record.events)


def test_an_error_goes_through_and_ends_the_collection():
    def fails(x):
        (x * 2).sum().item()
        raise RuntimeError("of the function")

    with pytest.raises(RuntimeError, match="of the function"):
        ltc.explain(fails)(torch.ones(3, device="ltc"))
    assert ltc.timeline.stop() == []
    assert "two_steps" in str(ltc.explain(two_steps)(torch.ones(3, device="ltc")))


def test_a_saved_report_is_json(tmp_path):
    report = ltc.explain(two_steps)(torch.ones(3, device="ltc"))
    report.save(tmp_path / "report.json")
    saved = json.loads((tmp_path / "report.json").read_text())
    assert saved["format"] == 1 and saved["steps"] == 2
    assert {event["program"] for event in saved["events"] if event["name"] == "execute"} <= {program["id"] for program in saved["programs"]}


def explain_script(tmp_path, source, *args, options=()):
    (tmp_path / "script.py").write_text(source)
    return subprocess.run([sys.executable, "-m", "ltc", "explain", *options, "script.py", *args], cwd=tmp_path, capture_output=True, text=True, timeout=120)


SCRIPT = """import sys, torch, ltc
x = torch.ones(4, device="ltc")
for i in range(5):
    x = x + 1
    print(x.sum().item())
sys.exit(int(sys.argv[1]))
"""


def test_a_script_keeps_its_output_arguments_and_exit_code(tmp_path):
    run = explain_script(tmp_path, SCRIPT, "3")
    assert run.returncode == 3
    assert run.stdout.splitlines() == ["8.0", "12.0", "16.0", "20.0", "24.0"]
    assert "ltc explain: script.py 3 on" in run.stderr and "script.py:5  print(x.sum().item())" in run.stderr


def test_a_script_that_fails_is_explained_all_the_same(tmp_path):
    run = explain_script(tmp_path, SCRIPT)
    assert run.returncode == 1
    assert "IndexError" in run.stderr and "_explain" not in run.stderr and "ltc explain: script.py on" in run.stderr


def test_the_report_as_json(tmp_path):
    run = explain_script(tmp_path, "import ltc, torch\ntorch.ones(3, device='ltc').sum().item()\n", options=("--json", "-"))
    assert json.loads(run.stdout)["title"] == "script.py"
    assert explain_script(tmp_path, "", options=("--json", "no/such/folder/x.json")).returncode == 2


def test_a_page_beside_another_run(tmp_path):
    assert explain_script(tmp_path, SCRIPT, "0", options=("--json", "first.json")).returncode == 0
    run = explain_script(tmp_path, SCRIPT, "0", options=("--html", "page.html", "--beside", "first.json"))
    assert run.returncode == 0, run.stderr
    assert "script.py:5" in (tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "wrong.json").write_text('{"format": 7}')
    for wrong, why in (("none.json", "No such file"), ("wrong.json", "no report"), ("script.py", "no report")):
        run = explain_script(tmp_path, SCRIPT, "0", options=("--html", "x.html", "--beside", wrong))
        assert run.returncode == 2 and why in run.stderr and wrong in run.stderr


def test_a_script_on_another_plugin(tmp_path):
    run = explain_script(tmp_path, SCRIPT, "0", options=("--backend", "minimal"))
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "24.0"
