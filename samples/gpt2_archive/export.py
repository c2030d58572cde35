#!/usr/bin/env python3
"""Writes an archive that generates text: functions `prefill` and `decode` of a small GPT-2 with random weights.

    python samples/gpt2_archive/export.py gpt2.ltc
"""

import sys

import torch

try:
    import torchvision  # noqa: F401  transformers imports it where it is there
except RuntimeError:  # a build without its C++ ops, of which the import describes two
    for _op in "nms", "qnms":
        torch.library.define(f"torchvision::{_op}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from transformers import GPT2Config, GPT2LMHeadModel, StaticCache

import ltc

PROMPT, POSITIONS = 16, 64  # tokens of a prompt at most, and of all that is generated with it


class Generator(torch.nn.Module):
    """A model with a cache of fixed size, which is a part of the archive's state."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        for number, layer in enumerate(self.new_cache().layers):
            self.register_buffer(f"keys_{number}", layer.keys)
            self.register_buffer(f"values_{number}", layer.values)

    def new_cache(self):
        config = self.model.config
        cache = StaticCache(config, max_cache_len=POSITIONS)
        cache.early_initialization(1, config.n_head, config.n_embd // config.n_head, torch.float32, self.model.device)
        return cache

    def cache_behind(self, length):
        """The cache of the state, which holds `length` tokens."""
        cache = self.new_cache()
        for number, layer in enumerate(cache.layers):
            layer.keys, layer.values = getattr(self, f"keys_{number}"), getattr(self, f"values_{number}")
            layer.cumulative_length = length.clone()
        return cache

    @torch.no_grad()
    def prefill(self, tokens, length):
        """Reads a prompt, the first `length` of the tokens. Returns the next one."""
        logits = self.model(tokens, past_key_values=self.cache_behind(torch.zeros_like(length)), use_cache=True).logits
        return {"next": logits.index_select(1, length - 1)[:, 0].argmax(-1)}

    @torch.no_grad()
    def decode(self, token, position):
        """Reads one more token, which stands at `position`. Returns the next one."""
        logits = self.model(token[None], position_ids=position[None], past_key_values=self.cache_behind(position), use_cache=True).logits
        return {"next": logits[:, 0].argmax(-1)}


def make_model():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=500, n_positions=POSITIONS, n_embd=64, n_layer=2, n_head=4, initializer_range=0.2,
                        bos_token_id=0, eos_token_id=None)  # fmt: skip
    return GPT2LMHeadModel(config).to("ltc").eval()


def export(model):
    generator = Generator(model)
    tokens = torch.arange(PROMPT)[None] % model.config.vocab_size
    archive = ltc.export(generator.prefill, (tokens, torch.tensor([PROMPT])))
    archive.add(generator.decode, (torch.tensor([1]), torch.tensor([PROMPT])))
    return archive


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: export.py ARCHIVE")
    export(make_model()).save(sys.argv[1])
    print(f"{sys.argv[1]} is written: prompts of up to {PROMPT} tokens, texts of up to {POSITIONS}")


if __name__ == "__main__":
    main()
