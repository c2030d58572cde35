"""Levels and pages made of results that this file makes up, and of real ones of small plugins."""

import copy
import json
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import ltc
from ltc_conformance import levels, results
from ltc_conformance.__main__ import main
from ltc_conformance.failures import failures

PACKAGE = Path(ltc.__file__).parent
CHECKS = ["Loader.loads", "Abi.keeps", "Memory.copies", "Execute.runs", "Async.waits", "Errors.refuses", "Threads.many", "Cache.keeps",
          "Stress.many_runs", "Ops.exp_f32", "Ops.exp_f64", "OpsDerived.mean", "Programs.step", "ExecuteSymbolic.sizes/linear",
          "ExecuteSaved.loads", "ExecuteDevices.two"]
TIERS = ["loader", "abi", "memory", "execute", "async", "errors", "threads", "cache", "stress", "ops", "programs"]
DTYPES, MODES = list(levels.DTYPES), list(levels.MODES)


def tier_of(name):
    return next(tier for tier in TIERS if name.lower().startswith(tier))


def common(name="mine"):
    return {"abi": "1.0", "host": {"version": "0.1.0", "commit": "c0ffee", "clean": True},
            "plugin": {"path": f"/lib/libltc_{name}.so", "name": name, "version": "1.2", "build_id": "b7", "device": "a chip"},
            "machine": {"processor": "a processor", "processors": 2, "architecture": "x86_64", "os": "an OS", "kernel": "a kernel"}}


def conformance(name="mine", without=(), **outcomes):
    """A run in which the checks named in `outcomes` end otherwise; '__' stands for '.' in names."""
    checks = [{"name": check, "tier": tier_of(check), "outcome": "passed", "elapsed_ms": 1, "message": "", "reason": ""}
              for check in CHECKS if check not in without]
    for check in checks:
        change = outcomes.get(check["name"].replace(".", "__").split("/")[0])
        check.update({"outcome": change} if isinstance(change, str) else change or {})
    tiers = {tier: {"checks": sum(tier_of(check) == tier for check in CHECKS)} for tier in TIERS}
    return {"suite": "ltc-conformance", **common(name), "conformance_version": "1.0", "complete": True, "tiers": tiers, "checks": checks}


def tally(mode, dtype, failed=(), fell_back=0):
    return {"mode": mode, "dtype": dtype, "counted": 2, "passed": 2 - len(failed), "uncounted": 0, "fell_back": fell_back,
            "failures": [{"sample": "[2, 3]", "message": message} for message in failed]}


def sweep(name="mine"):
    operators = {op: {"tallies": [tally(mode, dtype) for mode in MODES for dtype in DTYPES], "crash": None} for op in ("add", "nn.relu")}
    return {"suite": "ltc-sweep", **common(name), "choices": {"modes": MODES, "dtypes": DTYPES, "samples": 2},
            "database": ["add", "nn.relu"], "unexplained": [], "operators": operators}


def models(name="mine"):
    return {"suite": "ltc-models", **common(name), "list": ["LSTM", "BERT"],
            "models": {model: {"losses": [[1.0, 0.5], [1.0, 0.5]], "fallbacks": {}} for model in ("LSTM", "BERT")}}


def read(tmp_path, *files):
    paths = []
    for number, data in enumerate(files):
        paths.append(str(tmp_path / f"{number}.json"))
        Path(paths[-1]).write_text(json.dumps(data))
    return results.read(paths)


def assess(tmp_path, *files):
    level, following, missing = levels.assess(read(tmp_path, *files)[0])
    return level, following, {one.what: one.count for one in missing}


# ---- levels


def test_each_level(tmp_path):
    run = conformance()
    assert assess(tmp_path, run, sweep(), models()) == ("Platinum", None, {})
    assert assess(tmp_path, conformance(Stress__many_runs="failed"), sweep(), models()) == ("Gold", "Platinum", {"stress: stress: failed": 1})
    given = {"operators: no sweep was given": 1, "models: no results were given": 1}
    assert assess(tmp_path, run) == ("Silver", "Gold", given)
    assert assess(tmp_path, conformance(Ops__exp_f32="failed"), sweep(), models()) == ("Bronze", "Silver", {"ops: failed": 1})
    assert assess(tmp_path, conformance(Abi__keeps="failed"), sweep(), models()) == (None, "Bronze", {"abi: failed": 1})


