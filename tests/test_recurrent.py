"""nn.LSTM, nn.GRU and nn.RNN, of padded and packed sequences: one op per layer and direction, one op as its backward, and other uses."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from torch.utils.checkpoint import checkpoint

import ltc
from checking import fallbacks
from comparing import LTC, assert_close, assert_same

KINDS = [nn.LSTM, nn.GRU, nn.RNN]
OPTIONS = {
    "plain": {},
    "two layers, both directions": {"num_layers": 2, "bidirectional": True},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False, "bidirectional": True},
    "double": {"bidirectional": True, "dtype": torch.float64},
}
NETWORKS = {f"{kind.__name__}, {name}": (kind, options) for kind in KINDS for name, options in OPTIONS.items()} | {
    "LSTM, projections": (nn.LSTM, {"proj_size": 4, "num_layers": 2, "bidirectional": True}),
    "LSTM, projections, no bias": (nn.LSTM, {"proj_size": 4, "bias": False}),
    "RNN, relu": (nn.RNN, {"nonlinearity": "relu", "num_layers": 2, "bidirectional": True}),
}
STEPS, BATCH, FEATURES, HIDDEN = 4, 3, 5, 7


def network(kind, **options):
    torch.manual_seed(0)
    net = kind(FEATURES, HIDDEN, **options)
    return net, torch.randn(STEPS, BATCH, FEATURES, dtype=options.get("dtype"), requires_grad=True)


def packed(net, x):
    """Sequences of several lengths, the longest not first."""
    lengths = [STEPS - 1, STEPS - 3, STEPS - 2, STEPS - 1] if net.batch_first else [STEPS - 2, STEPS, STEPS - 3]
    return pack_padded_sequence(x, torch.tensor(lengths), batch_first=net.batch_first, enforce_sorted=False)


def padded(net, x):
    return x


def outputs(net, x, *state):
    """Output and last states as one flat list."""
    y, last = net(x, *state)
    y = y.data if isinstance(y, PackedSequence) else y
    return [y, *last] if isinstance(last, tuple) else [y, last]


def on_both(function, net, x, **tolerance):
    """Compares what the function gives of a network and its input."""
    lazy = function(copy.deepcopy(net).to(LTC), x.detach().to(LTC).requires_grad_())
    assert_same(lazy, function(net, x), **tolerance)


@pytest.mark.parametrize(("kind", "options"), NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("sequences", [padded, packed])
class TestAsOnCpu:
    def test_values_and_gradients(self, sequences, kind, options, metrics):
        def run(net, x):
            results = outputs(net, sequences(net, x))
            return [*results, *torch.autograd.grad(sum(part.square().sum() for part in results), [x, *net.parameters()])]

        on_both(run, *network(kind, **options))
        assert fallbacks() == {}

    def test_gradient_of_the_last_state_alone(self, sequences, kind, options):
        on_both(lambda net, x: torch.autograd.grad(outputs(net, sequences(net, x))[-1].square().sum(), [x, *net.parameters()]),
                *network(kind, **options))  # fmt: skip

    def test_second_derivatives(self, sequences, kind, options):
        def run(net, x):
            (first,) = torch.autograd.grad(outputs(net, sequences(net, x))[0].square().sum(), x, create_graph=True)
            return torch.autograd.grad(first.square().sum(), [x, net.weight_hh_l0])

        on_both(run, *network(kind, **options), rtol=1e-4, atol=1e-4)

    def test_without_gradients(self, sequences, kind, options):
        for mode in (torch.no_grad(), torch.inference_mode()):
            with mode:
                on_both(lambda net, x: outputs(net, sequences(net, x.detach())), *network(kind, **options))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequences", [padded, packed])
def test_given_state(sequences, kind):
    net, x = network(kind)
    state = torch.randn(1, BATCH, HIDDEN, requires_grad=True)

    def run(net, x):
        first = state.detach().to(x.device).requires_grad_()
        y, *_ = outputs(net, sequences(net, x), (first, first * 2) if kind is nn.LSTM else first)
        return [y, *torch.autograd.grad(y.square().sum(), [first, x])]

    on_both(run, net, x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequences", [padded, packed])
def test_one_op_forward_one_backward(sequences, kind, metrics):
    def recorded(function):
        ltc.sync()
        metrics.reset()
        kept = function()
        ltc.mark_step()
        assert kept is not None
        return metrics.counter_value("OpsRecorded")

    net, x = network(kind)
    layer, x = net.to(LTC), sequences(net, x.detach().to(LTC))
    state = torch.zeros(BATCH, HIDDEN, device=LTC)
    given = (state, state) if kind is nn.LSTM else (state,)
    weights = [weight.detach() for weight in layer.parameters()]
    name = f"{kind.__name__.lower()}_layer"
    if sequences is packed:
        others = {nn.LSTM: (None, x.batch_sizes.tolist(), False, True), nn.GRU: (x.batch_sizes.tolist(), False, True),
                  nn.RNN: ("tanh", x.batch_sizes.tolist(), False)}[kind]  # fmt: skip
        alone = recorded(lambda: getattr(torch.ops.ltc, "packed_" + name)(x.data, *given, *weights, *others))
        assert alone == 1
    elif kind is not nn.RNN:
        alone = recorded(lambda: getattr(torch.ops.ltc, name)(x, *given, *weights, False, True))
        assert alone == 1
    evaluated = recorded(lambda: outputs(layer, x))
    trained = recorded(lambda: torch.autograd.grad(y := outputs(layer, x)[0], list(layer.parameters()), y.new_zeros(y.shape)))
    reshapes = 1 if kind is nn.RNN and sequences is padded else 0
    assert trained - evaluated <= 2 + reshapes  # the gradient that it starts from, and the backward
    assert fallbacks() == {}


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_and_checkpoints(kind):
    """Networks that need the smaller ops get them."""
    net, x = network(kind)

    def run(net, x):
        loss = lambda x: net(x)[0].square().sum()  # noqa: E731
        (again,) = torch.autograd.grad(checkpoint(loss, x, use_reentrant=False), x)
        return torch.func.grad(loss)(x.detach()).detach(), again

    on_both(run, net, x)


@pytest.mark.parametrize("kind", KINDS)
def test_autocast(kind):
    net, x = network(kind)
    net, x = net.to(LTC), x.detach().to(LTC)
    with torch.autocast("ltc", dtype=torch.bfloat16):
        y = net(x)[0]
    assert y.dtype == torch.bfloat16
    assert_close(y.detach().float().cpu(), net(x)[0].detach().cpu(), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_sizes(kind):
    net, _ = network(kind)
    for device in ("cpu", LTC):
        with pytest.raises(RuntimeError, match=f"input.size.-1. must be equal to input_size. Expected {FEATURES}, got 2"):
            net.to(device)(torch.zeros(STEPS, BATCH, 2, device=device))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_sizes", [[3, 2, 2], [2, 3], [4, 2]], ids=str)
def test_wrong_batch_sizes_are_errors_as_on_the_cpu(kind, batch_sizes):
    """Six rows, of a batch of three."""
    net, _ = network(kind)
    state = torch.zeros(1, 3, HIDDEN)
    wrong = []
    for device in ("cpu", LTC):
        given = (state.to(device), state.to(device)) if kind is nn.LSTM else state.to(device)
        with pytest.raises((RuntimeError, IndexError)) as error:
            y, _ = net.to(device)(PackedSequence(torch.ones(6, FEATURES, device=device), torch.tensor(batch_sizes)), given)
            y.data.cpu()
        wrong.append(f"{error.type.__name__}: {error.value}")
    assert wrong[0] == wrong[1]


CELLS = {"LSTMCell": (nn.LSTMCell, {}), "GRUCell": (nn.GRUCell, {}), "RNNCell": (nn.RNNCell, {}), "RNNCell, relu": (nn.RNNCell, {"nonlinearity": "relu"}),
         "LSTMCell, no bias": (nn.LSTMCell, {"bias": False}), "GRUCell, double": (nn.GRUCell, {"dtype": torch.float64})}  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), CELLS.values(), ids=CELLS)
class TestCells:
    @staticmethod
    def steps(cell, x):
        """The states after each step, from none."""
        states, state = [], None
        for step in x:
            state = cell(step, state)
            states += state if isinstance(state, tuple) else [state]
        return states

    def test_values_and_gradients(self, kind, options, metrics):
        def run(cell, x):
            results = self.steps(cell, x)
            return [*results, *torch.autograd.grad(sum(part.square().sum() for part in results), [x, *cell.parameters()])]

        on_both(run, *network(kind, **options))
        assert fallbacks() == {}

    def test_second_derivatives(self, kind, options):
        def run(cell, x):
            (first,) = torch.autograd.grad(self.steps(cell, x)[-1].square().sum(), x, create_graph=True)
            return torch.autograd.grad(first.square().sum(), [x, cell.weight_hh])

        on_both(run, *network(kind, **options), rtol=1e-4, atol=1e-4)

    def test_without_gradients_and_batch(self, kind, options):
        with torch.no_grad():
            on_both(lambda cell, x: self.steps(cell, x.detach()[:, 0]), *network(kind, **options))

    def test_a_step_is_one_op(self, kind, options, metrics):
        cell, x = network(kind, **options)
        cell, x = cell.to(LTC), x.detach().to(LTC)
        states = self.steps(cell, x[:1])
        ltc.sync()
        metrics.reset()
        kept = cell(x[1], tuple(states) if len(states) > 1 else states[0])
        ltc.mark_step()
        assert kept is not None and metrics.counter_value("OpsRecorded") <= 2  # the step of the input, and the cell


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_autocast_of_cells(kind):
    cell, x = network(kind)
    with torch.autocast("ltc", dtype=torch.bfloat16):
        lazy = TestCells.steps(copy.deepcopy(cell).to(LTC), x.detach().to(LTC))[-1]
    assert_close(lazy.detach().float().cpu(), TestCells.steps(cell, x)[-1].detach(), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("kind", [nn.GRU, nn.RNN])
def test_wrong_states_are_errors_as_on_the_cpu(kind):
    """The modules look for these, and the functions leave them to their kernels. PyTorch's kernel of an LSTM takes some."""
    net, x = network(kind)
    function = {nn.GRU: torch.gru, nn.RNN: torch.rnn_tanh}[kind]
    for sizes in (1, BATCH + 1, HIDDEN), (1, BATCH, HIDDEN - 1), (BATCH, HIDDEN):
        for device in ("cpu", LTC):
            state, weights = torch.zeros(sizes, device=device), [weight.detach() for weight in net.to(device).parameters()]
            with pytest.raises((RuntimeError, IndexError)):
                function(x.detach().to(device), state, weights, True, 1, 0.0, False, False, False)


def test_wrong_sizes_of_a_cell_are_errors_as_on_the_cpu():
    wrong = []
    for device in ("cpu", LTC):
        zeros = lambda *sizes: torch.zeros(sizes, device=device)  # noqa: E731
        for call in (lambda: torch.gru_cell(zeros(3, 2), zeros(3, HIDDEN), zeros(3 * HIDDEN, 5), zeros(3 * HIDDEN, HIDDEN)),
                     lambda: torch.lstm_cell(zeros(3, 5), [zeros(2, HIDDEN)] * 2, zeros(4 * HIDDEN, 5), zeros(4 * HIDDEN, HIDDEN)),
                     lambda: torch.rnn_tanh_cell(zeros(3, 5), zeros(3, 2), zeros(HIDDEN, 5), zeros(HIDDEN, HIDDEN))):  # fmt: skip
            with pytest.raises(RuntimeError) as error:
                call()
            wrong.append(str(error.value))
    assert wrong[:3] == wrong[3:]
