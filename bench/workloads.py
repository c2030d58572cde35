"""The workloads: training steps and chains of small ops, written once and made for each device."""

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

FRESH_INPUTS = 8  # different batches, made before the clock starts and used in turn


@dataclass(frozen=True)
class Workload:
    """Something to time, step by step.

    make   (device, compile) -> step: prepares everything, returns a function that records or runs one step and returns the
           result, which the caller keeps until the step's end, so that it has to be computed. `compile` is applied to the model
           or the function at the workload's heart. All devices get the same weights and inputs.
    block  steps timed together; long enough that the clock and the final wait weigh little.
    large  for accelerators: timed only where it is named
    """

    name: str
    about: str
    make: Callable
    block: int
    large: bool = False


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


def _training(model, make_optimizer, inputs, loss_of, device, compile):
    model = model.to(device).train()
    optimizer = make_optimizer(model.parameters())
    model = compile(model)

    def step():
        images, labels = next(inputs)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        return loss

    return step


def _forward(model, inputs, device, compile):
    model = compile(model.to(device).eval())

    @torch.no_grad()
    def step():
        return model(next(inputs)[0].to(device))

    return step


def model_workload(make_model, inputs, make_optimizer=None, loss_of=None):
    """A training step or, without an optimizer, the model's result alone."""

    def make(device, compile):
        torch.manual_seed(0)
        model = make_model()
        if make_optimizer is None:
            return _forward(model, _turns(*inputs), device, compile)
        return _training(model, make_optimizer, _turns(*inputs), loss_of, device, compile)

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
    """Four element-wise ops a round."""
    for _ in range(rounds):
        x = x * 0.5
        x = x + y
        x = torch.relu(x)
        x = x - 0.1
    return x


def _chain200(device, compile):
    inputs, chain = _turns(torch.empty(16), torch.empty(16)), compile(_chain)

    @torch.no_grad()
    def step():
        x, y = (tensor.to(device) for tensor in next(inputs))
        return chain(x, y, 50)

    return step


def _chain4m(device, compile):
    chain = compile(_chain)
    # Sent once: to send 32 MB is no element-wise op.
    x, y = (tensor.to(device) for tensor in next(_turns(torch.empty(4 << 20), torch.empty(4 << 20))))

    @torch.no_grad()
    def step():
        return chain(x, y, 5)

    return step


def _pass4m(device, compile):
    (x,) = (tensor.to(device) for tensor in next(_turns(torch.empty(4 << 20))))
    double = compile(lambda x: x * 2)

    @torch.no_grad()
    def step():
        return double(x)

    return step


def _topk(device, compile):
    (logits,) = (tensor.to(device) for tensor in next(_turns(torch.empty(32, 50257))))
    largest = compile(lambda x: x.topk(50).values)

    @torch.no_grad()
    def step():
        return largest(logits)

    return step


def _embedding(device, compile):
    generator = torch.Generator().manual_seed(0)
    often = torch.randint(50257, (8, 256), generator=generator) ** 2 // 50257  # small numbers more often, as words are
    tokens, gradient = often.to(device), torch.randn(8, 256, 768, generator=generator).to(device)
    table = nn.Embedding(50257, 768, device=device)
    look_up = compile(table)

    def step():
        table.weight.grad = None
        look_up(tokens).backward(gradient)
        return table.weight.grad

    return step


def _attention(device, compile):
    inputs = next(_turns(*[torch.empty(8, 12, 1024, 64)] * 3))
    q, k, v = (tensor.to(torch.bfloat16).to(device).requires_grad_() for tensor in inputs)
    attend = compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def step():
        return torch.autograd.grad(attend(q, k, v).sum(), (q, k, v))

    return step


class _Gpt2(nn.Module):
    """Logits of a GPT-2 of 6 layers of 512, random weights, no dropout."""

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_head=8, n_embd=512, n_positions=256,
                                                attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0))  # fmt: skip

    def forward(self, tokens):
        return self.model(tokens, use_cache=False).logits


def _resnet18():
    if not torch.cuda.is_available():  # torchvision's own ops do not load beside a CPU PyTorch; its import asks for these two
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from torchvision.models import resnet18

    return resnet18(num_classes=10)