@pytest.mark.parametrize("outcome", ["failed", "not run", "expected failure", "waived", "some outcome of a later suite"])
@pytest.mark.parametrize("check", [check for check in CHECKS if "Stress" not in check])
def test_no_outcome_excuses(tmp_path, check, outcome):
    level, _, missing = assess(tmp_path, conformance(**{check.replace(".", "__").split("/")[0]: outcome}))
    assert level == ("Bronze" if tier_of(check) in ("ops", "programs") else None)
    assert missing == {f"{tier_of(check)}: {outcome}": 1}


@pytest.mark.parametrize("check", CHECKS)
def test_a_filtered_run_has_no_level(tmp_path, check):
    level, following, missing = assess(tmp_path, conformance(without=[check]), sweep(), models())
    assert (level, following, missing) == (None, "Bronze", {f"{tier_of(check)}: checks without a result": 1})


def test_a_check_counts_once(tmp_path):
    run = conformance(without=["Memory.copies"])
    run["checks"] += [copy.deepcopy(run["checks"][0])] * 3
    assert assess(tmp_path, run)[0] is None


def test_the_word_of_a_file_counts_for_nothing(tmp_path):
    run = {**conformance(without=["Memory.copies"]), "complete": True, "conforms": True, "level": "Gold"}
    assert assess(tmp_path, run)[0] is None
    assert set(assess(tmp_path, {**conformance(), "tiers": {}})[2]) == {f"{tier}: the suite has no such tier" for tier in levels.BRONZE_TIERS}


def test_a_suite_of_changed_sources_gives_no_level(tmp_path):
    run = conformance()
    run["host"]["clean"] = False
    assert assess(tmp_path, run) == (None, "Bronze", {"the suite was built from changed or unknown sources": 1})


def test_a_plugin_that_holds_memory_is_bronze(tmp_path):
    computing = {check.replace(".", "__").split("/")[0]: "not applicable" for check in CHECKS
                 if tier_of(check) in ("execute", "async", "ops", "programs")}
    assert assess(tmp_path, conformance(**computing)) == ("Bronze", "Silver", {"ops: no check passed": 1, "programs: no check passed": 1})


def test_the_vendors_list_excuses_no_op(tmp_path):
    excused = {"outcome": "unsupported", "reason": "not in hardware"}
    assert assess(tmp_path, conformance(Ops__exp_f64=excused)) == ("Bronze", "Silver", {"ops: unsupported by the vendor's list": 1})
    assert assess(tmp_path, conformance(Ops__exp_f64="unsupported"))[0] == "Silver"


def changed(data, path, value):
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


@pytest.mark.parametrize("path, value, what, count", [
    (["operators", "add", "crash"], "crashed with signal 11", "crashed or timed out", 1),
    (["operators", "add", "tallies"], [tally("forward", "float32", ["values", "shape"])], "cases failed", 2),
    (["operators"], {"add": {"tallies": [], "crash": None}}, "not run", 1),
    (["choices", "modes"], ["forward"], "modes and dtypes left out", 1),
    (["choices", "dtypes"], ["float32"], "modes and dtypes left out", 3),
    (["choices", "samples"], 1, "fewer than 2 samples of each", 1),
    (["unexplained"], ["aten::frobnicate"], "on the CPU without a reason in the op table", 1),
])
def test_the_sweep_for_gold(tmp_path, path, value, what, count):
    assert assess(tmp_path, conformance(), changed(sweep(), path, value), models()) == ("Silver", "Gold", {f"operators: {what}": count})


@pytest.mark.parametrize("path, value, what", [
    (["models"], {"LSTM": models()["models"]["LSTM"]}, "not run"),
    (["models", "LSTM", "losses"], [[1.0, 0.5], [1.0, 0.6]], "losses are not the CPU's"),
    (["models", "LSTM", "losses"], [[1.0, float("nan")], [1.0, 0.6]], "losses are not the CPU's"),
    (["models", "LSTM", "losses"], [[], []], "losses are not the CPU's"),
    (["models", "LSTM", "fallbacks"], {"aten::sort": 3}, "ops on the CPU"),
    (["models", "LSTM"], {"error": "RuntimeError: no"}, "failed"),
])
def test_the_models_for_gold(tmp_path, path, value, what):
    assert assess(tmp_path, conformance(), sweep(), changed(models(), path, value)) == ("Silver", "Gold", {f"models: {what}": 1})


@pytest.mark.parametrize("check, feature", [("ExecuteSymbolic.sizes/linear", "symbolic sizes"), ("ExecuteDevices.two", "several devices"),
                                            ("Stress.many_runs", "stress")])
