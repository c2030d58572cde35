"""The page of `ltc explain`: graphs after each pass, kernels, the memory plan, and how they are selected together."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from browser import CHROMIUM
from report_pages import opened, unpacked

import ltc
from ltc._explain import graphs, page, stages

needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
OPENCL = (Path(ltc.__file__).parent / "plugins" / "libltc_opencl.so").exists()


def work(width=8):
    weight, bias = torch.randn(width, 4, device="ltc", requires_grad=True), torch.zeros(4, device="ltc", requires_grad=True)
    for step in range(3):
        batch = torch.ones(2, width).to("ltc")
        hidden = (batch @ weight + bias).relu()
        again = (batch @ weight + bias).relu()  # computed once
        loss = torch.nn.functional.silu(hidden.t() * again.t()).softmax(-1).square().sum()
        loss.backward()
        loss.item()


SCRIPT = """
import json, sys, torch, ltc
x = torch.randn(64, 64).to("ltc")
def work():
    for _ in range(3):
        y = torch.randn(64, 64, device="ltc")
        print((x @ y).relu().softmax(-1).sum(0).exp().sum().item())
with open(sys.argv[1], "w") as file:
    json.dump(ltc.explain(work)().to_dict(), file)
"""


@pytest.fixture(scope="module")
def report():
    return ltc.explain(work)().to_dict()


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A report of a plugin that has a memory plan."""
    path = tmp_path_factory.mktemp("opencl") / "report.json"
    script = path.with_name("script.py")
    script.write_text(SCRIPT)
    environment = {**os.environ, "LTC_BACKEND": "opencl"}
    subprocess.run([sys.executable, str(script), str(path)], env=environment, check=True, timeout=120, capture_output=True)
    return json.loads(path.read_text())


def longest(report):
    return max(report["programs"], key=lambda program: program["ops"])


# ---- stages


def rebuilt(packed, final):
    """Graphs of the stages in full."""
    made, later = [], final
    for stage in reversed(packed):
        later = {"nodes": stages.in_full(stage, later["nodes"]), **{part: stage[part] or later[part] for part in ("params", "outputs")}}
        made.append(later)
    return made[::-1]


def numbered(graph):
    """The graph with values in the order in which they are made."""
    numbers = {-1: -1}
    for value, *_ in graph["params"]:
        numbers.setdefault(value, len(numbers))
    for *_, results in graph["nodes"]:
        for value in results[::2]:
            numbers.setdefault(value, len(numbers))
    nodes = [[*node[:3], [numbers[v] for v in node[3]], [numbers[v] for v in node[4][::2]], node[4][1::2]] for node in graph["nodes"]]
    return [[kind, alias] for _, kind, alias in graph["params"]], nodes, [numbers[value] for value in graph["outputs"]]


def test_stages_are_kept_as_differences(report):
    program = longest(report)
    assert [stage["name"] for stage in program["stages"]][:3] == ["recorded", "views", "cse"]
    strings = graphs.Strings()
    final = graphs.parse(program["graph"], strings)
    packed = stages.differences(program["stages"], final, strings)
    for stage, graph in zip(program["stages"], rebuilt(packed, final), strict=True):
        assert numbered(graph) == numbered(graphs.parse(stage["graph"], strings))
    kept = sum(len(item) == 2 for item in packed[-2]["nodes"])
    assert kept and len(json.dumps(packed)) < 0.5 * len(json.dumps([graphs.parse(stage["graph"], strings) for stage in program["stages"]]))


def test_a_changed_node_is_no_other_one():
    strings = graphs.Strings()
    texts = ["%1: f32[2] = a::f(%0)  # a.py:1\n  %2: f32[2] = a::f(%0)  # a.py:2\n  %3: f32[2], %4: f32[2] = a::g(%1, %2)  # a.py:3\n  return %3",
             "%1: f32[2] = a::f(%0)  # a.py:1\n  _, %3: f32[2] = a::g(%1, %1)  # a.py:3\n  return %3"]
    first, last = (f"graph(%0: f32[2]) {{\n  {text}\n}}\n" for text in texts)
    (stage,) = stages.differences([{"name": "recorded", "graph": first}], graphs.parse(last, strings), strings)
    _, removed, changed = stage["nodes"]
    assert stage["nodes"][0] == [0, 1]
    assert removed[5] == -1 and removed[4][0] > 3, "it has a number of its own"
    assert changed[3] == [1, removed[4][0]] and changed[4][2] == 3 and changed[5] == 1
    assert stage["params"] is None and stage["outputs"] == [changed[4][0]]


