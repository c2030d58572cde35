"""Recurrent networks over whole, padded and packed sequences."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from models.row import Model, regress, sgd

BATCH, STEPS, FEATURES, HIDDEN = 3, 6, 8, 12
LENGTHS = torch.tensor([4, 6, 3])


class Tagger(nn.Module):
    """A recurrent network and a linear layer on each of its outputs and on its last state."""

    def __init__(self, kind, dropout, packed=False, **options):
        super().__init__()
        layers = {"num_layers": 2, "dropout": dropout, "batch_first": True} | options
        self.net, self.packed = kind(FEATURES, HIDDEN, **layers), packed
        width = (layers.get("proj_size") or HIDDEN) * (1 + layers.get("bidirectional", False))
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        if self.packed:
            x = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
        y, state = self.net(x)
        if self.packed:
            y, _ = pad_packed_sequence(y, batch_first=True)
        last = state[0] if isinstance(state, tuple) else state
        return self.head(y) + last.mean()


class Cells(nn.Module):
    """The loop over time that a user writes with nn.LSTMCell and nn.GRUCell."""

    def __init__(self, dropout):
        super().__init__()
        self.lstm, self.gru, self.head = nn.LSTMCell(FEATURES, HIDDEN), nn.GRUCell(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 4)

    def forward(self, x):
        h = c = g = x.new_zeros(len(x), HIDDEN)
        outputs = []
        for step in x.unbind(1):
            h, c = self.lstm(step, (h, c))
            g = self.gru(h, g)
            outputs.append(self.head(g))
        return torch.stack(outputs, 1)


def _sequences():
    return {"x": torch.randn(BATCH, STEPS, FEATURES), "target": torch.randn(BATCH, STEPS, 4)}


def _row(name, kind, **options):
    return Model(name, lambda dropout: Tagger(kind, dropout, **options), _sequences, regress, sgd)


ROWS = [
    _row("LSTM", nn.LSTM),
    _row("LSTM, bidirectional", nn.LSTM, bidirectional=True),
    _row("LSTM, time first, no bias", nn.LSTM, batch_first=False, bias=False),
    _row("LSTM with projections", nn.LSTM, proj_size=5),
    _row("LSTM, packed, bidirectional", nn.LSTM, bidirectional=True, packed=True),
    _row("GRU", nn.GRU),
    _row("GRU, bidirectional", nn.GRU, bidirectional=True),
    _row("GRU, packed, bidirectional", nn.GRU, bidirectional=True, packed=True),
    _row("RNN, bidirectional", nn.RNN, bidirectional=True),
    _row("RNN, relu, packed", nn.RNN, nonlinearity="relu", packed=True),
    Model("LSTM and GRU cells", Cells, _sequences, regress, sgd),
]
