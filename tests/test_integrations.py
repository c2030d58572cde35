"""Libraries that have a list of the devices they know take this one for one of them."""

import os
import sys

import pytest
import torch
from torch import nn

import ltc
from comparing import output_of
from ranks import run_ranks

safetensors = pytest.importorskip("safetensors.torch")
pytestmark = pytest.mark.patch("libraries")
TESTS = os.path.dirname(__file__)


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}, path)
    return path


@pytest.mark.parametrize("device", ["ltc", "ltc:0", "lazy", torch.device("ltc"), torch.device("ltc:0"), 0])
def test_safetensors_loads_onto_the_device(weights, device):
    loaded = safetensors.load_file(weights, device=device)
    assert {str(tensor.device) for tensor in loaded.values()} == {"ltc:0"}
    assert loaded["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and loaded["b"].dtype == torch.bfloat16


def test_safetensors_loads_a_model_and_parts_of_a_file(weights, tmp_path):
    source, model = nn.Linear(3, 2), nn.Linear(3, 2).to("ltc")
    safetensors.save_model(source, tmp_path / "model.safetensors")
    safetensors.load_model(model, tmp_path / "model.safetensors", device="ltc")
    assert torch.equal(model.weight.cpu(), source.weight)
    with sys.modules["safetensors"].safe_open(weights, framework="pt", device="ltc") as file:
        assert file.get_slice("a")[:, 1:].tolist() == [[1, 2], [4, 5]]
        assert file.get_tensor("b").device.type == "ltc"


def test_safetensors_still_loads_onto_the_cpu_and_names_what_it_does_not_know(weights):
    assert safetensors.load_file(weights)["a"].device.type == "cpu"
    with pytest.raises(Exception, match="device nonesuch is invalid"):
        safetensors.load_file(weights, device="nonesuch")


TRAINER = """
import sys, tempfile
sys.path.insert(0, {tests!r})
{imports}
import torch
from models import vision  # torchvision's import, which transformers' needs
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=50)
torch.manual_seed(0)
model = BertForSequenceClassification(config)
data = [dict(input_ids=torch.randint(0, 50, (8,)), labels=torch.tensor(i % 2)) for i in range(16)]
args = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, num_train_epochs=1, report_to=[], save_strategy="no",
                         disable_tqdm=True, logging_steps=100{options})
result = Trainer(model, args, train_dataset=data).train()
print(next(model.parameters()).device.type, result.global_step, result.training_loss == result.training_loss)
"""


@pytest.mark.parametrize(
    "imports, options",
    [("import transformers, accelerate, ltc", ""), ("import ltc", ", bf16=True"), ("import ltc", ", torch_compile=True")],
)
def test_trainer_trains_on_the_device(imports, options):
    pytest.importorskip("accelerate")
    assert output_of(TRAINER.format(tests=TESTS, imports=imports, options=options)).splitlines()[-1] == "ltc 4 True"


def test_trainer_trains_on_the_cpu_where_that_is_asked_for():
    pytest.importorskip("accelerate")
    program = TRAINER.format(tests=TESTS, imports="import ltc", options=", use_cpu=True")
    assert output_of(program).splitlines()[-1] == "cpu 4 True"
    program = TRAINER.format(tests=TESTS, imports="import ltc", options="")
    assert output_of(program, ACCELERATE_TORCH_DEVICE="cpu").splitlines()[-1] == "cpu 4 True"


RANKS = """
    os.environ.update(LOCAL_RANK=str(RANK), LOCAL_WORLD_SIZE=str(RANKS))
    from accelerate import Accelerator
    accelerator = Accelerator(cpu={cpu})
    torch.manual_seed(0)
    model = accelerator.prepare(torch.nn.Linear(3, 1).double())
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(RANK)).double().to(accelerator.device)
    accelerator.backward(model(x).square().mean())
    accelerator.wait_for_everyone()
    ranks = accelerator.gather(torch.tensor([RANK]).to(accelerator.device))
    print(json.dumps([accelerator.device.type, ranks.tolist(), model.module.weight.grad.tolist()]))
"""


def test_accelerate_trains_ranks_together():
    """Also on the CPU, where the process has a device that its process group does not know."""
    pytest.importorskip("accelerate")
    on_device = run_ranks(RANKS.format(cpu=False))
    on_cpu = run_ranks(RANKS.format(cpu=True), backend="gloo")
    for (device, results) in (("ltc", on_device), ("cpu", on_cpu)):
        assert [result[:2] for result in results] == [[device, [0, 1]]] * 2
    assert on_device[0][2] == on_device[1][2] == on_cpu[0][2] == on_cpu[1][2]


@pytest.mark.patch("inductor")
def test_a_compile_without_a_backend_is_the_devices():
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.randn(5, 3)
    on_device = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).to("ltc")
    on_device.load_state_dict(model.state_dict())
    captures = ltc.metrics.counter_value("Captures")
    with pytest.warns(UserWarning, match='compiled by the backend "ltc"'):
        results = torch.compile(on_device)(x.to("ltc"))
    results.sum().backward()
    model(x).sum().backward()
    assert torch.allclose(results.cpu(), model(x)) and torch.allclose(on_device[0].weight.grad.cpu(), model[0].weight.grad)
    assert ltc.metrics.counter_value("Captures") > captures