def test_the_abilities_for_platinum(tmp_path, check, feature):
    run = conformance(**{check.replace(".", "__").split("/")[0]: "not applicable"})
    assert assess(tmp_path, run, sweep(), models()) == ("Gold", "Platinum", {f"{feature}: no check passed": 1})
    run = conformance(without=[check])
    run["tiers"][tier_of(check)]["checks"] -= 1
    assert assess(tmp_path, run, sweep(), models()) == ("Gold", "Platinum", {f"{feature}: the suite has no check of it": 1})


@pytest.mark.parametrize("path, value", [(["plugin", "build_id"], "b8"), (["plugin", "name"], "other"), (["host", "commit"], "0ther"),
                                         (["abi"], "1.1")])
def test_results_of_another_build_are_refused(tmp_path, path, value):
    with pytest.raises(results.Unusable, match="no result of ltc-conformance for the same builds"):
        read(tmp_path, conformance(), changed(sweep(), path, value))


@pytest.mark.parametrize("text, message", [("", "no JSON"), ("[]", "no results of"), ('{"suite": "ltc-conformance"}', "no results of")])
def test_a_file_without_results_is_named(tmp_path, text, message):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(results.Unusable, match=f"bad.json: {message}"):
        results.read([str(tmp_path / "bad.json")])
    with pytest.raises(results.Unusable, match="nowhere.json: No such file"):
        results.read(["nowhere.json"])


# ---- the page

HOSTILE = "expected </script><script>alert(1)</script> & \"quotes\" 'x' <!--"


class Reader(HTMLParser):
    """Checks that elements are closed in order; keeps texts by element, and what would be loaded."""

    VOID = {"meta", "input", "br", "link", "img"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.texts, self.loaded = [], {}, []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.loaded += [(tag, key, value) for key, value in attributes if key in ("src", "href", "action") and not value.startswith("#")]
        if tag not in self.VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data


def page_of(tmp_path, *files):
    read(tmp_path, *files)
    out = tmp_path / "page.html"
    main(["report", "--html", str(out), *(str(tmp_path / f"{number}.json") for number in range(len(files)))])
    text = out.read_text(encoding="utf-8")
    return text, Reader(text)


def failing():
    operators = changed(sweep(), ["operators", "nn.relu", "tallies"], [tally("forward", "bool", [HOSTILE])])
    return (conformance(Ops__exp_f32={"outcome": "failed", "message": HOSTILE}, Memory__copies="expected failure"),
            changed(operators, ["operators", "add", "crash"], "timed out in forward float32"),
            changed(models(), ["models", "LSTM"], {"error": HOSTILE}), conformance("other"))


def test_the_page_has_each_failure_with_its_message_and_command(tmp_path):
    _, page = page_of(tmp_path, *failing())
    found = [failure for plugin in read(tmp_path, *failing()) for failure in failures(plugin)]
    assert [failure.name for failure in found] == ["Memory.copies", "Ops.exp_f32", "add", "nn.relu forward bool", "LSTM"]
    assert [failure.command for failure in found] == page.texts["code"]
    assert [failure.message for failure in found] == page.texts["pre"]
    assert sum(HOSTILE in message for message in page.texts["pre"]) == 3
    assert "Failures: 5" in page.texts["h2"]
    assert shlex.split(found[1].command) == ["ltc", "conformance", "--backend", "/lib/libltc_mine.so", "--filter", "Ops.exp_f32", "--verbose"]
    assert "--ops '^nn\\.relu$' --modes forward --dtypes bool" in found[3].command


def test_the_page_needs_nothing_else_and_escapes(tmp_path):
    text, page = page_of(tmp_path, *failing())
    assert page.loaded == []
    assert not re.search(r"https?:|@import|url\(", text)
    assert text.count("<script") == text.count("</script>") == 2
    assert "alert(1)</script>" not in text
    assert "{{" not in re.sub(r"<script>.*", "", text, flags=re.S)


def contrast(*colours):
    """The contrast of two colours as WCAG defines it."""
    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
        parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(map(luminance, colours))
    return (light + 0.05) / (dark + 0.05)


def test_text_can_be_read_in_light_and_dark(tmp_path):
    text, _ = page_of(tmp_path, conformance())
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in re.findall(r":root \{(.*?)\}", text, re.S))
    assert light.keys() == dark.keys()
    pairs = [(text, back) for text in ("text", "soft", "link", "good", "bad", "warn") for back in ("page", "panel")]
    pairs += [(kind, f"{kind}-bg") for kind in ("good", "bad", "warn")] + [("soft", "plain-bg")]
    for colours in light, dark:
        assert {pair: contrast(*(colours[name] for name in pair)) for pair in pairs if contrast(*(colours[name] for name in pair)) < 4.5} == {}


