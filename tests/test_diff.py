"""`ltc diff`: differences of two graphs and of two runs, and none where there are none."""

import copy
import json
import random
import re
import subprocess
import sys

import graph_samples
import pytest
import torch

import ltc
from ltc._explain.differences import RunDifferences
from ltc_graphs import parse
from ltc_graphs.differences import MOST_LINES, WIDTH, Differences

NET = """graph(%0: f32[4,8], %1: f32[8,8], %2: f32[8], %3: i64 scalar) {
  %4: f32[4,8] = aten::mm(%0, %1)  # net.py:10
  %5: f32[4,8] = aten::add.Tensor(%4, %2) {alpha=1}  # net.py:10
  %6: f32[4,8] = aten::relu(%5)  # net.py:11
  %7: f32[4,8] = aten::mm(%6, %1)  # net.py:12
  %8: f32[4,8] = aten::mul.Tensor(%7, %3)  # net.py:13
  %9: f32[] = aten::sum(%8)  # net.py:14
  return %9, %6
}
"""


def changed(*changes, text=NET):
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


def differences(a, b):
    return Differences(parse(a), parse(b))


def ops(graph, positions):
    return [graph.nodes[i].op for i in positions]


def what(found):
    return {(found.a.nodes[change.node].op, name): values for change in found.changed for name, values in change.what.items()}


# ---- graphs that are equal


def renumbered(text):
    return re.sub(r"%(\d+)", lambda match: f"%{int(match[1]) * 3 + 7}", text)


@pytest.mark.parametrize("other", [
    NET,
    renumbered(NET),
    changed(("net.py:1", "other/net.py:2")),
    changed(("graph(%0: f32[4,8], %1: f32[8,8], %2: f32[8], ", "graph(%2: f32[8], %1: f32[8,8], %0: f32[4,8], ")),
], ids=["same", "other numbers of values", "other lines", "other order of params"])  # fmt: skip
def test_equal_graphs(other):
    found = differences(NET, other)
    assert not found and found.text()[0] == "A has 6 nodes, B 6: none differs"


def test_the_order_of_independent_nodes_makes_no_difference():
    text = """graph(%0: f32[4]) {
  %1: f32[4] = aten::sin(%0)
  %2: f32[4] = aten::cos(%0)
  %3: f32[4] = aten::neg(%2)
  %4: f32[4] = aten::add.Tensor(%1, %3)
  return %4
}
"""
    lines = text.splitlines(keepends=True)
    other = "".join([lines[0], lines[2], lines[3], lines[1], *lines[4:]])
    assert other != text and not differences(text, other)


# ---- graphs that differ


def test_a_node_is_inserted():
    found = differences(NET, changed(("  %7: f32[4,8] = aten::mm(%6, %1)", "  %10: f32[4,8] = aten::tanh(%6)  # net.py:11\n  %7: f32[4,8] = aten::mm(%10, %1)")))
    assert not found.only_a and ops(found.b, found.only_b) == ["aten::tanh"]
    assert what(found) == {("aten::mm", "input 0"): ("aten::relu at net.py:11", "aten::tanh at net.py:11")}
    assert found.text()[1:] == ["+ aten::tanh f32[4,8] at net.py:11",
                                "~ aten::mm at net.py:12: input 0 aten::relu at net.py:11 -> aten::tanh at net.py:11"]  # fmt: skip


@pytest.mark.parametrize("changes, said", [
    ([("alpha=1", "alpha=2")], {("aten::add.Tensor", "alpha"): ("1", "2")}),
    ([(" {alpha=1}", "")], {("aten::add.Tensor", "alpha"): ("1", "absent")}),
    ([("%8: f32[4,8]", "%8: f32[4,8;1,4]")], {("aten::mul.Tensor", "type"): ("f32[4,8]", "f32[4,8;1,4]")}),
    ([("aten::mm(%6, %1)", "aten::mm(%1, %6)")], {("aten::mm", "input 0"): ("aten::relu at net.py:11", "param f32[8,8]"),
                                                  ("aten::mm", "input 1"): ("param f32[8,8]", "aten::relu at net.py:11")}),
    ([("aten::mm(%6, %1)", "aten::mm(%6, none)")], {("aten::mm", "input 1"): ("param f32[8,8]", "none")}),
    ([("aten::relu(%5)", "aten::relu(%4)")], {("aten::relu", "input 0"): ("aten::add.Tensor at net.py:10", "aten::mm at net.py:10")}),
])  # fmt: skip
def test_a_node_changes(changes, said):
    found = differences(NET, changed(*changes))
    assert not found.only_a and not found.only_b and not found.params and not found.outputs
    assert what(found) == said


