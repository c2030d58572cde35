"""Exported.save_torchscript: functions of archives as files of torch.jit, which run without ltc."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import ltc
from comparing import to_device
from models import ROWS
from test_export import net, output_of_script

MODELS = ["torchvision ResNet-18", "GPT-2", "T5", "diffusion UNet"]


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in MODELS], ids=lambda row: row.name)
def test_models_give_the_same_results(tmp_path, row):
    model, batch = row.make(0.0).to("ltc").eval(), to_device(row.batch())
    with torch.no_grad():
        exported = ltc.export(lambda batch: row.run(model, batch)[0], (batch,), state={"model": model}, name="forward")
        expected = row.run(model, batch)[0].cpu()
    exported.save_torchscript(tmp_path / "model.pt")
    inputs = [leaf.cpu() for leaf in torch.utils._pytree.tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
    torch.testing.assert_close(torch.jit.load(tmp_path / "model.pt")(*inputs), expected, rtol=1e-4, atol=1e-5)


class Packed(nn.Module):
    """A recurrent network over three sequences of several lengths."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        y, last = self.net(pack_padded_sequence(x, torch.tensor([2, 5, 3]), enforce_sorted=False))
        return y.data, last


OWN_OPS = {
    "LSTM": (nn.LSTM(4, 3, num_layers=2, bidirectional=True), (5, 2, 4)),
    "LSTM without bias": (nn.LSTM(4, 3, bias=False, proj_size=0, batch_first=True), (5, 2, 4)),
    "GRU": (nn.GRU(4, 3, bidirectional=True), (5, 2, 4)),
    "packed LSTM": (Packed(nn.LSTM(4, 3, bidirectional=True)), (5, 3, 4)),
    "packed GRU": (Packed(nn.GRU(4, 3, num_layers=2, bidirectional=True)), (5, 3, 4)),
    "LSTM with projections": (nn.LSTM(4, 3, proj_size=2, bidirectional=True), (5, 2, 4)),
    "RNN": (nn.RNN(4, 3, nonlinearity="relu", num_layers=2), (5, 2, 4)),
    "LSTM cell": (nn.LSTMCell(4, 3), (5, 4)),
    "roll": (lambda x: x.roll(2, 0), (5, 3)),
    "as_strided": (lambda x, at=1: x.as_strided((2, 3), (1, 2), at) * 2, (4, 4)),
    "as_strided_scatter": (lambda x, at=1: torch.as_strided_scatter(x, x[:2, :3] * 2, (2, 3), (1, 2), at), (4, 4)),
    "ctc_loss": (lambda x: nn.functional.ctc_loss(x.log_softmax(-1), torch.tensor([[1, 2], [2, 1]], device=x.device), (6, 5), (2, 1)), (6, 2, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN_OPS)
def test_ops_of_this_project_become_calls_of_pytorch(tmp_path, name):
    function, sizes = OWN_OPS[name]
    x = torch.randn(sizes)
    with torch.no_grad():
        expected = function(x)
        on_device = function.to("ltc") if isinstance(function, nn.Module) else function
        for offset in range(4) if "as_strided" in name else ():  # an offset that varies is no constant
            on_device(x.to("ltc"), offset).cpu()
        exported = ltc.export(on_device, (x,), name="forward", sample=False)
    assert b"ltc::" in dict(exported.entries)["functions/forward/graph.txt"]
    exported.save_torchscript(tmp_path / "f.pt")
    found = torch.utils._pytree.tree_leaves(torch.jit.load(tmp_path / "f.pt")(x))
    for one, other in zip(found, torch.utils._pytree.tree_leaves(expected), strict=True):
        torch.testing.assert_close(one, other)


def test_a_training_step_in_a_process_without_ltc(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).to("ltc")
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)

    def train(x, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return {"loss": loss.detach(), "rows": x + 1}

    batch = torch.arange(20.0).reshape(5, 4) / 10, torch.arange(5) % 3
    train(*to_device(batch))
    ltc.export(train, batch, state={"model": model, "optimizer": optimizer}).save_torchscript(tmp_path / "train.pt")
    expected = [train(*to_device(batch))["loss"].item() for _ in range(4)]
    program = """
import sys
sys.modules["ltc"] = None
import torch
train = torch.jit.load(sys.argv[1])
x = torch.arange(20.0).reshape(5, 4) / 10
for _ in range(4):
    loss, rows = train(x, torch.arange(5) % 3)
    print(float(loss))
assert torch.equal(rows, x + 1)
"""
    found = [float(line) for line in output_of_script(program, tmp_path / "train.pt", TORCH_DEVICE_BACKEND_AUTOLOAD="0").splitlines()]
    assert found == pytest.approx(expected, rel=1e-5) and found[3] < found[0]


def test_the_export_keeps_its_state(tmp_path):
    counter = nn.BatchNorm1d(3).to("ltc").train()
    exported = ltc.export(counter, (torch.ones(2, 3),))
    exported.save_torchscript(tmp_path / "a.pt")
    loaded = torch.jit.load(tmp_path / "a.pt")
    assert loaded.num_batches_tracked == 0 and exported.values["num_batches_tracked"] == 0
    loaded(torch.ones(2, 3))
    assert loaded.num_batches_tracked == 1


def test_functions_that_torchscript_cannot_have_are_refused(tmp_path):
    def refused(exported, text, name=None):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            exported.save_torchscript(tmp_path / "a.pt", name)
        assert text in str(caught.value) and not list(tmp_path.iterdir())

    x = torch.ones(2, 4)
    refused(ltc.export(net().train(), (x,)), "forward() cannot be saved as TorchScript: it draws random numbers")
    refused(ltc.export(net().eval(), (x,), dynamic_shapes={"input": {0: "n"}}), "its sizes vary")
    lstm = nn.LSTM(4, 3).to("ltc")
    gradients = lambda x: torch.autograd.grad(lstm(x)[0].sum(), list(lstm.parameters()))[0]  # noqa: E731
    refused(ltc.export(gradients, (x,), state={"lstm": lstm}, name="forward"), "PyTorch has no op ltc::lstm_layer_backward")
    two = ltc.export(net().eval(), (x,))
    two.add(lambda x: x * 2, (x,), name="double")
    refused(two, "one function is saved: name one of forward, double")
    refused(two, "there is no function 'treble': name one of forward, double", "treble")
    two.save_torchscript(tmp_path / "double.pt", "double")
    assert torch.equal(torch.jit.load(tmp_path / "double.pt")(x), x * 2)
