#!/usr/bin/env python3
"""Hugging Face's Trainer on a small GPT-2 with random weights. No line names a device: alone and under torchrun, Trainer chooses it."""

import argparse
import tempfile
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import ltc  # noqa: F401  makes the device known to PyTorch and to Trainer

VOCABULARY, LENGTH = 50, 16
SIZES = dict(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2)
DROPOUT = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)


def sequences(count):
    """Numbers that grow by 1, 2 or 3, modulo the size of the vocabulary, from a random start."""
    generator = torch.Generator().manual_seed(1)
    start, stride = (torch.randint(low, high, (count, 1), generator=generator) for low, high in ((0, VOCABULARY), (1, 4)))
    return [{"input_ids": row, "labels": row} for row in (start + stride * torch.arange(LENGTH)) % VOCABULARY]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="Trainer's use_cpu: train on the CPU instead")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--losses", metavar="FILE", type=Path, help="write the loss of each step, one per line, at the end")
    args = parser.parse_args()

    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(**SIZES, **DROPOUT))
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=args.steps, per_device_train_batch_size=16, learning_rate=3e-3, logging_steps=1,
        save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=args.cpu,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=sequences(1024))
    trainer.train()
    if trainer.is_world_process_zero():
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        print(f"device {trainer.accelerator.device}, ranks {trainer.accelerator.num_processes}, loss {float(losses[0]):.4f} to {float(losses[-1]):.4f}")
        if args.losses:
            args.losses.write_text("".join(f"{loss}\n" for loss in losses))


if __name__ == "__main__":
    main()