@pytest.mark.parametrize("changes, params, outputs", [
    ([("return %9, %6", "return %6, %9")], [], ["the outputs are in another order"]),
    ([("return %9, %6", "return %9")], [], ["only A has 1 output, first aten::relu at net.py:11"]),
    ([("return %9, %6", "return %9, %5")], [], ["only A has 1 output, first aten::relu at net.py:11", "only B has 1 output, first aten::add.Tensor at net.py:10"]),
    ([("%0: f32[4,8],", "%0: f32[4,8] -> 1,")], ["1 param that may become an output in one of the two only"], []),
    ([("%0: f32[4,8],", "%0: f32[4,8;1,4],")], ["1 param of another type, first f32[4,8] -> f32[4,8;1,4]"], []),
    ([("%3: i64 scalar", "%3: i64 scalar, %20: f32[2]")], ["only B has 1 param: f32[2]"], []),
])  # fmt: skip
def test_params_and_outputs_differ(changes, params, outputs):
    found = differences(NET, changed(*changes))
    assert found and found.params == params and found.outputs == outputs
    assert not found.only_a and not found.only_b and not found.changed


def test_lines_tell_equal_nodes_apart():
    """If two nodes in a row are equal, the one with a new line is new."""
    steps = "".join(f"  %{i}: f32[4] = aten::add.Tensor(%{i - 1}, %{i - 1})  # net.py:{10 + i}\n" for i in range(1, 6))
    text = f"graph(%0: f32[4]) {{\n{steps}  return %5\n}}\n"
    other = changed(("  %3: f32[4]", "  %30: f32[4] = aten::neg(%2)  # net.py:12\n  %3: f32[4]"), ("Tensor(%2, %2)", "Tensor(%30, %30)"), text=text)
    other = other.replace("  %2: f32[4] = aten::add.Tensor(%1, %1)  # net.py:12\n", "").replace("neg(%2)", "neg(%1)")
    found = differences(text, other)
    assert [found.a.nodes[i].line for i in found.only_a] == ["net.py:12"] and ops(found.b, found.only_b) == ["aten::neg"]


def test_a_layer_less():
    found = differences(graph_samples.gpt2_step(), graph_samples.gpt2_step(layers=11))
    assert len(found.only_a) == len(found.a.nodes) - len(found.b.nodes) > 200 and not found.only_b
    assert len(found.changed) < 30  # those at its ends
    assert len(found.text()) <= MOST_LINES and all(len(line) <= WIDTH for line in found.text())


def test_another_batch_changes_types_only():
    found = differences(graph_samples.gpt2_step(), graph_samples.gpt2_step(batch=4))
    assert found and not found.only_a and not found.only_b
    assert not any(name.startswith("input") for change in found.changed for name in change.what)
    assert any(line.startswith("~ 98x first ltc::philox") and "[2,16,32] -> [4,16,32]" in line for line in found.text())
    assert found.text()[-1].endswith("more: --json has all")


def test_a_changed_op_is_found_wherever_it_is():
    text = graph_samples.gpt2_step()
    lines = text.splitlines(keepends=True)
    graph = parse(text)
    for i in random.Random(0).sample(range(len(graph.nodes)), 12):
        line = re.sub(r"= \S+\(", "= other::op(", lines[i + 1], count=1)
        found = Differences(graph, parse("".join([*lines[: i + 1], line, *lines[i + 2 :]])))
        users = [k for k, node in enumerate(graph.nodes) if set(node.inputs) & set(graph.nodes[i].outputs) - {None}]
        assert (found.only_a, found.only_b, [change.node for change in found.changed]) == ([i], [i], users)


# ---- runs


def work():
    for _ in range(6):
        x = torch.ones(20, 20).to("ltc")
        (x @ x).relu().sum().item()


@pytest.fixture(scope="module")
def reports():
    """Reports of two runs that do the same."""
    work()
    return [json.loads(json.dumps(ltc.explain(work)().to_dict())) for _ in range(2)]


def test_equal_runs_differ_in_times_only(reports):
    found = RunDifferences(*reports)
    assert reports[0]["seconds"] != reports[1]["seconds"]
    assert not found and not found.facts and not found.counters
    assert found.times_ms["in all"] == [report["seconds"] * 1e3 for report in reports]
    assert [program["runs"] for program in found.programs] == [[6, 6]]
    assert re.search(r"program \d+ of A and \d+ of B: 6x .* -> 6x .*, the same graph", "\n".join(found.text()))


def test_the_report_names_versions(reports):
    assert reports[0]["versions"]["torch"] == torch.__version__ and reports[0]["versions"]["ltc"] == ltc.__version__


def mutated(report, change):
    other = copy.deepcopy(report)
    change(other)
    return other


def item(report):
    return next(finding for finding in report["findings"] if finding["kind"] == "read")


def kernel(*names):
    return lambda report: report["programs"][0].update(kernels=[{"name": name, "nodes": [0], "ns": 2_000_000, "runs": 2} for name in names])