def test_the_page_has_levels_tiers_and_matrices(tmp_path):
    _, page = page_of(tmp_path, *failing())
    data = json.loads(page.texts["script"][0])
    assert data["plugins"] == ["mine", "other"]
    assert data["ops"]["rows"] == ["exp"] and data["ops"]["columns"] == ["f32", "f64"]
    outcomes = {letter: name for letter, (name, _) in data["outcomes"].items()}
    assert [[outcomes[letter] for letter in cells[0]] for cells in data["ops"]["cells"]] == [["failed", "passed"], ["passed", "passed"]]
    assert data["sweep"]["rows"] == ["add", "nn.relu"]
    assert data["sweep"]["cells"] == [["ffff", "---f"], []]
    assert [name for name, mine, other in zip(data["checks"], *data["cells"]) if mine != other] == ["Memory.copies", "Ops.exp_f32"]
    assert [text.split()[-1] for text in page.texts["h3"][:2]] == ["level", "Silver"]
    assert [text for text in page.texts["th"]][:3] == ["Tier", "mine", "other"]
    assert any("1 expected failure" in text for text in page.texts["td"])


def test_a_filtered_run_says_so_on_the_page(tmp_path):
    text, _ = page_of(tmp_path, conformance(without=["Memory.copies"]))
    assert "filtered or stopped: no statement of conformance" in text and "No level" in text


def test_seven_plugins_fit_in_half_a_megabyte(tmp_path):
    runs = []
    for number in range(7):
        run = conformance(f"plugin_{number}")
        more = [{**run["checks"][9], "name": f"Ops.an_op_of_some_name_{op}_f{bits}"} for op in range(90) for bits in range(10)]
        run["checks"] += more
        run["tiers"]["ops"]["checks"] += len(more)
        operators = {f"an_operator_of_pytorch_{op}": {"tallies": [tally("forward", dtype) for dtype in DTYPES], "crash": None} for op in range(700)}
        runs += [run, {**sweep(f"plugin_{number}"), "operators": operators, "database": list(operators)}]
    text, _ = page_of(tmp_path, *runs)
    assert len(text.encode()) < 500_000


# ---- the commands, on real results


def test_commands_on_the_results_of_small_plugins(tmp_path):
    paths = []
    for plugin in ("null", "minimal"):
        paths.append(str(tmp_path / f"{plugin}.json"))
        subprocess.run([PACKAGE / "bin" / "ltc-conformance", "--backend", plugin, "--tier", "loader,memory", "--json", paths[-1]], check=True,
                       stdout=subprocess.DEVNULL)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", "ltc_cli", "conformance"]
    said = subprocess.run([*command, "levels", *paths], env=environment, check=True, capture_output=True, text=True).stdout
    assert said.count(": no level") == 2 and "execute: checks without a result" in said
    values = json.loads(subprocess.run([*command, "levels", "--json", *paths], env=environment, check=True, capture_output=True).stdout)
    assert [one["level"] for one in values] == [None, None] and values[0]["next"] == "Bronze"
    assert any(one["what"] == "execute: checks without a result" and one["count"] > 0 for one in values[0]["missing"])
    out = tmp_path / "page.html"
    subprocess.run([*command, "report", "--html", str(out), *paths], env=environment, check=True)
    Reader(out.read_text(encoding="utf-8"))
    refused = subprocess.run([*command, "levels", "nowhere.json"], env=environment, capture_output=True, text=True)
    assert refused.returncode == 1 and refused.stderr == "ltc conformance levels: nowhere.json: No such file or directory\n"


def test_the_document_counts_the_checks():
    root = Path(__file__).resolve().parent.parent
    names = [line.split()[0] for line in (root / "conformance/must_pass/1.0.txt").read_text().splitlines() if line and line[0] != "#"]
    counts = {tier: sum(tier_of(name) == tier for name in names) for tier in TIERS}
    below = {tier: count for tier, count in counts.items() if tier not in ("ops", "programs")}
    said = re.search(r"(\d+) checks lie below the ops: (.*?)\.", (root / "docs/conformance.md").read_text())
    assert said, "docs/conformance.md counts no checks"
    assert int(said[1]) == sum(below.values())
    assert {tier: int(count) for count, tier in (part.split() for part in said[2].split(", "))} == below
