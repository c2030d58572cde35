"""ltc.export: archives, and the runtime that runs them without Python and without PyTorch."""

import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

import ltc
from comparing import LTC, output_of, to_device
from models import ROWS
from test_cli import command
from test_how_to import IS_BUILD_OF_DEV, ROOT

BUILD = Path(ltc.__file__).absolute().parents[2]
PYTHON = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
TRAINED = ["torchvision ResNet-18", "LSTM, bidirectional", "Transformer encoder, pre-norm, gelu", "GPT-2"]


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)).to("ltc")


def trained_net(**settings):
    """A net, its optimizer and its training step, after one step."""
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), capturable=True, **settings)

    def train(x, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    batch = torch.randn(5, 4), torch.randint(0, 3, (5,))
    train(*to_device(batch)).item()
    return {"model": model, "optimizer": optimizer}, train, batch


def runtime_output(program, *args, **variables):
    """The output of a program that imports ltc_runtime, in a process that has no PyTorch."""
    begin = "import sys; sys.modules['torch'] = None\nimport numpy as np, ltc_runtime\n"
    return output_of_script(begin + program, *args, **variables)


def output_of_script(program, *args, **variables):
    done = subprocess.run([sys.executable, "-c", program, *map(str, args)], env={**PYTHON, **variables}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- training and inference


@pytest.mark.skipif(not IS_BUILD_OF_DEV, reason="the sample is built by ./dev")
@pytest.mark.parametrize("backend", ["minimal", "torchscript", "opencl"])
def test_a_c_program_trains_digits_as_python_does(tmp_path, backend):
    if not (BUILD / f"python/ltc/plugins/libltc_{backend}.so").exists():
        pytest.skip(f"plugin {backend} was not built")
    program = f"""
import sys
sys.path.insert(0, {str(ROOT / "samples/digits_archive")!r})
import export
training = export.Training()
training.step(0)
training.export().save(sys.argv[1])
for step in range(3):
    print(f"step {{step}} loss {{training.step(step):.9g}}")
"""
    python = output_of_script(program, tmp_path / "digits.ltc", LTC_BACKEND=backend)
    train = BUILD / "samples/train-archive"
    done = subprocess.run([train, tmp_path / "digits.ltc", ROOT / "samples/digits/data", "3", tmp_path / "state.safetensors"],
                          env={**os.environ, "LTC_BACKEND": backend}, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    losses, right = done.stdout.splitlines()[:-1], done.stdout.splitlines()[-1]
    assert losses == python.splitlines()
    assert re.fullmatch(r"\d+ of 360 test images are right", right)
    drawn = subprocess.run([BUILD / "samples/predict-archive", tmp_path / "digits.ltc", ROOT / "samples/digits/data", tmp_path / "state.safetensors"],
                           env={**os.environ, "LTC_BACKEND": backend}, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert drawn.returncode == 0 and len(re.findall(r"this is a \d", drawn.stdout)) == 3, drawn.stderr
    predict = (ROOT / "samples/digits_archive/predict.py").read_text().replace("__file__", repr(str(ROOT / "samples/digits_archive/predict.py")))
    assert runtime_output(predict, tmp_path / "digits.ltc", tmp_path / "state.safetensors", LTC_BACKEND=backend) == right + "\n"
    libraries = re.findall(r"^\t(\S+)", subprocess.run(["ldd", train], capture_output=True, text=True, check=True).stdout, re.MULTILINE)
    assert "libltc_runtime.so" in libraries and not [one for one in libraries if re.search("torch|python|boost", one)]


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in TRAINED], ids=lambda row: row.name)
def test_models_train_as_python_does(tmp_path, row):
    import ltc_runtime

    model, batch = row.make(0.1).to("ltc").train(), to_device(row.batch())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train(batch):
        optimizer.zero_grad()
        loss = row.run(model, batch)[1]
        loss.backward()
        optimizer.step()
        return loss.detach()

    train(batch).item()
    ltc.export(train, (batch,), state={"model": model, "optimizer": optimizer}).save(tmp_path / "model.ltc")
    session = ltc_runtime.load(str(tmp_path / "model.ltc")).session()
    inputs = [leaf.cpu().numpy() for leaf in torch.utils._pytree.tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
    for _ in range(3):
        assert session.run("train", *inputs) == train(batch).item()


@pytest.mark.parametrize("name", ["BERT", "T5", "ViT", "torchvision MobileNetV3 small"])
def test_models_infer_as_python_does(tmp_path, name):
    (row,) = [row for row in ROWS if row.name == name]
    model, batch = row.make(0.0).to("ltc").eval(), to_device(row.batch())
    with torch.no_grad():
        ltc.export(lambda batch: row.run(model, batch)[0], (batch,), state={"model": model}, name="forward").save(tmp_path / "model.ltc")
    checked = command("check", tmp_path / "model.ltc")
    assert checked.returncode == 0, checked.stderr
    assert "forward: result: the same bits" in checked.stdout


# ---- what an archive has


def test_names_of_inputs_and_results(tmp_path):
    model = net()

    def heads(x, *, masks, scale=2.0, names=None):
        y = model(x) * scale * masks["first"]
        return {"sum": y.sum(), "rows": (y, y.mean(0))}

    masks = {"first": torch.ones(3), "unused": torch.ones(2)}
    exported = ltc.export(heads, (torch.ones(2, 4),), {"masks": masks}, state={"model": model})
    (function,) = exported.functions
    assert [(one["name"], one["dtype"], one["shape"]) for one in function["inputs"]] == [
        ("x", "f32", [2, 4]), ("masks.first", "f32", [3]), ("masks.unused", "f32", [2])]  # fmt: skip
    assert [one["name"] for one in function["results"]] == ["sum", "rows.0", "rows.1"]


def test_equal_models_give_equal_bytes(tmp_path):
    for file in ("a.ltc", "b.ltc"):
        torch.ltc.manual_seed(3)
        ltc.export(net().train(), (torch.ones(2, 4),)).save(tmp_path / file)
    assert (tmp_path / "a.ltc").read_bytes() == (tmp_path / "b.ltc").read_bytes()


def test_others_read_its_parts(tmp_path):
    model = net()
    ltc.export(model, (torch.ones(2, 4),)).save(tmp_path / "net.ltc")
    with zipfile.ZipFile(tmp_path / "net.ltc") as archive:
        assert archive.testzip() is None
        text = archive.read("functions/forward/graph.txt").decode()
        graph = json.loads(archive.read("functions/forward/graph.json"))
        values = pytest.importorskip("safetensors.torch").load(archive.read("values.safetensors"))
    assert torch.equal(values["0.weight"], model[0].weight.cpu())
    assert [node["op"] for node in graph["nodes"]] == re.findall(r" = (\S+)\(", text)
    product = next(node for node in graph["nodes"] if node["op"] == "aten::addmm")
    assert product["results"] == [{"value": product["results"][0]["value"], "dtype": "f32", "shape": [2, 8]}]
    assert product["attributes"] == {"beta": 1, "alpha": 1} and re.fullmatch(r".*test_export.py:\d+", product["line"])
    known = {param["value"] for param in graph["params"]}
    for node in graph["nodes"]:
        assert known.issuperset(operand for operand in node["operands"] if operand is not None)
        known.update(result["value"] for result in node["results"] if result)
    assert known.issuperset(graph["outputs"]) and len(graph["outputs"]) == 1
    shown = json.loads(command("show", tmp_path / "net.ltc", "--graph", "forward", "--json").stdout)
    assert shown == {**graph, "nodes": [{key: value for key, value in node.items() if key != "line"} for node in graph["nodes"]]}


def test_the_lines_are_those_of_the_exported_function(tmp_path):
    model, x = net(), torch.ones(2, 4)

    def first(x):
        return model(x).square()

    def second(x):
        return model(x).square()

    lines = {}
    for function in (first, second):
        ltc.export(function, (x,), name="f", state={"net": model}).save(tmp_path / "f.ltc")
        with zipfile.ZipFile(tmp_path / "f.ltc") as archive:
            graph = json.loads(archive.read("functions/f/graph.json"))
        lines[function] = {int(node["line"].rpartition(":")[2]) for node in graph["nodes"]}
    for function in (first, second):
        assert lines[function] == {function.__code__.co_firstlineno + 1}


def test_an_export_changes_nothing(tmp_path):
    state, train, batch = trained_net()
    before = [value.cpu() for value in state["model"].state_dict().values()], torch.ltc.get_rng_state()
    ltc.export(train, batch, state=state).save(tmp_path / "net.ltc")
    assert all(torch.equal(old, new.cpu()) for old, new in zip(before[0], state["model"].state_dict().values()))
    assert torch.equal(before[1], torch.ltc.get_rng_state())
    assert all(parameter in state["optimizer"].state for parameter in state["model"].parameters())


# ---- the runtime


def test_the_state_is_saved_and_comes_back(tmp_path):
    state, train, batch = trained_net()
    exported = ltc.export(train, batch, state=state)
    exported.save(tmp_path / "net.ltc")
    program = """
model = ltc_runtime.load(sys.argv[1])
x, labels = np.arange(20, dtype=np.float32).reshape(5, 4), np.zeros(5, np.int64)
first = model.session()
losses = [first.run("train", x, labels=labels) for _ in range(4)]
second = model.session()
assert [second.run("train", x, labels) for _ in range(2)] == losses[:2]
second.save(sys.argv[2])
assert [second.run("train", x, labels) for _ in range(2)] == losses[2:]
third = model.session()
third.load(sys.argv[2])
assert [third.run("train", x, labels) for _ in range(2)] == losses[2:]
third.reset()
assert third.run("train", x, labels) == losses[0]
third.reset()
third.set_state("model.0.bias", np.full(8, 2, np.float32))
assert (third.get_state("model.0.bias") == 2).all() and third.run("train", x, labels) != losses[0]
print([name for name, dtype, shape in model.state if dtype == np.float32 and shape == (8, 4)], "torch" in open("/proc/self/maps").read().replace(sys.argv[3], ""))
"""
    names = [f"{'optimizer.' if key else ''}model.0.weight{key}" for key in ("", ".exp_avg", ".exp_avg_sq")]
    printed = runtime_output(program, tmp_path / "net.ltc", tmp_path / "state.safetensors", BUILD, LTC_BACKEND="minimal")
    assert printed.split("\n")[0] == f"{names} False"


def test_sessions_of_threads_are_apart(tmp_path):
    import ltc_runtime

    state, train, batch = trained_net()
    ltc.export(train, batch, state=state).save(tmp_path / "net.ltc")
    model, losses = ltc_runtime.load(str(tmp_path / "net.ltc")), [None] * 4

    def work(index):
        session = model.session()
        losses[index] = [float(session.run("train", *(tensor.numpy() for tensor in batch))) for _ in range(50)]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(losses))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert losses[0] and all(one == losses[0] for one in losses)


def test_wrong_calls_are_refused_with_both_sides(tmp_path):
    import ltc_runtime

    ltc.export(net().eval(), (torch.ones(2, 4),)).save(tmp_path / "net.ltc")
    model = ltc_runtime.load(str(tmp_path / "net.ltc"))
    session, x = model.session(), torch.ones(2, 4).numpy()
    expected = session.run("forward", x)
    for error, text, call in [
        (ValueError, r"input is float64 \(2, 4\), and is to be float32 \(2, 4\)", lambda: session.run("forward", x.astype("f8"))),
        (ValueError, r"input is float32 \(4, 2\), and is to be float32 \(2, 4\)", lambda: session.run("forward", x.T)),
        (TypeError, "forward takes 1 inputs, and was given 2", lambda: session.run("forward", x, x)),
        (TypeError, "forward is missing the input input", lambda: session.run("forward", y=x)),
        (LookupError, "has no function backward; it has forward", lambda: session.run("backward", x)),
        (LookupError, "has no state 7.weight", lambda: session.get_state("7.weight")),
        (LookupError, "cannot be opened: No such file", lambda: ltc_runtime.load(str(tmp_path / "none.ltc"))),
        (RuntimeError, "is damaged, or is no archive", lambda: ltc_runtime.load(__file__)),
        (LookupError, "no backend 'none'", lambda: ltc_runtime.load(str(tmp_path / "net.ltc"), backend="none")),
        (RuntimeError, "plugin null does not run aten::", lambda: ltc_runtime.load(str(tmp_path / "net.ltc"), backend="null")),
        (RuntimeError, "test_export.py: a header of", lambda: session.load(__file__)),
    ]:
        with pytest.raises(error, match=text):
            call()
    assert (session.run("forward", x) == expected).all()


def test_each_op_that_the_plugin_does_not_run_is_named(tmp_path):
    import ltc_runtime

    ltc.export(lambda x: x.exp2().exp().exp2(), (torch.ones(3),)).save(tmp_path / "powers.ltc")
    with pytest.raises(RuntimeError) as refused:
        ltc_runtime.load(str(tmp_path / "powers.ltc"), backend="null")
    assert [str(refused.value).count(f"{op} (") for op in ("aten::exp", "aten::exp2")] == [1, 1], refused.value


# ---- what cannot be exported


def refusal(function, *args, **settings):
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
        ltc.export(function, args, **settings)
    return str(caught.value)


def test_what_depends_on_a_value_names_the_line():
    text = refusal(lambda x: x + 1 if x.sum() > 0 else x, torch.ones(3), name="f")
    assert text.startswith("ltc.export(f): a value was asked for at tests/test_export.py:")


def test_a_tensor_from_outside_is_refused():
    outside = torch.ones(3, device=LTC)
    assert "neither arguments nor a part of `state`" in refusal(lambda x: x + outside, torch.ones(3))


def test_an_op_of_the_host_is_refused_with_its_line():
    program = """
import torch, ltc
x = torch.ones(3, 3, device="ltc")
try:
    ltc.export(lambda x: torch.linalg.eigvals(x), (x,), name="f")
except RuntimeError as error:
    print(error)
"""
    assert re.fullmatch(r"ltc.export\(f\): the backend does not run aten::\S+ at .*:5: plugin twenty_ops .*\n", output_of(program, LTC_BACKEND="twenty_ops"))


def test_written_arguments_are_refused():
    assert "it writes its argument x: return the new value" in refusal(lambda x: x.add_(1).sum(), torch.ones(3, device=LTC))


def test_optimizers_that_are_not_ready_are_refused():
    model = net()

    def step(optimizer):
        def train(x):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return train

    fresh = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.ones(2, 4, device=LTC)
    state = {"model": model, "optimizer": fresh}
    assert "run a step before the export" in refusal(step(fresh), x, state=state)
    step(fresh)(x)
    ltc.export(step(fresh), (x,), state=state)
    counts = torch.optim.Adam(model.parameters())
    step(counts)(x)
    assert "make the optimizer with capturable=True" in refusal(step(counts), x, state={"model": model, "optimizer": counts})


def test_state_of_other_kinds_is_refused():
    assert "state 'model' is a dict" in refusal(lambda x: x, torch.ones(3), state={"model": {}})
    assert "state 'bias' is on cpu" in refusal(lambda x: x, torch.ones(3), state={"bias": torch.ones(3)})
    with pytest.raises(TypeError, match="args is a Tensor, and is to be a tuple"):
        ltc.export(net(), torch.ones(2, 4))
    exported = ltc.export(net(), (torch.ones(2, 4),))
    with pytest.raises(ValueError, match="'a/b' cannot be the name"):
        exported.add(net(), (torch.ones(2, 4),), name="a/b")
    with pytest.raises(ValueError, match="there is a function 'forward' already"):
        exported.add(net(), (torch.ones(2, 4),))


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(Exception, match="none/net.ltc cannot be written: No such file or directory"):
        ltc.export(net(), (torch.ones(2, 4),)).save(tmp_path / "none/net.ltc")


# ---- the commands


def test_show_and_check(tmp_path):
    state, train, batch = trained_net()
    exported = ltc.export(train, batch, state=state)
    with torch.no_grad():
        exported.add(state["model"].eval(), (torch.ones(2, 4),))
    exported.save(tmp_path / "net.ltc")
    shown = command("show", tmp_path / "net.ltc").stdout
    assert "train(x: f32[5,4], labels: i64[5]) -> (result: f32[])\n" in shown and "forward(input: f32[2,4])" in shown
    assert command("show", tmp_path / "net.ltc", "--graph", "forward").stdout.startswith("graph(")
    checked = command("check", tmp_path / "net.ltc", "--backend", "minimal")
    assert checked.returncode == 0 and checked.stdout.startswith("the file is whole; 2 functions are compiled for minimal")
    assert re.search(r"\ntrain: result: (the same bits|near enough)\nforward: result: (the same bits|near enough)\n", checked.stdout)


def test_check_finds_other_results_and_damage(tmp_path):
    exported = ltc.export(net().eval(), (torch.ones(2, 4),))
    name, sample = exported.entries[-1]
    sample["result.result"][1, 2] += 1
    exported.save(tmp_path / "net.ltc")
    checked = command("check", tmp_path / "net.ltc")
    assert checked.returncode == 1 and "forward: result: WRONG: 1 of 6 elements differ, most at [1,2]" in checked.stdout
    assert command("check", tmp_path / "net.ltc", "--tolerance", "100").returncode == 0
    damaged = bytearray((tmp_path / "net.ltc").read_bytes())
    damaged[damaged.index(b"aten::")] ^= 1
    (tmp_path / "net.ltc").write_bytes(damaged)
    checked = command("check", tmp_path / "net.ltc")
    assert checked.returncode == 1 and re.search("graph.* is damaged: its CRC differs|its graph: ", checked.stderr)


def test_executables_are_taken_where_they_fit_and_are_asked_for(tmp_path):
    state, train, batch = trained_net()
    archive, other = tmp_path / "net.ltc", tmp_path / "other.ltc"
    ltc.export(train, batch, state=state).save(archive)
    plain = archive.read_bytes()
    compiled = command("compile", archive, "--to", other)
    assert compiled.returncode == 0 and re.match(r"1 functions, .*, for: ltc .*; plugin torchscript", compiled.stdout), compiled.stderr
    assert archive.read_bytes() == plain
    for _ in range(2):  # once more replaces them
        assert command("compile", other, "--backend", "minimal").returncode == 0
    shown = command("show", other).stdout
    assert len(re.findall("executable of train for: .*plugin torchscript", shown)) == len(re.findall("for: .*plugin minimal", shown)) == 1
    for backend, words, taken in [("torchscript", ["--executables"], "1 of 1"), ("minimal", ["--executables"], "1 of 1"),
                                  ("twenty_ops", ["--executables"], None), ("minimal", [], None)]:  # fmt: skip
        checked = command("check", other, "--backend", backend, *words)
        assert (f"{taken} functions are executables of the archive" in checked.stdout) == (taken is not None)
    import ltc_runtime

    inputs = [tensor.numpy() for tensor in batch]
    losses = [ltc_runtime.load(str(other), run_executables=one).session().run("train", *inputs) for one in (False, True)]
    assert losses[0] == losses[1] == train(*to_device(batch)).item()


@pytest.mark.parametrize("backend", ["minimal", "torchscript", "opencl"])
def test_a_function_that_computes_nothing(tmp_path, backend):
    archive = tmp_path / "same.ltc"
    exported = ltc.export(lambda x: x.clone(), (torch.ones(2, 4),), name="copy", dynamic_shapes={"x": {0: "rows"}})
    exported.add(lambda x, y: (y, x), (torch.ones(2), torch.zeros(3)), name="swap")
    exported.save(archive)
    checked = command("check", archive, "--backend", backend)
    assert checked.returncode == 0 and checked.stdout.count("the same bits") >= 3, checked.stdout + checked.stderr
    import ltc_runtime
    import numpy as np

    session = ltc_runtime.load(str(archive), backend=backend).session()
    assert session.run("copy", np.full((5, 4), 2, np.float32)).tolist() == [[2] * 4] * 5
    first, second = session.run("swap", np.ones(2, np.float32), np.zeros(3, np.float32))
    assert (first.tolist(), second.tolist()) == ([0] * 3, [1] * 2)


def test_metadata(tmp_path):
    archive = tmp_path / "net.ltc"
    with torch.no_grad():
        ltc.export(net().eval(), (torch.ones(2, 4),), metadata={"labels": "a,b,\N{GREEK SMALL LETTER GAMMA}", "author": ""}).save(archive)
    assert command("compile", archive, "--backend", "minimal").returncode == 0  # which writes the manifest anew
    assert "\nauthor = \nlabels = a,b,\N{GREEK SMALL LETTER GAMMA}\n" in command("show", archive).stdout
    assert json.loads(command("show", archive, "--json").stdout)["metadata"] == {"author": "", "labels": "a,b,\N{GREEK SMALL LETTER GAMMA}"}
    printed = runtime_output("print([ltc_runtime.load(sys.argv[1]).metadata(key) for key in ('labels', 'author', 'other')])", archive)
    assert printed == "['a,b,\N{GREEK SMALL LETTER GAMMA}', '', None]\n"
    with pytest.raises(TypeError, match="metadata has 'size': 3, and keys and values are to be texts"):
        ltc.export(net(), (torch.ones(2, 4),), metadata={"size": 3})


def test_a_damaged_executable_is_compiled_instead(tmp_path):
    archive = tmp_path / "net.ltc"
    ltc.export(net().eval(), (torch.ones(2, 4),)).save(archive)
    assert command("compile", archive, "--backend", "minimal").returncode == 0
    with zipfile.ZipFile(archive) as entries:
        (info,) = [info for info in entries.infolist() if info.filename.startswith("executables/")]
        begin = archive.read_bytes().index(entries.read(info))
    damaged = bytearray(archive.read_bytes())
    damaged[begin : begin + 8] = b"\xff" * 8
    archive.write_bytes(damaged)
    program = """
session = ltc_runtime.load(sys.argv[1], backend="minimal", run_executables=True).session()
print(session.run("forward", np.ones((2, 4), np.float32)).shape)
"""
    assert runtime_output(program, archive) == "(2, 3)\n"


def test_wrong_words_end_with_2():
    for words in (["show"], ["check", "a.ltc", "--tolerance", "much"], ["show", "a.ltc", "b.ltc"], ["check", "a.ltc", "--backend"]):
        assert command(*words).returncode == 2
