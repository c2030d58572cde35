"""ltc export, and files of torch.export."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

import ltc
import ltc_runtime
from models import ROWS
from test_cli import command

SCRIPT = """
import sys, torch, ltc
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.ReLU())
size = float(sys.argv[1]) if sys.argv[1:] else 1.0
number = 3

class Made(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x, scale=None):
        return self.layer(x)

def scaled(x, y):
    return {"out": model(x) * size + y}

def broken(x):
    return x + "a"

def export():
    return ltc.export(lambda x: x * 2, (torch.ones(5),), name="doubled")

if __name__ == "__main__":
    raise SystemExit("the main program ran")
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "net.py").write_text(SCRIPT)
    return tmp_path / "net.py"


def exported(tmp_path, *words):
    done = command("export", "-o", tmp_path / "a.ltc", *words)
    assert done.returncode == 0, done.stderr
    return ltc_runtime.load(str(tmp_path / "a.ltc"), backend="minimal")


# ---- scripts


def test_a_module_of_a_script(tmp_path, script):
    model = exported(tmp_path, f"{script}:model", "--input", "f32[1,3]")
    x = np.ones((1, 3), np.float32)
    results = [model.session().run("forward", x) for _ in range(2)]
    assert results[0].shape == (1, 4) and (results[0] == results[1]).all()
    assert model.session().get_state("0.bias").shape == (4,)
    trained = exported(tmp_path, f"{script}:model", "--input", "f32[20,3]", "--training", "--name", "train").session()
    x = np.ones((20, 3), np.float32)
    assert (trained.run("train", x) != trained.run("train", x)).any()  # with dropout


def test_a_class_and_sizes_that_vary(tmp_path, script):
    model = exported(tmp_path, f"{script}:Made", "--input", "f32[batch=4,3]")
    assert model.dimensions == {"forward": [("batch", 1, None)]}
    assert model.session().run("forward", np.ones((7, 3), np.float32)).shape == (7, 2)


def test_a_function_with_the_modules_that_it_names(tmp_path, script):
    model = exported(tmp_path, f"{script}:scaled", "--input", "f32[2,3]", "--input", "f32[4]", "--", "3.0")
    assert model.functions["scaled"][1] == [("out", np.dtype("f4"), (2, 4))]
    x, y = np.ones((2, 3), np.float32), np.full(4, 10, np.float32)
    state = {name: model.session().get_state(f"model.0.{name}") for name in ("weight", "bias")}
    expected = np.maximum(x @ state["weight"].T + state["bias"], 0) * 3 + 10
    np.testing.assert_allclose(model.session().run("scaled", x, y), expected, rtol=1e-5)


def test_a_script_that_exports_by_itself(tmp_path, script):
    assert list(exported(tmp_path, script).functions) == ["doubled"]
    assert list(exported(tmp_path, f"{script}:export").functions) == ["doubled"]


@pytest.mark.parametrize("words, code, text", [
    (["net.py:nothing"], 2, "net.py has no nothing; it has: model, scaled, broken, export"),
    (["net.py:number"], 2, "net.py:number is a int, and is to be a module or a function"),
    (["net.py:model"], 2, "net.py:model takes inputs (input): give an example of each, as in --input f32[1,3,224,224]"),
    (["net.py:model", "--input", "f3[1]"], 2, "--input f3[1]: this is to be a dtype and sizes"),
    (["net.py:model", "--input", "f32[1,x]"], 2, "--input f32[1,x]: x is no size"),
    (["none.py:model"], 2, "no script and no module 'none.py'"),
    (["none.pt2"], 1, "none.pt2 is not there"),
    (["none.pt2", "--input", "f32[1]"], 2, "none.pt2 has inputs of its own"),
    (["net.py:broken", "--input", "f32[2]"], 1, "unsupported operand type(s) for +: 'Tensor' and 'str'"),
    (["net.py:model", "--input", "f32[1,7]"], 1, "mat1 and mat2 shapes cannot be multiplied"),
    (["net.py:model", "--input", "f32[1,3]", "-o", "none/a.ltc"], 1, "none/a.ltc cannot be written: No such file or directory"),
])  # fmt: skip
def test_what_is_wrong_is_named(script, words, code, text, monkeypatch):
    monkeypatch.chdir(script.parent)
    done = command("export", *words)
    assert done.returncode == code and text in done.stderr, done.stderr
    assert not list(script.parent.glob("*.ltc"))


# ---- files of torch.export


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
        self.register_buffer("calls", torch.zeros(()))
        self.table = torch.arange(5.0)

    def forward(self, x, masks):
        self.calls.add_(1)
        y = self.net(x) * masks["first"] + self.table
        return {"y": y, "rest": (y.view(x.shape[0] * 5), y.to(torch.float64).sum(0))}


SMALL_ARGS = torch.randn(2, 3, 8, 8), {"first": torch.ones(5)}


