"""Pictures of graphs: what other programs read has the nodes, edges and shapes of the graph."""

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

import graph_samples
import onnx
import pytest
import torch

import ltc
from ltc_graphs import parse
from ltc_graphs.graph import split_type
from ltc_graphs.onnx import TYPES
from ltc_graphs.pictures import FORMS

TEXTS = {"small": lambda: graph_samples.SMALL, "training step of GPT-2": graph_samples.gpt2_step}


@pytest.fixture(params=TEXTS, scope="module")
def text(request):
    return TEXTS[request.param]()


def written(text, folder, suffix):
    path = folder / f"picture{suffix}"
    ltc.save_graph(str(path), text)
    return path


def names(graph):
    return [f"p{param.value}" for param in graph.params] + [f"n{i}" for i in range(len(graph.nodes))] + \
        [f"o{i}" for i, value in enumerate(graph.outputs) if value is not None]  # fmt: skip


def edges(graph):
    """The source, target and type of each edge."""
    uses = [(value, f"n{i}") for i, node in enumerate(graph.nodes) for value in node.inputs]
    uses += [(value, f"o{i}") for i, value in enumerate(graph.outputs)]
    return [(f"n{graph.makers[value][0]}" if value in graph.makers else f"p{value}", target, graph.types[value]) for value, target in uses if value is not None]


def test_the_training_step_is_large():
    graph = parse(graph_samples.gpt2_step())
    assert len(graph.nodes) > 2500 and len(graph.outputs) > 400


# ---- the text is read


def test_a_graph_is_read():
    graph = parse(graph_samples.SMALL)
    assert [(param.value, param.type, param.alias) for param in graph.params] == [(0, "f32[2,3]", 0), (1, "f64 scalar", None), (2, "i64[4]", None)]
    first, second, third = graph.nodes
    assert first.line == 'a "b".py:31 (in its backward)' and first.attribute_texts == {}
    assert second.inputs == (3, None) and second.outputs == (4, None, 5) and second.types == ("f32[2,3]", None, "i64[2]")
    assert second.attribute_texts == {"dim": "0", "text": r'"# ) } = aten::add(%0)\"\\x\x1f\n"', "names": '["a]","b"]', "empty": "floats[]",
                                      "p": "[1.0,inf]", "keepdim": "false"}  # fmt: skip
    assert third.attribute_texts == {"size": "[2,-3]", "scale": "-0.0", "dtype": "bf16", "layout": "none"} and not third.line
    assert graph.outputs == (4, 0, None, 6, 4)


# ---- the forms


@pytest.mark.skipif(not shutil.which("gvpr"), reason="Graphviz is not installed")
def test_graphviz_reads_dot(text, tmp_path):
    graph = parse(text)
    program = r'N { printf("%s\t%s\n", $.name, gsub($.label, "\t", " ")) } E { printf("%s\t%s\t%s\n", $.tail.name, $.head.name, $.label) }'
    read = subprocess.run(["gvpr", program, written(text, tmp_path, ".dot")], capture_output=True, text=True)
    assert read.returncode == 0 and not read.stderr
    rows = [line.split("\t") for line in read.stdout.splitlines() if "\t" in line]
    labels = {row[0]: row[1] for row in rows if len(row) == 2}
    assert sorted(labels) == sorted(names(graph))
    assert all(labels[f"n{i}"].startswith(node.op) for i, node in enumerate(graph.nodes))
    assert Counter(tuple(row) for row in rows if len(row) == 3) == Counter(edges(graph))


def test_svg_shows_all(text, tmp_path):
    graph = parse(text)
    root = ElementTree.parse(written(text, tmp_path, ".svg")).getroot()
    space = "{http://www.w3.org/2000/svg}"
    boxes = {box.get("id"): box for box in root.iter(f"{space}g")}
    assert sorted(boxes) == sorted(names(graph))
    assert all(boxes[f"n{i}"].find(f"{space}text").text == node.op for i, node in enumerate(graph.nodes))
    assert Counter((*path.get("class").split(), path.find(f"{space}title").text) for path in root.iter(f"{space}path")) == Counter(edges(graph))