@needs_chromium
def test_stages_are_shown_in_place(report, tmp_path):
    with opened(page.render(report), tmp_path) as browser:
        names, counts = browser.run("""
          const [view] = page.views, names = [...view.stages.children].map((button) => button.textContent);
          const count = (kind) => (view.graph.changes || []).filter((change) => change === kind).length;
          const counts = names.slice(0, -1).map((_, i) => {
            view.stages.children[i].click();
            return [view.graph.nodes.length, count(REMOVED)];
          });
          return [names, counts];
        """)
        shift = browser.run("""
          const [view] = page.views, place = () => view.transform.apply([view.graph.nodes[view.chosen].x, view.graph.nodes[view.chosen].y]);
          page.showStage(0, view.stages.children.length - 1);
          page.pickNode(0, view.graph.nodes.length >> 1, true);
          const op = view.graph.nodes[view.chosen].op, before = place();
          for (const stage of [1, 0, 2, view.stages.children.length - 1]) {
            page.showStage(0, stage);
            if (view.chosen < 0 || view.graph.nodes[view.chosen].op !== op) return "another node";
            if (Math.hypot(place()[0] - before[0], place()[1] - before[1]) > 0.5) return `moved by ${place()} from ${before}`;
          }
          return "none";
        """)
        marks = browser.run("page.showStage(0, 2); return document.getElementById('marks').textContent + page.views[0].title.textContent")
    assert shift == "none"
    assert "removed" in marks and "after cse" in marks
    assert names[:3] == ["recorded", "views", "cse"] and names[-1] == "final"
    assert any(removed for _, removed in counts)


# ---- kernels


def test_kernels_are_in_the_page(report):
    text = page.render(report)
    (data,) = unpacked(text)
    kernels = [kernel for program in data["programs"] for kernel in program["kernels"]]
    assert len(kernels) == sum(len(program["kernels"]) for program in report["programs"]) > 0
    assert any(nodes for _, nodes, *_ in kernels)
    assert [name for name, _ in data["events"]["lanes"]][-1] == "Kernels"
    assert '<section id="lines">' in text and "test_explain_stages.py:" in text.split('<section id="lines">')[1].split("</section>")[0]


def test_kernels_take_no_time_from_their_runs(report):
    kernels = [event for event in report["events"] if event["name"] == "kernel"]
    assert kernels and all(finding["kind"] != "kernel" for finding in report["findings"])
    for event in report["events"]:
        if event["name"] == "execute" and event["program"]:
            assert event["self_ns"] > 0.5 * (event["end_ns"] - event["begin_ns"]), "there are no parts on the CPU"


def test_a_page_without_kernels_has_no_gap(report):
    old = json.loads(json.dumps(report))
    for program in old["programs"]:
        for key in ("stages", "kernels", "buffers"):
            del program[key]
    old["events"] = [event for event in old["events"] if event["name"] != "kernel"]
    del old["sources"]
    text = page.render(old)
    (data,) = unpacked(text)
    assert 'id="lines"' not in text and "Kernels" not in [name for name, _ in data["events"]["lanes"]]
    assert all(program["kernels"] == program["stages"] == [] for program in data["programs"])


SELECT = """
  const wait = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 10)));
  const text = (selector) => document.querySelector(selector).textContent, found = {};
  const line = [...document.querySelectorAll("#lines button.line")].find((button) => page.program(0).kernels.some(
    (kernel) => kernel.lines.includes(button.dataset.line)));
  line.click();
  await wait();
  found.line = line.dataset.line;
  found.ops = page.views[0].graph.nodes.filter(page.views[0].isMarked).map((node) => lineOf(node.where));
  found.rows = [...document.querySelectorAll(".pane tr.chosen button.kernel")].map((button) => button.textContent);
  found.bar = text("#selection");
  document.querySelector("#selection button.kernel").click();
  await wait();
  found.kernel = page.kernel.index;
  found.kernelBar = text("#selection");
  found.nodes = page.views[0].graph.nodes.filter(page.views[0].isMarked).map((node) => node.index);
  found.wanted = page.program(0).kernels[found.kernel].nodes;
  found.node = text("#node");
  found.events = page.timeline.marked.flat(2).map((i) => page.timeline.nameOf(i));
  document.querySelector("#selection button.line").click();
  await wait();
  found.back = page.line;
  const event = page.runs[0].events.name.findIndex((name, i) => page.timeline.isKernel(i) && page.runs[0].events.program[i] === page.program(0).id);
  page.pickEvent(event);
  found.picked = [page.timeline.nameOf(event), page.program(0).kernels[page.kernel.index].name];
  found.tableHeight = document.querySelector(".pane .list").clientHeight;
  return found;
"""