def _next_token(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


_ENCODED, _SEQUENCE = _labelled(8, 64, 128), _labelled(16, 32, 64)
_TOKENS = torch.empty(8, 256, dtype=torch.int64)

WORKLOADS = [
    Workload("mlp", "64-64-10, batch 8, SGD training step", model_workload(_mlp, _labelled(8, 64), _sgd, F.cross_entropy), block=200),
    Workload("chain200", "200 element-wise ops on 16 floats, no grad", _chain200, block=100),
    Workload("chain4m", "20 element-wise ops on 4M floats, no grad", _chain4m, block=4),
    Workload("mnist64", "MNIST convolutional net, batch 64, Adadelta training step",
             model_workload(_mnist, _labelled(64, 1, 28, 28), _adadelta, F.nll_loss), block=5),
    Workload("mnist4", "the same, batch 4", model_workload(_mnist, _labelled(4, 1, 28, 28), _adadelta, F.nll_loss), block=20),
    Workload("enc", "transformer encoder layer, d=128, 4 heads, sequence 64, batch 8, Adam training step",
             model_workload(_encoder, _ENCODED, _adam, _mean_square), block=20),
    Workload("enc_sgd", "the same with SGD", model_workload(_encoder, _ENCODED, _sgd, _mean_square), block=20),
    Workload("lstm", "nn.LSTM, hidden 64, sequence 32, batch 16, SGD training step",
             model_workload(_Lstm, _SEQUENCE, _sgd, _mean_square), block=50),
    Workload("lstm_unrolled", "the same with the cell written out", model_workload(_UnrolledLstm, _SEQUENCE, _sgd, _mean_square), block=20),
    Workload("mnist64_fwd", "forward only", model_workload(_mnist, _labelled(64, 1, 28, 28)), block=10),
    Workload("mnist4_fwd", "forward only", model_workload(_mnist, _labelled(4, 1, 28, 28)), block=50),
    Workload("mlp_fwd", "forward only", model_workload(_mlp, _labelled(8, 64)), block=500),
    Workload("enc_fwd", "forward only", model_workload(_encoder, _ENCODED), block=30),
    Workload("lstm_unrolled_fwd", "forward only", model_workload(_UnrolledLstm, _SEQUENCE), block=20),
    Workload("pass4m", "one op on 4M floats, which reads and writes each once; chain4m has to move 1.5 times as much", _pass4m, block=20, large=True),
    Workload("topk", "the 50 largest of each of 32 rows of 50257 logits", _topk, block=10, large=True),
    Workload("embedding", "rows of a table of 50257 by 768 for 8 times 256 tokens, and its gradient", _embedding, block=10, large=True),
    Workload("attention", "attention of bfloat16 and its gradients, causal, 8 times 12 heads of 64, sequence 1024", _attention, block=5, large=True),
    Workload("gpt2", "GPT-2, 6 layers of 512, batch 8 of 256 tokens, SGD training step",
             model_workload(_Gpt2, (_TOKENS, _TOKENS), _sgd, _next_token), block=5, large=True),
    Workload("resnet18", "ResNet-18, batch 32 of 64x64, SGD training step",
             model_workload(_resnet18, _labelled(32, 3, 64, 64), _sgd, F.cross_entropy), block=5, large=True),
]  # fmt: skip



@dataclass(frozen=True)
class Recorded:
    """Ops that lazy devices only record: `make` turns 16 floats into a function that calls `ops` of them."""

    name: str
    about: str
    make: Callable
    ops: int = 200


def _chain_of(op, grad=False):
    def make(x):
        x = x.detach().requires_grad_(grad)

        def chain(y=x):
            with torch.set_grad_enabled(grad):
                for _ in range(200):
                    y = op(y)
            return y

        return chain

    return make


def _forward_and_backward(x):
    x = x.detach().requires_grad_()

    def chain():
        y = x
        for _ in range(50):
            y = torch.relu((y * 0.5 + x) - 0.1)
        y.sum().backward()
        return x.grad

    return chain


RECORDED = [
    Recorded("record a+a", "a chain of 200 additions", _chain_of(lambda a: a + a)),
    Recorded("record a+a,grad", "the same, remembered by autograd", _chain_of(lambda a: a + a, grad=True)),
    Recorded("record a*1.5", "with a number", _chain_of(lambda a: a * 1.5)),
    Recorded("record relu", "a function of one operand", _chain_of(torch.relu)),
    Recorded("record generic", "an op without a kernel of its own: atan2", _chain_of(lambda a: torch.atan2(a, a))),
    Recorded("record backward", "200 small ops forward and backward, per op forward", _forward_and_backward),
]


@dataclass(frozen=True)
class Once:
    """A workload that is timed in a fresh process, compiling included: `make` takes a sides.Device, returns the function to time."""

    name: str
    about: str
    make: Callable


def _scalars(device):
    x = torch.rand(100).to(device.name)
    body = device.compile(lambda x, s: (x * s + s).sum())

    def run():
        for i in range(1000):
            result = body(x, 0.5 + i)  # noqa: F841
            device.mark_step()

    return run


def _batches(device):
    torch.manual_seed(0)
    model = _mlp().to(device.name)
    optimizer = _sgd(model.parameters())
    model = device.compile(model)

    def run():
        for size in range(1, 51):
            optimizer.zero_grad(set_to_none=True)
            x, y = torch.randn(size, 64), torch.randint(10, (size,))
            F.cross_entropy(model(x.to(device.name)), y.to(device.name)).backward()
            optimizer.step()
            device.mark_step()

    return run


def _first(name):
    def make(device):
        step = next(workload for workload in WORKLOADS if workload.name == name).make(device.name, device.compile)

        def run():
            result = step()  # noqa: F841
            device.mark_step()

        return run

    return make


ONCE = [
    Once("scalars1000", "(x*s+s).sum() for 1000 different numbers s", _scalars),
    Once("batches50", "mlp, a step for each of 50 batch sizes", _batches),
    Once("first mnist64", "the first step of mnist64", _first("mnist64")),
    Once("first enc", "the first step of enc", _first("enc")),
]