@pytest.mark.parametrize("change, said", [
    (lambda report: report["settings"].update(LTC_EFFORT="3"), "LTC_EFFORT: unset -> 3"),
    (lambda report: report["versions"].update(torch="2.99"), f"version of torch: {torch.__version__} -> 2.99"),
    (lambda report: report.update(device="another"), "device: libtorch CPU -> another"),
    (lambda report: report.update(steps=7), "steps: 6 -> 7"),
    (lambda report: report["counters"].update(UncachedCompile=3), " 0           3          UncachedCompile"),
    (lambda report: report["counters"].update(WrongResults=1), " 0           1          WrongResults"),
    (lambda report: item(report).update(count=3, bytes=12), "6x -> 3x, 24 bytes -> 12 bytes"),
    (lambda report: report["findings"].remove(item(report)), "only in A: "),
    (lambda report: report["programs"][0].update(graph=report["programs"][0]["graph"].replace("aten::relu", "aten::tanh")), "  + aten::tanh f32[20,20]"),
    (lambda report: report["programs"].clear(), ", only in A: "),
])  # fmt: skip
def test_runs_differ(reports, change, said):
    found = RunDifferences(reports[0], mutated(reports[0], change))
    assert found and any(said in line for line in found.text()), found.text()


def test_kernels_are_compared(reports):
    found = RunDifferences(*(mutated(reports[0], kernel(*names)) for names in (["mm", "relu+sum"], ["mm", "relu", "sum"])))
    lines = [line.split(None, 4)[-1] for line in found.text() if "only in" in line]
    assert found and any("only in A: relu+sum" in line for line in found.text()) and len(lines) == 3
    assert not RunDifferences(*(mutated(reports[0], kernel(*names)) for names in (["mm"], ["mm"])))
    assert not RunDifferences(mutated(reports[0], kernel("mm")), mutated(reports[0], kernel()))  # nobody has looked into the other's runs


def test_programs_are_matched_by_what_they_compute(reports):
    program = reports[0]["programs"][0]
    sizes = [{**program, "id": id_, "graph": program["graph"].replace("20,20", f"{id_},{id_}")} for id_ in (10, 11, 12)]
    some = mutated(reports[0], lambda report: report.update(programs=sizes))
    others = mutated(some, lambda report: report.update(programs=[{**one, "id": 50 - one["id"]} for one in reversed(sizes)]))
    assert sorted(program["ids"] for program in RunDifferences(some, others).programs) == [[10, 40], [11, 39], [12, 38]]
    others["programs"][0]["graph"] = others["programs"][0]["graph"].replace("relu", "tanh")
    found = RunDifferences(some, others)
    assert sorted((program["ids"], bool(program["graph"])) for program in found.programs) == [([10, 40], False), ([11, 39], False), ([12, 38], True)]


def test_a_line_that_has_moved_is_the_same(reports):
    found = RunDifferences(reports[0], mutated(reports[0], lambda report: item(report).update(where="elsewhere.py:1")))
    assert not found and all(None not in row for row in found.lines)


# ---- the command


def command(*words):
    return subprocess.run([sys.executable, "-m", "ltc_cli", "diff", *map(str, words)], capture_output=True, text=True, timeout=60)


@pytest.fixture
def files(tmp_path, reports):
    for name, text in {"net.txt": NET, "other.txt": changed(("relu", "tanh")), "same.txt": renumbered(NET), "empty.txt": "",
                       "run.json": json.dumps(reports[0]), "same.json": json.dumps(reports[1]),
                       "other.json": json.dumps({**reports[1], "steps": 7})}.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("a, b, code", [("net.txt", "same.txt", 0), ("net.txt", "other.txt", 1), ("run.json", "same.json", 0), ("run.json", "other.json", 1)])
def test_the_exit_code_says_whether_they_differ(files, a, b, code):
    said = command(files / a, files / b)
    assert said.returncode == code and said.stdout.startswith(f"A: {files / a}\nB: {files / b}\n") and not said.stderr
    as_json = command(files / a, files / b, "--json")
    facts = json.loads(as_json.stdout)
    assert as_json.returncode == code and facts["equal"] == (not code) and facts["a"] == str(files / a)


def test_programs_of_reports_are_graphs(files, reports):
    program = reports[0]["programs"][0]["id"], reports[1]["programs"][0]["id"]
    assert command(f"{files}/run.json:{program[0]}", f"{files}/same.json:{program[1]}").returncode == 0
    assert command(f"{files}/run.json:{program[0]}", files / "net.txt").returncode == 1


@pytest.mark.parametrize("a, b, said", [
    ("net.txt", "nothing.txt", "nothing.txt"),
    ("net.txt", "empty.txt", "empty.txt has no graph as ltc.graph() writes it, and is no report of ltc explain"),
    ("net.txt", "run.json", "run.json is a report, and the other file is a graph"),
    ("net.txt:2", "net.txt", "net.txt has 1 graphs, and none with the number 2"),
    ("run.json:99", "net.txt", "run.json has no graph of a program 99"),
])  # fmt: skip
def test_wrong_files_are_named(files, a, b, said):
    refused = command(files / a, files / b)
    assert refused.returncode == 2 and said in refused.stderr and "Traceback" not in refused.stderr and not refused.stdout
