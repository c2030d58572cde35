#!/usr/bin/env python3
"""Data parallel training of the digits sample's network in the processes that torchrun starts, with a checkpoint after each epoch."""

import argparse
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import ltc  # noqa: F401  makes the device known to PyTorch

DIGITS = Path(__file__).resolve().parent.parent / "digits"
sys.path.insert(0, str(DIGITS))
from train import Net, load  # noqa: E402

BATCH = 64  # of each process
LEARNING_RATE, MOMENTUM = 0.01, 0.9
KILLED_AT = 5  # step of the epoch


class Training:
    """One rank's share of the training: a replica of the model, and its part of each epoch's images."""

    def __init__(self, device):
        torch.manual_seed(1)
        self.device = torch.device(device)
        self.model = DistributedDataParallel(Net(dropout=False).to(self.device))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
        images = TensorDataset(*load(DIGITS / "data", "train"))
        self.sampler = DistributedSampler(images, seed=1, drop_last=True)
        self.batches = DataLoader(images, BATCH, sampler=self.sampler, drop_last=True)
        self.epoch = 0
        self.losses = []  # of each step, the mean of all ranks

    def run_epoch(self, on_step=lambda step: None):
        """Trains one epoch. The loop does not wait for the device: the losses are read once, behind it."""
        self.sampler.set_epoch(self.epoch)
        losses = []
        for step, (images, labels) in enumerate(self.batches):
            on_step(step)
            self.optimizer.zero_grad()
            loss = F.nll_loss(self.model(images.to(self.device)), labels.to(self.device))
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        mean = torch.stack(losses)
        dist.all_reduce(mean)
        self.losses += (mean / dist.get_world_size()).tolist()
        self.epoch += 1

    def state(self):
        """All that changes while the model is trained; equal in all ranks."""
        return {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": self.epoch, "losses": self.losses}

    def load_state(self, state):
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.losses = state["epoch"], state["losses"]


def save(state, path):
    """Replaces the file as a whole: a process that is killed leaves the old one or the new one."""
    partial = f"{path}.partial"
    torch.save(state, partial)
    os.replace(partial, path)


def die_at(step):
    if step == KILLED_AT:
        os.kill(os.getpid(), signal.SIGKILL)


def add_arguments(parser):
    parser.add_argument("--device", choices=["ltc", "cpu"], default="ltc")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--kill-in-epoch", metavar="N", type=int, help="the last rank kills itself in the middle of epoch N, unless it was resumed")
    parser.add_argument("--losses", metavar="FILE", help="write the loss of each step, one per line, at the end")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--checkpoint", metavar="FILE", type=Path, help="save all state here after each epoch; begin from there if it exists")
    args = parser.parse_args()

    dist.init_process_group("cpu:gloo,ltc:ltc")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    training = Training(args.device)
    is_resumed = args.checkpoint is not None and args.checkpoint.exists()
    if is_resumed:
        training.load_state(torch.load(args.checkpoint, map_location="cpu", weights_only=True))
    while training.epoch < args.epochs:
        is_killed = training.epoch + 1 == args.kill_in_epoch and rank == ranks - 1 and not is_resumed
        training.run_epoch(die_at if is_killed else lambda step: None)
        if rank == 0:
            print(f"epoch {training.epoch}/{args.epochs}  loss {training.losses[-1]:.4f}", flush=True)
            if args.checkpoint:
                save(training.state(), args.checkpoint)
    if rank == 0 and args.losses:
        Path(args.losses).write_text("".join(f"{loss!r}\n" for loss in training.losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