def pt2(path, model, args, **settings):
    torch.export.save(torch.export.export(model, args, **settings), path)
    return path


def test_a_small_file(tmp_path):
    model = Small().eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    path = pt2(tmp_path / "small.pt2", model, SMALL_ARGS, dynamic_shapes={"x": {0: batch}, "masks": {"first": None}})
    ltc.export(path).save(tmp_path / "small.ltc")
    loaded = ltc_runtime.load(str(tmp_path / "small.ltc"), backend="minimal")
    assert [name for name, _, _ in loaded.functions["forward"][1]] == ["y", "rest.0", "rest.1"]
    session = loaded.session()
    for rows in (2, 5, 1):
        x = torch.randn(rows, 3, 8, 8)
        expected = torch.utils._pytree.tree_leaves(model(x, SMALL_ARGS[1]))
        for found, one in zip(session.run("forward", x.numpy(), np.ones(5, np.float32)), expected):
            torch.testing.assert_close(torch.from_numpy(found), one.detach(), rtol=1e-4, atol=1e-5)
    assert session.get_state("calls") == 3
    with pytest.raises(ValueError, match="is 65, and is to be from 1 to 64"):
        session.run("forward", np.ones((65, 3, 8, 8), np.float32), np.ones(5, np.float32))


@pytest.mark.parametrize("backend", ["torchscript", "opencl"])
def test_resnet_by_the_command(tmp_path, backend):
    (row,) = [row for row in ROWS if row.name == "torchvision ResNet-18"]
    model, x = row.make(0.0).eval(), row.batch()["x"]
    pt2(tmp_path / "resnet.pt2", model, (x,))
    done = command("export", tmp_path / "resnet.pt2", "-o", tmp_path / "resnet.ltc", "--name", "classify")
    assert done.returncode == 0, done.stderr
    session = ltc_runtime.load(str(tmp_path / "resnet.ltc"), backend=backend).session()
    torch.testing.assert_close(torch.from_numpy(session.run("classify", x.numpy())), model(x).detach(), rtol=1e-3, atol=1e-4)


def changed(path, entry, change):
    """The file with another entry of that end."""
    with zipfile.ZipFile(path) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    (name,) = [name for name in entries if name.endswith(entry)]
    with zipfile.ZipFile(path, "w") as new:
        for other, data in entries.items():
            new.writestr(other, change(data) if other == name else data)


def changed_json(path, entry, change):
    def in_json(data):
        parsed = json.loads(data)
        change(parsed)
        return json.dumps(parsed)

    changed(path, entry, in_json)


class MakesAFolder:
    """Unpickling it does so."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def change_sample(path):
    """Example inputs that do something when they are unpickled."""
    buffer = io.BytesIO()
    torch.save(((MakesAFolder(path.parent / "was unpickled"),), {}), buffer)
    changed(path, "sample_inputs/model.pt", lambda data: buffer.getvalue())


def set_target(target):
    return lambda model: model["graph_module"]["graph"]["nodes"][0].update(target=target)


@pytest.mark.parametrize("change, text", [
    (change_sample, "its example inputs are objects that would have to be unpickled"),
    (lambda path: changed_json(path, "model_weights_config.json", lambda config: config["config"]["weight"].update(use_pickle=True)),
     "weight is a pickled object: it would have to be unpickled"),
    (lambda path: changed_json(path, "models/model.json", set_target("torch.ops.aten.from_file.default")), "it calls torch.ops.aten.from_file.default"),
    (lambda path: changed_json(path, "models/model.json", set_target("os.system")), "it calls os.system, which an archive cannot have"),
    (lambda path: changed_json(path, "models/model.json", lambda model: model["schema_version"].update(major=99)), "its schema is 99"),
    (lambda path: changed_json(path, "models/model.json", lambda model: model["graph_module"].pop("graph")), "has a form that is not known here"),
    (lambda path: path.write_bytes(b"no zip"), "is damaged, or is no .pt2 file"),
])  # fmt: skip
def test_files_that_are_not_only_data_are_refused(tmp_path, change, text):
    path = pt2(tmp_path / "linear.pt2", nn.Linear(3, 2), (torch.ones(1, 3),))
    ltc.export(path)
    change(path)
    with pytest.raises(RuntimeError, match="ltc.export: ") as caught:
        ltc.export(path)
    assert text in str(caught.value) and list(tmp_path.iterdir()) == [path]


def test_arguments_in_the_place_of_those_of_the_file(tmp_path):
    path = pt2(tmp_path / "linear.pt2", nn.Linear(3, 2), (torch.ones(1, 3),))
    change_sample(path)
    (function,) = ltc.export(path, (torch.ones(1, 3),)).functions
    assert function["inputs"] == [{"name": "input", "dtype": "f32", "shape": [1, 3]}]
    with pytest.raises(RuntimeError, match="it takes 1 inputs, and 2 were given"):
        ltc.export(path, (torch.ones(1, 3), torch.ones(1)))
