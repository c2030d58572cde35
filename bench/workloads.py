"""What is measured: training steps and chains of small ops, written once and made for each device."""

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

FRESH_INPUTS = 8  # different batches, made before the clock starts and used in turn


@dataclass(frozen=True)
class Workload:
    """Something to time, step by step.

    make   device -> step: prepares everything, returns a function that records or runs one step and returns the result, which
           the caller keeps until the step's end, so that it has to be computed. Two devices get the same weights and inputs.
           `wrap` may replace what is computed, the model or function, by something that computes the same: torch.compile.
    block  steps timed together; long enough that the clock and the final wait weigh little.
    """

    name: str
    about: str
    make: Callable
    block: int


def _turns(*tensors):
    """Endless tuples of fresh values of the given CPU tensors' shapes, from a fixed seed."""
    generator = torch.Generator().manual_seed(0)

    def fresh(tensor):
        if tensor.dtype == torch.int64:
            return torch.randint(10, tensor.shape, generator=generator)
        return torch.randn(tensor.shape, generator=generator)

    pool = [tuple(fresh(tensor) for tensor in tensors) for _ in range(FRESH_INPUTS)]
    while True:
        yield from pool


def _itself(function):
    return function


def _training(model, make_optimizer, inputs, loss_of, device, wrap):
    model = wrap(model.to(device).train())
    optimizer = make_optimizer(model.parameters())

    def step():
        images, labels = next(inputs)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        return loss

    return step


def _forward(model, inputs, device, wrap):
    model = wrap(model.to(device).eval())

    @torch.no_grad()
    def step():
        return model(next(inputs)[0].to(device))

    return step


def model_workload(make_model, inputs, make_optimizer=None, loss_of=None):
    """A training step or, without an optimizer, the model's result alone."""

    def make(device, wrap=_itself):
        torch.manual_seed(0)
        model = make_model()
        if make_optimizer is None:
            return _forward(model, _turns(*inputs), device, wrap)
        return _training(model, make_optimizer, _turns(*inputs), loss_of, device, wrap)

    return make


def _labelled(*sizes):
    return torch.empty(sizes), torch.empty(sizes[0], dtype=torch.int64)


def _mlp():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def _mnist():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10), nn.LogSoftmax(dim=1),
    )  # fmt: skip


def _encoder():
    return nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)


class _Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 64, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class _UnrolledLstm(nn.Module):
    """The cell written out, as people write their own."""

    def __init__(self):
        super().__init__()
        self.input, self.hidden = nn.Linear(64, 256), nn.Linear(64, 256)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 64)
        outputs = []
        for t in range(x.shape[1]):
            i, f, g, o = (self.input(x[:, t]) + self.hidden(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs, 1)


def _mean_square(output, _):
    return output.square().mean()


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01)


def _adam(parameters):
    return torch.optim.Adam(parameters, lr=0.001)


def _adadelta(parameters):
    return torch.optim.Adadelta(parameters, lr=1.0)


def _chain(x, y, rounds):
    for _ in range(rounds):
        x = x * 0.5
        x = x + y
        x = torch.relu(x)
        x = x - 0.1
    return x


def _chain200(device, wrap=_itself):
    inputs, chain = _turns(torch.empty(16), torch.empty(16)), wrap(_chain)

    @torch.no_grad()
    def step():
        x, y = (tensor.to(device) for tensor in next(inputs))
        return chain(x, y, 50)

    return step


def _chain4m(device, wrap=_itself):
    # They stay: to send 32 MB is no element-wise op.
    x, y = (tensor.to(device) for tensor in next(_turns(torch.empty(4 << 20), torch.empty(4 << 20))))
    chain = wrap(_chain)

    @torch.no_grad()
    def step():
        return chain(x, y, 5)

    return step


_TOKENS, _SEQUENCE = _labelled(8, 64, 128), _labelled(16, 32, 64)

WORKLOADS = [
    Workload("mlp", "64-64-10, batch 8, SGD training step", model_workload(_mlp, _labelled(8, 64), _sgd, F.cross_entropy), block=200),
    Workload("chain200", "200 element-wise ops on 16 floats, no grad", _chain200, block=100),
    Workload("chain4m", "20 element-wise ops on 4M floats, no grad", _chain4m, block=4),
    Workload("mnist64", "MNIST convolutional net, batch 64, Adadelta training step",
             model_workload(_mnist, _labelled(64, 1, 28, 28), _adadelta, F.nll_loss), block=5),
    Workload("mnist4", "the same, batch 4", model_workload(_mnist, _labelled(4, 1, 28, 28), _adadelta, F.nll_loss), block=20),
    Workload("enc", "transformer encoder layer, d=128, 4 heads, sequence 64, batch 8, Adam training step",
             model_workload(_encoder, _TOKENS, _adam, _mean_square), block=20),
    Workload("enc_sgd", "the same with SGD", model_workload(_encoder, _TOKENS, _sgd, _mean_square), block=20),
    Workload("lstm", "nn.LSTM, hidden 64, sequence 32, batch 16, SGD training step",
             model_workload(_Lstm, _SEQUENCE, _sgd, _mean_square), block=50),
    Workload("lstm_unrolled", "the same with the cell written out", model_workload(_UnrolledLstm, _SEQUENCE, _sgd, _mean_square), block=20),
    Workload("mnist64_fwd", "forward only", model_workload(_mnist, _labelled(64, 1, 28, 28)), block=10),
    Workload("mnist4_fwd", "forward only", model_workload(_mnist, _labelled(4, 1, 28, 28)), block=50),
    Workload("mlp_fwd", "forward only", model_workload(_mlp, _labelled(8, 64)), block=500),
    Workload("enc_fwd", "forward only", model_workload(_encoder, _TOKENS), block=30),
    Workload("lstm_unrolled_fwd", "forward only", model_workload(_UnrolledLstm, _SEQUENCE), block=20),
]  # fmt: skip

RECORD_OPS = 200


def _double(x):
    return x + x


def _scale(x):
    return x * 1.5


RECORDED = {"a+a": _double, "a*1.5": _scale, "relu": torch.relu}