@needs_chromium
@pytest.mark.parametrize("width", [390, 1440])
def test_a_line_leads_to_its_kernel_and_back(report, tmp_path, width):
    with opened(page.render(report), tmp_path, width) as browser:
        found = browser.run(SELECT)
        is_narrow = browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert set(found["ops"]) == {found["line"]}
    assert found["rows"] and "per run" in found["bar"]
    assert "per run" in found["kernelBar"] and found["nodes"] == found["wanted"]
    assert "Kernel" in found["node"] and found["events"]
    assert found["back"]
    assert found["picked"][0] == found["picked"][1]
    assert found["tableHeight"] > 50 and is_narrow


@needs_chromium
def test_three_runs_are_selected_together(tmp_path):
    first, second, third = (ltc.explain(work)(width).to_dict() for width in (8, 8, 16))
    text = page.render(first, [second, third])
    assert all(f'<th scope="col" class="n">{name}</th>' in text.split('<section id="lines">')[1] for name in "ABC")
    with opened(text, tmp_path) as browser:
        found = browser.run("""
          const chain = page.program(0).kernels.find((kernel) => kernel.nodes.length > 1);
          page.selectKernel(0, chain.index, true);
          const marked = page.views.map((view) => view.graph.nodes.filter(view.isMarked).map((node) => node.label));
          const rows = [...document.querySelectorAll(".pane")].map((pane) => pane.querySelectorAll("tr.chosen button.kernel").length);
          page.showStage(1, 1);
          return {marked, rows, chosen: page.views.map((view) => view.graph.nodes[view.chosen].label),
                  stages: page.views.map((view) => view.graph.name)};
        """)
    assert found["marked"][0] == found["marked"][1] and len(found["marked"][0]) > 1 and found["marked"][2]
    assert all(found["rows"]) and len(found["rows"]) == 3
    assert len(set(found["chosen"])) == 1
    assert found["stages"] == ["views"] * 3


# ---- memory


@needs_chromium
@pytest.mark.skipif(not OPENCL, reason="built where there were no OpenCL headers")
def test_buffers_lead_to_their_nodes(planned, tmp_path):
    with opened(page.render(planned), tmp_path) as browser:
        found = browser.run("""
          const position = page.runs[0].programs.findIndex((program) => program.buffers.length);
          page.showProgram(0, position);
          const [plan] = page.plans, buffer = plan.buffers.find((buffer) => buffer.value >= 0);
          const {left, top, width, height} = plan.boxOf(buffer), box = plan.canvas.getBoundingClientRect();
          const at = {clientX: box.left + left + width / 2, clientY: box.top + top + height / 2, bubbles: true};
          plan.canvas.dispatchEvent(new MouseEvent("mousemove", at));
          const tip = document.getElementById("tip").textContent;
          plan.canvas.dispatchEvent(new MouseEvent("click", at));
          const node = page.views[0].graph.nodes[page.views[0].chosen];
          return {tip, label: plan.at(left + width / 2, top + height / 2).label, values: node.outputs.map(([value]) => value),
                  title: plan.title.textContent};
        """)
    assert found["tip"].startswith(found["label"])
    assert any(found["label"].startswith(f"%{value}: ") for value in found["values"])
    assert "live at kernel" in found["title"]


@needs_chromium
def test_a_line_that_has_moved_is_found(report, tmp_path):
    moved = json.loads(json.dumps(report))
    lines = {line: re.sub(r":(\d+)$", lambda match: f":{int(match[1]) + 1000}", line) for line in report["sources"]}
    for program in moved["programs"]:
        for line, to in lines.items():
            program["graph"] = re.sub(f"# {re.escape(line)}( |$)", f"# {to}\\1", program["graph"], flags=re.M)
    moved["sources"] = {to: report["sources"][line] for line, to in lines.items()}
    text = page.render(report, [moved])
    table = text.split('<section id="lines">')[1].split("</section>")[0]
    assert table.count("<tr data-line") == len({line for line in lines if f'"{line}"' in table})
    with opened(text, tmp_path) as browser:
        marked = browser.run("""
          page.selectLine(page.program(0).kernels.find((kernel) => kernel.lines.length).lines[0], true);
          return page.views.map((view) => view.graph.nodes.filter(view.isMarked).map((node) => node.index));
        """)
    assert marked[0] == marked[1] != []
