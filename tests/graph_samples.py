"""Graphs for the tests of pictures and differences."""

import functools

import torch
from models import vision  # noqa: F401  torchvision's import, which transformers' needs

import ltc

SMALL = r'''graph(%0: f32[2,3] -> 0, %1: f64 scalar, %2: i64[4]) {
  %3: f32[2,3;1,2] = aten::mul.Tensor(%0, %1)  # a "b".py:31 (in its backward)
  %4: f32[2,3], _, %5: i64[2] = aten::max.dim(%3, none) {dim=0, text="# ) } = aten::add(%0)\"\\x\x1f\n", names=["a]","b"], empty=floats[], p=[1.0,inf], keepdim=false}  # /usr/lib/python3/site-packages/lib/m.py:7
  %6: bf16[] = custom::op(%4, %4, %5) {size=[2,-3], scale=-0.0, dtype=bf16, layout=none}
  return %4, %0, none, %6, %4
}
'''  # fmt: skip


@functools.cache
def gpt2_step(layers=12, batch=2):
    """The graph of a training step, with thousands of nodes."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=101, n_positions=32, n_embd=32, n_layer=layers, n_head=4, use_cache=False, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config).to("ltc")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, 101, (batch, 16)).to("ltc")
    ltc.mark_step()
    model(tokens, labels=tokens).loss.backward()
    optimizer.step()
    return ltc.graph()
