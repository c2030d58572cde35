"""ltc.export(dynamic_shapes=...): archives whose functions take other sizes at each call."""

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import ltc
import ltc_runtime
from comparing import LTC
from test_cli import command
from test_export import net

BACKENDS = ["minimal", "torchscript", "opencl"]


def sessions(tmp_path, exported, *backends):
    exported.save(tmp_path / "a.ltc")
    return [ltc_runtime.load(str(tmp_path / "a.ltc"), backend=backend).session() for backend in backends]


def refusal(function, *args, **settings):
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
        ltc.export(function, args, **settings)
    return str(caught.value)


class Convolutions(nn.Module):
    """Sizes by strides, and by products of batch and length."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.head = nn.Conv1d(2, 4, 3, stride=2), nn.Conv1d(4, 4, 2, stride=2), nn.Linear(4, 3)

    def forward(self, x):
        y = self.second(self.first(x).relu())
        return {"rows": self.head(y.transpose(1, 2)), "mean": y.mean(2), "pairs": torch.cat([x, x], 2).flatten(0, 1)}


class Attention(nn.Module):
    """Draws of rows, and of rows by the square of the length, with numbers of elements that four does not divide."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.project, self.head, self.dropout = nn.Linear(3, 9), nn.Linear(3, 1), nn.Dropout(0.3)

    def forward(self, x):
        q, k, v = self.project(self.dropout(x)).chunk(3, -1)
        weights = self.dropout((q @ k.transpose(1, 2)).softmax(-1))
        return self.head(self.dropout((weights @ v).mean(1)))


# ---- calls of many sizes


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_with_dropout_draws_as_python_does(tmp_path, backend):
    model = Attention().to(LTC)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    exported = ltc.export(train, (torch.randn(4, 5, 3),), state={"model": model, "optimizer": optimizer},
                          dynamic_shapes={"x": {0: "rows", 1: "length"}})  # fmt: skip
    (session,) = sessions(tmp_path, exported, backend)
    for rows, length in [(4, 5), (3, 3), (7, 2), (2, 9), (1, 1), (4, 5), (5, 7)]:
        x = torch.randn(rows, length, 3)
        assert session.run("train", x.numpy()).item() == pytest.approx(train(x.to(LTC)).item(), rel=1e-4), (rows, length)


@pytest.mark.parametrize("backend", BACKENDS)
def test_batches_of_any_size(tmp_path, backend):
    model = net().eval()
    exported = ltc.export(model, (torch.randn(4, 4),), dynamic_shapes={"input": {0: "batch"}})
    (session,) = sessions(tmp_path, exported, backend)
    on_cpu = nn.Sequential(*model).to("cpu")
    for rows in (4, 1, 2, 3, 17, 100, 4, 1):
        x = torch.randn(rows, 4)
        found = session.run("forward", x.numpy())
        torch.testing.assert_close(torch.from_numpy(found), on_cpu(x).detach(), rtol=1e-5, atol=1e-6)
    assert exported.functions[0]["inputs"][0]["shape"] == ["batch", 4] and exported.functions[0]["results"][0]["shape"] == ["batch", 3]


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_on_batches_of_any_size(tmp_path, backend):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(LTC)
    on_cpu = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    on_cpu.load_state_dict({name: value.cpu() for name, value in model.state_dict().items()})

    def trainer(model, optimizer):
        def train(x, y):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return train

    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batch = torch.randn(5, 4), torch.randn(5, 1)
    exported = ltc.export(trainer(model, optimizer), batch, state={"model": model, "optimizer": optimizer},
                          dynamic_shapes={"x": {0: "batch"}, "y": {0: "batch"}})  # fmt: skip
    (session,) = sessions(tmp_path, exported, backend)
    train = trainer(on_cpu, torch.optim.SGD(on_cpu.parameters(), lr=0.05))
    for rows in (5, 2, 9, 3, 64, 5):
        x, y = torch.randn(rows, 4), torch.randn(rows, 1)
        assert session.run("train", x.numpy(), y.numpy()) == pytest.approx(train(x, y).item(), rel=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sizes_that_follow_from_strides_and_products(tmp_path, backend):
    model = Convolutions()
    on_cpu = Convolutions()
    exported = ltc.export(model.to(LTC), (torch.randn(2, 2, 12),), dynamic_shapes={"x": {0: "batch", 2: Dim("length", min=9, max=200)}})
    (session,) = sessions(tmp_path, exported, backend)
    for batch, length in [(2, 12), (3, 9), (1, 31), (5, 200), (2, 10), (2, 15), (2, 16)]:
        x = torch.randn(batch, 2, length)
        for found, expected in zip(session.run("forward", x.numpy()), on_cpu(x).values()):
            torch.testing.assert_close(torch.from_numpy(found), expected.detach(), rtol=1e-4, atol=1e-5)
    shapes = {result["name"]: result["shape"] for result in exported.functions[0]["results"]}
    assert shapes["rows"] == ["batch", {"of": ["length"], "offset": -1, "divisor": 4}, 3]
    assert shapes["pairs"] == [{"of": ["batch"], "scale": 2}, {"of": ["length"], "scale": 2}]


def test_a_token_model_with_a_growing_length(tmp_path):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).eval()
    embedding = nn.Embedding(50, 16)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.layer = embedding, layer

        def forward(self, tokens):
            length = tokens.shape[1]
            mask = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
            return self.layer(self.embedding(tokens) + torch.arange(length, device=tokens.device)[:, None] / 10, src_mask=mask)

    model = Model()
    expected = {shape: (tokens := torch.randint(0, 50, shape), model(tokens).detach()) for shape in [(2, 7), (1, 3), (4, 40), (3, 8)]}
    exported = ltc.export(model.to(LTC), (torch.randint(0, 50, (2, 6)),), dynamic_shapes={"tokens": {0: "batch", 1: "length"}})
    (session,) = sessions(tmp_path, exported, "torchscript")
    for tokens, result in expected.values():
        torch.testing.assert_close(torch.from_numpy(session.run("forward", tokens.numpy())), result, rtol=1e-4, atol=1e-5)


