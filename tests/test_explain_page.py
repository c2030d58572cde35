"""The page of `ltc explain`: it holds all it needs, it is small and safe, and it works in Chromium where there is one."""

import json
import re
from html.parser import HTMLParser

import pytest
import torch
from browser import CHROMIUM
from report_pages import opened, unpacked

import ltc
from ltc._explain import graphs, pack, page
from ltc._explain.costs import QUEUE, WORK

EVIL = "</script><script>document.title='evil'</script><img src=x onerror=alert(1)>\"'&"


def work():
    weight = torch.randn(8, 4, device="ltc", requires_grad=True)
    for step in range(3):
        loss = (torch.ones(2, 8).to("ltc") @ weight).relu().sum()
        loss.backward()
        loss.item()


@pytest.fixture(scope="module")
def report():
    return ltc.explain(work)().to_dict()


class Reader(HTMLParser):
    """Elements and their attributes, and the text outside of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self._skips = [], "", False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._skips = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._skips = False

    def handle_data(self, data):
        if not self._skips:
            self.text += data


def events(count):
    return [{"name": "send", "reason": "", "detail": f"detail {i * 7919 % 100003}", "contents": 0, "where": f"train.py:{i % 300}", "thread": 1,
             "begin_ns": 10 * i * i % 1009 + 5000 * i, "end_ns": 5000 * i + 4000, "self_ns": 1000, "is_part": False, "run": i, "program": 0,
             "ops": i % 7, "bytes": i * 31 % 100000} for i in range(count)]  # fmt: skip


# ---- graphs


def test_a_graph_is_read():
    strings = graphs.Strings()
    graph = graphs.parse('''graph(%0: f32[2,3] -> 0, %1: f64 scalar) {
  %2: f32[2,3;1,2] = aten::mul.Tensor(%0, %1)  # a b.py:31 (in its backward)
  %4: f32[2,3], _ = aten::max.dim(%2, none) {dim=0, text="# ) } = aten::add(%0)\\"", keepdim=false}
  return %4
}
''', strings)  # fmt: skip
    texts = strings.all
    assert [(texts[kind], alias) for _, kind, alias in graph["params"]] == [("f32[2,3]", 0), ("f64 scalar", -1)]
    assert graphs.ops(graph, strings) == ["aten::mul.Tensor", "aten::max.dim"]
    first, second = graph["nodes"]
    assert texts[first[1]] == "a b.py:31 (in its backward)" and texts[second[1]] == ""
    assert first[3:] == [[0, 1], [2, texts.index("f32[2,3;1,2]")]]
    assert texts[second[2]].startswith('dim=0, text="# )') and texts[second[2]].endswith("keepdim=false")
    assert second[3:] == [[2], [4, texts.index("f32[2,3]"), -1, 0]]
    assert graph["outputs"] == [4]


@pytest.mark.parametrize("text", ["", "nothing", "graph() {\n  nonsense\n}\n"])
def test_what_is_no_graph_is_refused(text):
    with pytest.raises(ValueError):
        graphs.parse(text, graphs.Strings())


def test_real_programs_are_read_in_full(report):
    assert report["programs"]
    for program in report["programs"]:
        strings = graphs.Strings()
        graph = graphs.parse(program["graph"], strings)
        assert len(graph["nodes"]) == program["graph"].count(" = ")
        values = {param[0] for param in graph["params"]}
        for op, where, _, inputs, results in graph["nodes"]:
            assert set(inputs) <= values, "a value is used before it is made"
            values |= set(results[::2]) - {-1}
            assert "::" in strings.all[op]
            assert re.search(r"\.py:\d+", strings.all[where])
        assert set(graph["outputs"]) <= values


def test_nodes_are_paired_in_order():
    assert graphs.pair(list("abcd"), list("abxcd")) == [0, 1, 3, 4]
    assert graphs.pair(list("ab"), []) == [-1, -1]
    assert graphs.pair(list("xab"), list("ab")) == [-1, 0, 1]
    assert graphs.likeness(["a"], ["a"]) == 1 and graphs.likeness([], ["a"]) == 0


# ---- the page


def test_a_page_needs_no_network(report):
    text = page.render(report)
    reader = Reader(text)
    loads = [value for _, attributes in reader.elements for name, value in attributes.items() if name in ("src", "href", "action", "data")]
    assert all(value.startswith("#") for value in loads)
    assert not re.search(r"@import|url\(|\bimport\(|fetch\(|XMLHttpRequest|sendBeacon|WebSocket", text)
    policy = next(attributes["content"] for _, attributes in reader.elements if attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert len(text.encode()) < page.MOST_BYTES
    assert "work" in reader.text and "a number is read in each step" in reader.text
    assert "Redistribution and use" in text  # the library's licence


def test_all_of_a_small_report_is_kept(report):
    (data,) = unpacked(page.render(report))
    columns, strings = data["events"]["columns"], data["strings"]
    assert {len(column) for column in columns.values()} == {len(report["events"])}
    assert sorted(strings[i] for i in columns["where"]) == sorted(event["where"] for event in report["events"])
    assert sum(columns["bytes"]) == sum(event["bytes"] for event in report["events"])
    assert len(data["programs"]) == len(report["programs"]) and all(program["graph"] for program in data["programs"])
    assert data["events"]["lanes"][0][0].startswith("Script")


def test_events_of_a_row_do_not_overlap(report):
    (data,) = unpacked(page.render(report))
    columns, ends, time = data["events"]["columns"], {}, 0
    for begin, length, lane, row in zip(*(columns[name] for name in ("begin", "length", "lane", "row")), strict=True):
        time += begin
        assert ends.get((lane, row), 0) <= time
        ends[lane, row] = time + length


def evil(report):
    """The report with an attack in each of its texts."""
    made = json.loads(json.dumps(report))
    made["title"] = made["device"] = EVIL
    for finding in made["findings"]:
        finding.update(what=EVIL, advice=EVIL, where=EVIL + ":1", source=EVIL, detail=EVIL)
    for event in made["events"]:
        event.update(reason=EVIL, detail=EVIL, where=EVIL + ":1")
    made["counters"] = {EVIL: 1}
    made["settings"] = {"LTC_LOG": EVIL}
    made["sources"] = {EVIL + ":1": EVIL}
    for program in made["programs"]:
        for stage in (program, *program["stages"]):
            stage["graph"] = re.sub(r"# .*", lambda match: f"# {EVIL}:1", stage["graph"])
        for kernel in program["kernels"]:
            kernel.update(name=EVIL, note=EVIL)
        program["stages"] = [{**stage, "name": EVIL} for stage in program["stages"]]
        program["buffers"] = [{"label": EVIL, "step": 0, "offset": 0, "bytes": 1, "first": 0, "last": 0}]
    return made


def test_texts_stay_texts(report):
    plain, reader = Reader(page.render(report, [report])), Reader(page.render(evil(report), [evil(report)]))
    tags = [tag for tag, _ in reader.elements]
    assert "img" not in tags and tags.count("script") == [tag for tag, _ in plain.elements].count("script")
    assert not [name for _, attributes in reader.elements for name in attributes if name.startswith("on")]
    assert EVIL in reader.text
    assert unpacked(page.render(evil(report)))[0]["name"] == EVIL


def test_a_large_report_makes_a_page_of_limited_size(report):
    large = {**report, "events": events(100_000), "begin_ns": 0, "dropped": 5}
    large["events"][7]["end_ns"] += 10**9
    text = page.render(large)
    assert len(text.encode()) < page.MOST_BYTES
    (data,) = unpacked(text)
    assert max(data["events"]["columns"]["length"]) > 10**9
    assert "lacks 5 events" in text
    kept = len(data["events"]["columns"]["begin"])
    assert kept == 100_000 or f"leaves out the shortest {100_000 - kept:,} of 100,000 events" in text


def test_what_does_not_fit_is_said(report):
    first = report["programs"][0]
    programs = [{**first, "id": i, "graph": first["graph"] + f"  %{i}: f32[{i},{i * i}] = a::{i ** 99}()\n" * 20} for i in range(2, 400)]
    (text,), notes = pack.pack_runs([{**report, "events": events(20_000), "begin_ns": 0, "programs": programs}], ["run"], 60_000)
    assert len(text) * 3 / 4 <= 60_000
    assert any("graphs or their stages of" in note for note in notes) and any("leaves out the shortest" in note for note in notes)


def test_runs_are_compared(report):
    other = json.loads(json.dumps(report))
    other["title"] = "another"
    other["findings"][-1]["ms"] += 1000
    other["findings"][0].update(cause="only there", where="nowhere.py:1", what="this is only in the second run")
    first = other["programs"][0]
    lines = first["graph"].splitlines()
    first["graph"] = "\n".join([*lines[:2], '  %999: f32[] = aten::zeros() {size=[]}  # new.py:1', *lines[2:]]) + "\n"
    text = page.render(report, [other])
    assert "this is only in the second run" in text and "+1.00 s" in text
    _, data = unpacked(text)
    program = next(program for program in data["programs"] if program["id"] == first["id"])
    assert program["pairs"][0] == 0 and program["pairs"][1] == -1 and program["pairs"][2] == 1


def test_each_kind_of_event_has_a_name_and_a_colour():
    style, script = page._asset("page.css"), page._asset("timeline.js")
    for name in {*WORK, *QUEUE, "device", "kernel"}:
        assert f".k-{name} {{" in style and f"--k-{name}:" in style
        assert re.search(rf"\b{name}: \"", script)


def test_a_report_of_nothing_makes_a_page():
    text = page.render(ltc.explain(lambda: None)().to_dict())
    assert unpacked(text)[0]["programs"] == []


# ---- in a browser

PROBE = """
  const root = document.documentElement, wait = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 10)));
  const found = {}, text = (selector) => document.querySelector(selector).textContent;
  document.querySelector("#findings-table button.line").click();
  await wait();
  found.selection = text("#selection");
  found.rows = document.querySelectorAll("#findings-table tr.chosen").length;
  const canvas = document.querySelector(".views canvas"), box = canvas.getBoundingClientRect();
  document.getElementById("fit").click();
  await wait();
  for (let y = 18; y < 400 && !found.node; y += 12) for (let x = 10; x < box.width && !found.node; x += 40) {
    canvas.dispatchEvent(new MouseEvent("click", {clientX: box.left + x, clientY: box.top + y, bubbles: true}));
    if (document.querySelector("#node dl")) found.node = text("#node");
  }
  const type = (id, value) => {
    document.getElementById(id).value = value;
    document.getElementById(id).dispatchEvent(new Event("input"));
  };
  type("node-search", "relu");
  found.search = text("#found");
  type("filter", "no such text");
  found.left = document.querySelectorAll("#findings-table tbody tr:not([hidden])").length;
  document.getElementById("theme").click();
  document.getElementById("theme").click();
  found.dark = getComputedStyle(document.body).backgroundColor;
  found.isNarrow = root.scrollWidth <= innerWidth;
  found.title = document.title;
  return found;
