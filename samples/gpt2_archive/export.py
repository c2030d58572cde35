#!/usr/bin/env python3
"""Writes an archive that generates text: functions `prefill` and `decode` of a small GPT-2 with random weights.

    python samples/gpt2_archive/export.py gpt2.ltc [--slots N]

With --slots the state has caches for N texts, and `decode` computes the next tokens of some of them.
"""

import argparse

import torch

try:
    import torchvision  # noqa: F401  transformers imports it where it is there
except RuntimeError:  # a build without its C++ ops, of which the import describes two
    for _op in "nms", "qnms":
        torch.library.define(f"torchvision::{_op}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from transformers import GPT2Config, GPT2LMHeadModel, StaticCache
from transformers.cache_utils import StaticLayer

import ltc

PROMPT, POSITIONS = 16, 64  # tokens of a prompt at most, and of all that is generated with it


class Slot(StaticLayer):
    """The cache of one text, a row of a tensor with the caches of all."""

    slot = None  # i64[1]

    def update(self, key_states, value_states, *args, **kwargs):
        places = torch.arange(key_states.shape[2], device=key_states.device)
        rows = []
        for cache, states in (self.keys, key_states), (self.values, value_states):
            row = cache.index_select(0, self.slot).index_copy(2, places, states)
            cache.index_copy_(0, self.slot, row)
            rows.append(row)
        return rows


class Slots(StaticLayer):
    """The caches of some texts, each of which is at a position of its own."""

    slots = positions = None  # i64[texts]

    def update(self, key_states, value_states, *args, **kwargs):
        for cache, states in (self.keys, key_states), (self.values, value_states):
            cache[self.slots, :, self.positions] = states[:, :, 0]
        return self.keys.index_select(0, self.slots), self.values.index_select(0, self.slots)


class Generator(torch.nn.Module):
    """A model with a cache of fixed size for each slot. The caches are a part of the archive's state."""

    def __init__(self, model, slots=1):
        super().__init__()
        self.model, self.slots = model, slots
        for number, layer in enumerate(self.new_cache().layers):
            self.register_buffer(f"keys_{number}", layer.keys)
            self.register_buffer(f"values_{number}", layer.values)

    def new_cache(self):
        config = self.model.config
        cache = StaticCache(config, max_cache_len=config.n_positions)
        cache.early_initialization(self.slots, config.n_head, config.n_embd // config.n_head, torch.float32, self.model.device)
        return cache

    def cache(self, length, kind=StaticLayer, **values):
        """The cache of the state, which holds `length` tokens."""
        cache = self.new_cache()
        for number, layer in enumerate(cache.layers):
            layer.keys, layer.values = getattr(self, f"keys_{number}"), getattr(self, f"values_{number}")
            layer.cumulative_length = length.clone()
            layer.__class__ = kind
            for name, value in values.items():
                setattr(layer, name, value)
        return cache

    @torch.no_grad()
    def prefill(self, tokens, length):
        """Reads a prompt, the first `length` of the tokens. Returns the next one."""
        return self.after_prompt(tokens, length, self.cache(torch.zeros_like(length)))

    @torch.no_grad()
    def prefill_slot(self, tokens, length, slot):
        """The same for the text of a slot."""
        return self.after_prompt(tokens, length, self.cache(torch.zeros_like(length), Slot, slot=slot))

    def after_prompt(self, tokens, length, cache):
        logits = self.model(tokens, past_key_values=cache, use_cache=True).logits
        return {"next": logits.index_select(1, length - 1)[:, 0].argmax(-1)}

    @torch.no_grad()
    def decode(self, token, position):
        """Reads one more token, which stands at `position`. Returns the next one."""
        logits = self.model(token[None], position_ids=position[None], past_key_values=self.cache(position), use_cache=True).logits
        return {"next": logits[:, 0].argmax(-1)}

    @torch.no_grad()
    def decode_slots(self, token, position, slot):
        """The same for the texts of some slots."""
        mask = (torch.arange(self.model.config.n_positions, device=position.device) <= position[:, None])[:, None, None]
        cache = self.cache(position[:1], Slots, slots=slot, positions=position)
        logits = self.model(token[:, None], position_ids=position[:, None], attention_mask=mask, past_key_values=cache, use_cache=True).logits
        return {"next": logits[:, 0].argmax(-1)}


def make_model():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=500, n_positions=POSITIONS, n_embd=64, n_layer=2, n_head=4, initializer_range=0.2,
                        bos_token_id=0, eos_token_id=None)  # fmt: skip
    return GPT2LMHeadModel(config).to("ltc").eval()


def export(model, slots=1):
    generator = Generator(model, slots)
    tokens = torch.arange(PROMPT)[None] % model.config.vocab_size
    length, first, metadata = torch.tensor([PROMPT]), torch.ones(slots, dtype=torch.int64), {"max_positions": str(model.config.n_positions)}
    if slots == 1:
        archive = ltc.export(generator.prefill, (tokens, length), metadata=metadata)
        archive.add(generator.decode, (first, length))
    else:
        archive = ltc.export(generator.prefill_slot, (tokens, length, torch.tensor([0])), name="prefill", metadata=metadata)
        archive.add(generator.decode_slots, (first, length.repeat(slots), torch.arange(slots)), name="decode",
                    dynamic_shapes=dict.fromkeys(("token", "position", "slot"), {0: torch.export.Dim("texts", max=slots)}))  # fmt: skip
    return archive


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive")
    parser.add_argument("--slots", type=int, default=1, help="texts that are generated side by side; default: 1")
    arguments = parser.parse_args()
    export(make_model(), arguments.slots).save(arguments.archive)
    print(f"{arguments.archive} is written: prompts of up to {PROMPT} tokens, texts of up to {POSITIONS}")


if __name__ == "__main__":
    main()