def test_only_what_is_run_is_compiled(metrics):
    ltc.export(lambda x: (x @ x.T).cumsum(1).sin(), (torch.ones(6, 5),), name="f", dynamic_shapes={"x": {0: "n", 1: "m"}}, sample=False)
    assert metrics.counter_value("UncachedCompile") == 1


def test_more_sizes_than_are_kept(tmp_path):
    exported = ltc.export(lambda x: (x * x.shape[0]).sum(1), (torch.ones(3, 2),), name="f", dynamic_shapes={"x": {0: "n"}})
    (session,) = sessions(tmp_path, exported, "minimal")
    for rows in [*range(1, 100), *range(1, 5)]:
        assert session.run("f", np.ones((rows, 2), np.float32)).tolist() == [2.0 * rows] * rows


def test_nested_arguments_and_tuples():
    def f(x, pair):
        return x + pair["a"], pair["b"] * 2

    args = torch.ones(3, 2), {"a": torch.ones(3, 2), "b": torch.ones(5)}
    for shapes in ({"x": {0: "n"}, "pair": {"a": {0: "n"}, "b": None}}, ({0: "n"}, {"a": ("n", None)})):
        (function,) = ltc.export(f, args, name="f", dynamic_shapes=shapes).functions
        assert [one["shape"] for one in function["inputs"]] == [["n", 2], ["n", 2], [5]]
        assert [one["name"] for one in function["dimensions"]] == ["n"]


# ---- refusals


def test_calls_of_wrong_sizes_are_refused_with_both_values(tmp_path):
    exported = ltc.export(lambda x, y: x * y, (torch.ones(4, 3), torch.ones(4, 1)), name="f",
                          dynamic_shapes={"x": {0: Dim("batch", min=2, max=8)}, "y": {0: Dim("batch", min=2, max=8)}})  # fmt: skip
    (session,) = sessions(tmp_path, exported, "minimal")
    ones = lambda *sizes: np.ones(sizes, np.float32)  # noqa: E731
    for text, x, y in [
        ("input x: batch is 9, and is to be from 2 to 8", ones(9, 3), ones(9, 1)),
        ("input x: batch is 1, and is to be from 2 to 8", ones(1, 3), ones(1, 1)),
        ("input y: batch is 5, and is 4 in input x", ones(4, 3), ones(5, 1)),
        (r"x is float32 \(4, 2\), and is to be float32 \(None, 3\)", ones(4, 2), ones(4, 1)),
    ]:
        with pytest.raises(ValueError, match=text):
            session.run("f", x, y)
    assert session.run("f", ones(8, 3), ones(8, 1)).shape == (8, 3)


@pytest.mark.parametrize("least, most", [(None, 4), (3, 4), (2, 4), (4, 5)])
def test_an_example_at_the_end_of_its_range(tmp_path, least, most):
    ends = {"max": most} if least is None else {"min": least, "max": most}
    exported = ltc.export(lambda x: x.sum(1), (torch.ones(4, 3),), name="f", dynamic_shapes={"x": {0: Dim("n", **ends)}})
    exported.save(tmp_path / "f.ltc")
    session = ltc_runtime.load(str(tmp_path / "f.ltc")).session()
    for size in range(least or 1, most + 1):
        assert session.run("f", np.ones((size, 3), np.float32)).tolist() == [3] * size