"""


def probed(text, folder, width=1440):
    with opened(text, folder, width) as browser:
        return browser.run(PROBE)


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
@pytest.mark.parametrize("width", [390, 1440])
def test_a_page_works_in_a_browser(report, tmp_path, width):
    found = probed(page.render(report), tmp_path, width)
    assert re.search(r"test_explain_page\.py:\d+ .*event", found["selection"])
    assert found["rows"] >= 1
    assert "Inputs" in found["node"] and "test_explain_page.py:" in found["node"]
    assert re.match(r"[1-9]\d* node", found["search"])
    assert found["left"] == 0
    assert found["dark"] == "rgb(15, 19, 24)"
    assert found["isNarrow"], "the page is wider than the window"


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_nodes_of_compared_runs_are_chosen_together(report, tmp_path):
    other = json.loads(json.dumps(report))
    for program in other["programs"]:
        first, rest = program["graph"].split("\n", 1)
        program["graph"] = f"{first}\n  %999: f32[] = aten::zeros() {{size=[]}}  # new.py:1\n{rest}"
    with opened(page.render(report, [other]), tmp_path) as browser:
        chosen = browser.run("page.pickNode(0, 1, false); return page.views.map((view) => view.chosen)")
        changes = browser.run("return page.views.map((view) => view.changes)")
    assert chosen == [1, 2]
    assert set(changes[0]) == {0} and changes[1][0] == 1 and set(changes[1][1:]) == {0}


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_a_comparison_of_attacks_works_in_a_browser(report, tmp_path):
    found = probed(page.render(evil(report), [evil(report), report]), tmp_path)
    assert "Inputs" in found["node"] and EVIL in found["selection"]
    assert found["title"] == f"ltc explain: {EVIL}"
