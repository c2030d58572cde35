"""Models of PyTorch's world, each a row of a table: as on the CPU, with no op run by the CPU instead, nothing compiled twice."""

import re
from math import isfinite
from pathlib import Path

import pytest
import torch
from torch import nn

import ltc
from checking import fallbacks, generate, train, train_on_device
from comparing import LTC, assert_close, to_device
from models import ROWS, hugging_face

rows = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


@rows
def test_as_on_cpu(row):
    """Evaluation, first step's output and gradients, and every loss of a short training."""
    expected = train(row, "cpu")
    actual, cost = train_on_device(row)
    assert cost.fallbacks == {}
    assert cost.steady_compiles == 0
    for one, other in ((actual.evaluated, expected.evaluated), (actual.output, expected.output)):
        assert_close(one, other, rtol=row.rtol, atol=row.atol)
    assert actual.gradients.keys() == expected.gradients.keys() != set()
    for name, gradient in expected.gradients.items():
        assert_close(actual.gradients[name], gradient, rtol=row.rtol, atol=row.atol, msg=lambda text, name=name: f"{name}: {text}")
    assert actual.losses == pytest.approx(expected.losses, rel=1e-3)


@rows
def test_dropout(row):
    """Random numbers come from the device: nothing falls back, fresh ones compile nothing."""
    trained, cost = train_on_device(row, dropout=0.2)
    assert all(map(isfinite, trained.losses))
    assert cost.fallbacks == {}
    assert cost.steady_compiles == 0


@pytest.mark.parametrize("name", hugging_face.GENERATORS)
def test_generation(name, metrics):
    """A third text of the same length compiles nothing, and a second one at most its first step: there an offset that the first text
    has shown to vary is an operand now."""
    expected, _ = generate(*hugging_face.GENERATORS[name], "cpu")
    tokens, compiles = generate(*hugging_face.GENERATORS[name], LTC)
    assert [text.tolist() for text in tokens] == [text.tolist() for text in expected]
    assert compiles[1] <= 1 and compiles[2] == 0
    assert fallbacks() == {}


def test_generation_with_a_static_cache(metrics):
    """The lengths of a text are sizes of one program, and another text compiles nothing."""
    make, prompt = hugging_face.GENERATORS["GPT-2"]
    torch.manual_seed(0)
    module, twin = (make(0.0).eval() for _ in range(2))
    twin.load_state_dict(module.state_dict())
    module.to(LTC)
    compiles = []
    for tokens in (12, 16, 16):
        ids = prompt()["input_ids"]
        before = metrics.counter_value("UncachedCompile")
        options = {"max_new_tokens": tokens, "do_sample": False, "cache_implementation": "static"}
        assert module.generate(ids.to(LTC), **options).tolist() == twin.generate(ids, **options).tolist()
        compiles.append(metrics.counter_value("UncachedCompile") - before)
    assert metrics.counter_value("SymbolicReuse") > 0
    assert compiles[0] < 10 and compiles[1] < 6 and compiles[2] < 2
    assert fallbacks() == {}


STRATEGIES = {
    "beams": {"num_beams": 3},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
    "sampling": {"do_sample": True, "top_k": 10, "top_p": 0.9, "temperature": 0.8},
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_generation_strategies(strategy, metrics):
    """Texts that are drawn are the device's own: its generator's numbers are not the CPU's."""
    model, options = hugging_face.GENERATORS["GPT-2"], STRATEGIES[strategy]
    tokens, _ = generate(*model, LTC, **options)
    assert fallbacks() == {}
    if strategy != "sampling":
        expected, _ = generate(*model, "cpu", **options)
        assert [text.tolist() for text in tokens] == [text.tolist() for text in expected]


def recorded(function, *inputs):
    """How many ops a call records with the given CPU tensors."""
    inputs = to_device(inputs)
    ltc.sync()
    ltc.metrics.reset()
    result = function(*inputs)
    ltc.mark_step()
    assert fallbacks() == {}
    del result
    return ltc.metrics.counter_value("OpsRecorded")


@torch.no_grad()
def test_encoder_layer_is_one_op():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval().to(LTC)
    assert recorded(layer, torch.randn(2, 6, 16)) == 1


def test_attention_is_one_op():
    q, k, v = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)
    assert recorded(nn.functional.scaled_dot_product_attention, q, k, v) == 1


def test_documented():
    """docs/models.md has a line for each row; tests/model_table.py writes it."""
    text = (Path(__file__).parents[1] / "docs" / "models.md").read_text()
    names = re.findall(r"^\| (.+?) +\|", text, re.MULTILINE)
    assert set(names) >= {row.name for row in ROWS}
