"""Transformers of torch.nn, and scaled_dot_product_attention with every kind of mask."""

import torch
import torch.nn.functional as F
from torch import nn

from models.row import Model, regress

BATCH, STEPS, WIDTH, HEADS = 2, 6, 16, 4


class Encoder(nn.Module):
    """nn.TransformerEncoder; in eval mode its layers are one fused op each."""

    def __init__(self, dropout, causal=False, **options):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, dropout, batch_first=True, **options)
        self.net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not options.get("norm_first", False))
        self.causal = causal

    def forward(self, x):
        if not self.causal:
            return self.net(x)
        return self.net(x, mask=nn.Transformer.generate_square_subsequent_mask(STEPS, device=x.device), is_causal=True)


class PaddedEncoder(Encoder):
    """With shorter sequences. PyTorch's own paths differ in their results for padding, so these are cleared."""

    def forward(self, x):
        padding = torch.arange(STEPS, device=x.device) >= torch.tensor([[4], [STEPS]], device=x.device)
        y = self.net(x, src_key_padding_mask=padding)
        return y.masked_fill(padding[:, :, None], 0.0)


class EncoderDecoder(nn.Module):
    """nn.Transformer with a causal target."""

    def __init__(self, dropout):
        super().__init__()
        self.net = nn.Transformer(WIDTH, HEADS, 2, 2, 32, dropout, batch_first=True)

    def forward(self, x, y):
        return self.net(x, y, tgt_mask=nn.Transformer.generate_square_subsequent_mask(STEPS, device=x.device), tgt_is_causal=True)


class Weights(nn.Module):
    """nn.MultiheadAttention with its weights asked for."""

    def __init__(self, dropout):
        super().__init__()
        self.net = nn.MultiheadAttention(WIDTH, HEADS, dropout, batch_first=True)

    def forward(self, x):
        y, weights = self.net(x, x, x)
        return y + weights @ x


class Attention(nn.Module):
    """One attention layer around scaled_dot_product_attention."""

    def __init__(self, dropout, mask=None, causal=False, groups=1):
        super().__init__()
        self.mask, self.causal, self.groups, self.dropout = mask, causal, groups, dropout
        self.q, self.kv, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH // groups), nn.Linear(WIDTH, WIDTH)
        self.bias = nn.Parameter(torch.randn(HEADS, STEPS, STEPS)) if mask == "learnt" else None

    def make_mask(self, device):
        if self.mask == "learnt":
            return self.bias
        allowed = torch.ones(STEPS, STEPS, dtype=torch.bool, device=device).tril(1)
        return {None: None, "bool": allowed, "float": torch.where(allowed, 0.0, -2.5)}[self.mask]

    def forward(self, x):
        q = self.q(x).view(BATCH, STEPS, HEADS, -1).transpose(1, 2)
        k, v = self.kv(x).view(BATCH, STEPS, 2, HEADS // self.groups, -1).permute(2, 0, 3, 1, 4)
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, self.make_mask(x.device), p, self.causal, enable_gqa=self.groups > 1)
        return self.out(y.transpose(1, 2).reshape(x.shape))


def _sequences(*names):
    return lambda: {name: torch.randn(BATCH, STEPS, WIDTH) for name in (*names, "target")}


def _row(name, kind, *inputs, **options):
    return Model(name, lambda dropout: kind(dropout, **options), _sequences("x", *inputs), regress)


ROWS = [
    _row("Transformer encoder", Encoder),
    _row("Transformer encoder, pre-norm, gelu", Encoder, norm_first=True, activation="gelu"),
    _row("Transformer encoder, causal", Encoder, causal=True),
    _row("Transformer encoder, padded", PaddedEncoder),
    _row("Transformer encoder and decoder", EncoderDecoder, "y"),
    _row("multi-head attention with weights", Weights),
    _row("attention", Attention),
    _row("attention, causal", Attention, causal=True),
    _row("attention, bool mask", Attention, mask="bool"),
    _row("attention, float mask", Attention, mask="float"),
    _row("attention, learnt bias", Attention, mask="learnt"),
    _row("attention, grouped queries", Attention, groups=2),
    _row("attention, grouped queries, causal", Attention, groups=2, causal=True),
]