def test_exports_that_cannot_have_such_sizes_are_refused():
    x = torch.ones(4, 3)
    branches = lambda x: x.sum(0) if x.shape[0] < 6 else x.mean(0)  # noqa: E731
    assert "computes something else for n 6, unlike for 4, and one archive cannot have both" in refusal(branches, x, name="f", dynamic_shapes={"x": {0: "n"}})
    assert ltc.export(branches, (x,), name="f", dynamic_shapes={"x": {0: Dim("n", min=3, max=5)}}).functions
    makes = lambda x: x + torch.tensor([float(x.shape[0])] * 3, device=x.device)  # noqa: E731
    assert "makes another constant for n 5, unlike for 4" in refusal(makes, x, name="f", dynamic_shapes={"x": {0: "n"}})
    convolution = nn.Conv1d(2, 2, 3).to(LTC)
    shapes = {"input": {2: "length"}}
    assert "it cannot be recorded (" in refusal(convolution, torch.ones(1, 2, 8), dynamic_shapes=shapes)
    assert ltc.export(convolution, (torch.ones(1, 2, 8),), dynamic_shapes={"input": {2: Dim("length", min=4)}}).functions
    power = lambda x: x.repeat(x.shape[0] ** 3, 1)  # noqa: E731
    assert "it follows no formula that an archive has" in refusal(power, x, name="f", dynamic_shapes={"x": {0: "n"}})
    draws = lambda x: x + torch.rand_like(x) if x.shape[0] < 6 else x + torch.rand_like(x) + torch.rand_like(x)  # noqa: E731
    assert "the function computes something else for n 6" in refusal(draws, x, name="f", dynamic_shapes={"x": {0: "n"}})


def test_wrong_dynamic_shapes_are_named():
    x, f = torch.ones(4, 3), lambda x: x * 2
    for shapes, text in [
        ({"y": {0: "n"}}, "dynamic_shapes has 'y', and the arguments with tensors are ['x']"),
        ({"x": {2: "n"}}, "dynamic_shapes of x has dim 2, and the tensor has 2 dims"),
        ({"x": {0: 2 * Dim("n")}}, "dynamic_shapes of x, dim 0 is 2*n: give a name"),
        ({"x": {0: Dim.AUTO}}, "give a name, or a torch.export.Dim with a name"),
        ({"x": {0: Dim("n", min=5)}}, "n is 4 in the arguments, and is to be from 5 to None"),
        ({"x": {0: "n", 1: "n"}}, "n is 3 in x, from 1 to None, and before it was 4"),
        ("n", "dynamic_shapes is a str"),
    ]:
        assert text in refusal(f, x, name="f", dynamic_shapes=shapes), shapes


def test_a_range_begins_at_two_where_one_row_is_another_program():
    exported = ltc.export(lambda x: x.squeeze(0), (torch.ones(4, 3),), name="f", dynamic_shapes={"x": {0: "n"}})
    assert exported.functions[0]["dimensions"] == [{"name": "n", "min": 2, "example": 4}]


# ---- the commands


def test_show_and_check_know_the_sizes(tmp_path):
    exported = ltc.export(Convolutions().to(LTC), (torch.randn(2, 2, 12),), dynamic_shapes={"x": {0: "batch", 2: Dim("length", min=9, max=200)}})
    exported.save(tmp_path / "a.ltc")
    shown = command("show", tmp_path / "a.ltc").stdout
    assert "forward(x: f32[batch,2,length]) -> (rows: f32[batch,floor((length-1)/4),3]" in shown
    assert "\n    batch from 1, length from 9 to 200\n" in shown
    checked = command("check", tmp_path / "a.ltc", "--backend", "minimal")
    assert checked.returncode == 0, checked.stderr
    assert len(re.findall("^forward: rows: (the same bits|near enough)$", checked.stdout, re.MULTILINE)) == 3  # one is of a batch of 1
    model = ltc_runtime.load(str(tmp_path / "a.ltc"), backend="minimal")
    assert model.dimensions == {"forward": [("batch", 1, None), ("length", 9, 200)]}
    assert model.functions["forward"][0] == [("x", np.dtype("f4"), (None, 2, None))]


def test_executables_are_those_of_the_examples_sizes(tmp_path):
    ltc.export(net().eval(), (torch.ones(4, 4),), dynamic_shapes={"input": {0: "batch"}}).save(tmp_path / "a.ltc")
    assert command("compile", tmp_path / "a.ltc", "--backend", "torchscript").returncode == 0
    checked = command("check", tmp_path / "a.ltc", "--backend", "torchscript", "--executables")
    assert checked.returncode == 0 and "1 of 1 functions are executables" in checked.stdout, checked.stderr
    assert checked.stdout.count("forward: result:") == 2