def test_svg_has_no_boxes_over_each_other(text, tmp_path):
    root = ElementTree.parse(written(text, tmp_path, ".svg")).getroot()
    rows = {}
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, width, height = (float(box.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + width <= float(root.get("width")) and y + height <= float(root.get("height"))
        rows.setdefault(y, []).append((x, x + width))
    for row in map(sorted, rows.values()):
        assert all(before[1] < after[0] for before, after in zip(row, row[1:], strict=False))


def test_svg_leads_downwards(text, tmp_path):
    root = ElementTree.parse(written(text, tmp_path, ".svg")).getroot()
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        _, begin, *_, end = map(float, re.findall(r"-?[\d.]+", path.get("d")))
        assert begin < end


def value_of(attribute):
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else [item.decode() if isinstance(item, bytes) else item for item in value] \
        if isinstance(value, list) else value  # fmt: skip


def test_onnx_reads_onnx(text, tmp_path):
    graph = parse(text)
    model = onnx.load(written(text, tmp_path, ".onnx"))
    onnx.checker.check_model(model)
    ops = [(f"{node.domain}::{node.op_type}{'.' if node.overload else ''}{node.overload}", list(node.input), list(node.output)) for node in model.graph.node]
    name = lambda value: "" if value is None else f"%{value}"  # noqa: E731
    assert ops == [(node.op, list(map(name, node.inputs)), list(map(name, node.outputs))) for node in graph.nodes]
    assert [value.name for value in model.graph.input] == [name(param.value) for param in graph.params]
    assert [value.name for value in model.graph.output] == [name(value) for value in dict.fromkeys(graph.outputs) if value is not None]
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        kind = graph.types[int(value.name[1:])]
        dtype, sizes, _ = split_type(kind)
        tensor = value.type.tensor_type
        assert tensor.elem_type == TYPES[dtype] and [dim.dim_value for dim in tensor.shape.dim] == sizes
        assert [(one.key, one.value) for one in value.metadata_props] == [("type", kind)]
    assert [{one.key: one.value for one in node.metadata_props}.get("line", "") for node in model.graph.node] == [node.line for node in graph.nodes]
    assert all([one.name for one in node.attribute] == list(own.attribute_texts) for node, own in zip(model.graph.node, graph.nodes, strict=True))


def test_onnx_has_the_values_of_attributes(tmp_path):
    model = onnx.load(written(graph_samples.SMALL, tmp_path, ".onnx"))
    values = {one.name: value_of(one) for node in model.graph.node for one in node.attribute}
    assert values == {"dim": 0, "text": '# ) } = aten::add(%0)"\\x\x1f\n', "names": ["a]", "b"], "empty": [], "p": [1.0, float("inf")], "keepdim": 0,
                      "size": [2, -3], "scale": 0.0, "dtype": "bf16", "layout": "none"}  # fmt: skip
    assert [onnx.TensorProto.DataType.Name(number) for number in TYPES.values()] == [
        "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128",
        "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"]  # fmt: skip


def test_model_explorer_json_has_all(text, tmp_path):
    graph = parse(text)
    data = json.loads(written(text, tmp_path, ".json").read_text())
    assert data.keys() == {"label", "graphs"}  # which its loader of JSON asks for
    nodes = {node["id"]: node for node in data["graphs"][0]["nodes"]}
    assert len(nodes) == len(graph.params) + len(graph.nodes) + len(graph.outputs)
    for node in nodes.values():
        for edge in node["incomingEdges"]:
            assert edge["sourceNodeOutputId"] in [output["id"] for output in nodes[edge["sourceNodeId"]]["outputsMetadata"]]
    for i, node in enumerate(graph.nodes):
        shown = nodes[str(i)]
        assert shown["label"] == node.op
        sources = {int(edge["targetNodeInputId"]): (edge["sourceNodeId"], edge["sourceNodeOutputId"]) for edge in shown["incomingEdges"]}
        made = {k: graph.makers.get(value, (f"%{value}", 0)) for k, value in enumerate(node.inputs) if value is not None}
        assert sources == {k: (str(source), str(output)) for k, (source, output) in made.items()}
        types = {int(output["id"]): {one["key"]: one["value"] for one in output["attrs"]}["type"] for output in shown["outputsMetadata"]}
        assert types == {k: kind for k, kind in enumerate(node.types) if kind}


def test_model_explorer_groups_by_line(tmp_path):
    data = json.loads(written(graph_samples.SMALL, tmp_path, ".json").read_text())
    groups = {node["id"]: node["namespace"] for node in data["graphs"][0]["nodes"]}
    assert [groups[name] for name in ("%0", "0", "1", "2", "output 0")] == ["params", 'backward/a "b".py/line 31', "forward/lib/m.py/line 7", "no line", "outputs"]


# ---- the function and the command


def test_what_is_recorded_is_saved(tmp_path):
    x = torch.ones(2, device="ltc").tanh()
    ltc.save_graph(str(tmp_path / "now.svg"))
    assert "aten::tanh" in (tmp_path / "now.svg").read_text()
    assert x.tolist()


def command(*words):
    return subprocess.run([sys.executable, "-m", "ltc_cli", "graph", *map(str, words)], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    def work():
        for _ in range(5):
            x = torch.ones(200, 200, device="ltc")
            (x @ x).sum().item()
        torch.ones(2, device="ltc").cos().tolist()

    path = tmp_path_factory.mktemp("report") / "run.json"
    ltc.explain(work)().save(path)
    return path


def test_the_program_that_ran_longest_is_shown(report):
    assert "aten::mm" in command(report).stdout
    programs = {program["id"]: program["graph"] for program in json.loads(report.read_text())["programs"]}
    other = next(id_ for id_, text in programs.items() if "aten::cos" in text)
    assert command(f"{report}:{other}").stdout == programs[other]


@pytest.mark.parametrize("suffix", FORMS)
def test_the_command_writes_each_form(report, tmp_path, suffix):
    done = command(report, "--to", tmp_path / f"x{suffix}")
    assert done.returncode == 0 and not done.stdout + done.stderr
    assert (tmp_path / f"x{suffix}").stat().st_size > 200


def test_a_graph_is_found_in_a_log(tmp_path):
    (tmp_path / "log.txt").write_text(f"[12:00] [ltc] [trace] after cse: {graph_samples.SMALL}[12:01] more\n{graph_samples.SMALL.replace('max', 'min')}")
    assert command(f"{tmp_path}/log.txt:1").stdout == graph_samples.SMALL
    assert "aten::min" in command(f"{tmp_path}/log.txt:2").stdout
    several = command(tmp_path / "log.txt")
    assert several.returncode == 2 and "has 2 graphs" in several.stderr and "log.txt:1 [12:00] [ltc] [trace] after cse:" in several.stderr


@pytest.mark.parametrize("content, words, said", [
    ("text", [], "has no graph as ltc.graph() writes it"),
    ("{}", [], "is no report of ltc explain"),
    ('{"format": 1}', [], "it has no findings"),
    ("\0\x01", [], "has no graph"),
    ("graph() {\n  what\n}\n", ["--to", "x.dot"], "this is no node of a graph: '  what'"),
    (graph_samples.SMALL, ["--to", "x.png"], "x.png ends with none of .dot, .svg, .onnx, .json"),
    (graph_samples.SMALL, ["--to", "/nowhere/x.dot"], "/nowhere/x.dot"),
])  # fmt: skip
def test_wrong_files_are_named(tmp_path, content, words, said):
    (tmp_path / "file").write_text(content)
    refused = command(tmp_path / "file", *words)
    assert refused.returncode == 2 and said in refused.stderr and "Traceback" not in refused.stderr
