#!/usr/bin/env python3
"""Trains the network of the classic MNIST example on handwritten digits, on device ltc or on the CPU."""

import argparse
import os
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Adadelta
from torch.optim.lr_scheduler import StepLR

import idx

TEST_BATCH = 1000


class Net(nn.Module):
    """Log-probabilities of the ten digits for images of 1 x 28 x 28."""

    def __init__(self, dropout=True):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = nn.Dropout(0.25 if dropout else 0.0)
        self.dropout2 = nn.Dropout(0.5 if dropout else 0.0)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(self.dropout2(x)), dim=1)


class Progress:
    """A bar on stderr where that is a terminal; the line of each finished epoch everywhere, unless quiet."""

    def __init__(self, epochs, steps, quiet):
        self._epochs = epochs
        self._steps = steps
        self._quiet = quiet
        self._bar = sys.stderr.isatty() and not quiet

    def step(self, epoch, done):
        if self._bar:
            filled = 30 * done // self._steps
            bar = "#" * filled + "." * (30 - filled)
            print(f"\repoch {epoch}/{self._epochs} [{bar}] {done}/{self._steps}", end="", file=sys.stderr, flush=True)

    def epoch(self, epoch, loss, accuracy):
        if self._bar:
            print("\r\033[K", end="", file=sys.stderr)
        if not self._quiet:
            print(f"epoch {epoch}/{self._epochs}  loss {loss:.4f}  test accuracy {accuracy:.1f} %", file=sys.stderr, flush=True)


class Training:
    """A model with all that changes while it is trained; `save` and `resume` carry all of it through a file.

    `ltc` is the module of that name, or None on a device that runs each op at once.
    """

    def __init__(self, args, ltc, images, labels):
        torch.manual_seed(args.seed)
        self.ltc = ltc
        self.device = torch.device(args.device)
        self.images, self.labels = images, labels
        self.batch_size = args.batch_size
        self.steps_per_epoch = len(images) // args.batch_size
        self.model = Net(dropout=not args.no_dropout).to(self.device)
        self.optimizer = Adadelta(self.model.parameters(), lr=args.lr)
        self.scheduler = StepLR(self.optimizer, step_size=1, gamma=args.gamma)
        self.shuffle = torch.Generator().manual_seed(args.seed)  # of the CPU: every device sees the same batches
        self.epoch = 0
        self.steps = 0
        self.losses = []

    def batches(self):
        """Batches of one size in random order; the images left over are not used in this epoch."""
        order = torch.randperm(len(self.images), generator=self.shuffle)
        for chosen in order.split(self.batch_size)[: self.steps_per_epoch]:
            yield self.images[chosen], self.labels[chosen]

    def mark_step(self):
        if self.ltc:
            self.ltc.mark_step()

    def step(self, images, labels):
        """One training step; returns its loss without waiting for it."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.nll_loss(self.model(images.to(self.device)), labels.to(self.device))
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run_epoch(self, on_step, max_steps=None):
        """Trains one epoch, or until `max_steps` steps in all; returns the mean loss. Only that reading waits for the device."""
        total = torch.zeros(()).to(self.device)
        done = 0
        self.model.train()
        for images, labels in self.batches():
            if self.steps == max_steps:
                return total.item() / done
            loss = self.step(images, labels)
            total += loss
            self.mark_step()
            self.losses.append(loss)
            self.steps += 1
            done += 1
            on_step(done)
        self.scheduler.step()
        self.epoch += 1
        return total.item() / done

    @torch.no_grad()
    def accuracy(self, images, labels):
        """Percentage of the images that the model names correctly."""
        correct = torch.zeros((), dtype=torch.int64).to(self.device)
        self.model.eval()
        for x, y in zip(images.split(TEST_BATCH), labels.split(TEST_BATCH)):
            correct += (self.model(x.to(self.device)).argmax(1) == y.to(self.device)).sum()
            self.mark_step()
        return 100.0 * correct.item() / len(images)

    def save(self, path):
        """Replaces the file at `path` as a whole: a crash leaves the old one or the new one."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "epoch": self.epoch,
            "steps": self.steps,
            "shuffle": self.shuffle.get_state(),
            "rng": torch.get_rng_state(),
            "ltc_rng": torch.ltc.get_rng_state() if self.ltc else None,
        }
        partial = f"{path}.{os.getpid()}.partial"
        torch.save(state, partial)
        os.replace(partial, path)

    def resume(self, path):
        """Continues where `save` left off; the device may be another."""
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch, self.steps = state["epoch"], state["steps"]
        self.shuffle.set_state(state["shuffle"])
        torch.set_rng_state(state["rng"])
        if self.ltc and state["ltc_rng"] is not None:
            torch.ltc.set_rng_state(state["ltc_rng"])


def load(folder, split):
    """The images of one split as the network wants them, N x 1 x 28 x 28 and normalised, and their labels."""
    images, labels = idx.load(folder, split)
    images = images.unsqueeze(1).to(torch.get_default_dtype()) / 255
    if images.shape[-2:] != (28, 28):
        images = F.interpolate(images, size=(28, 28), mode="bilinear", align_corners=False)
    return (images - 0.1307) / 0.3081, labels


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["ltc", "lazy", "cpu"], default="ltc")
    parser.add_argument("--data", metavar="DIR", default=Path(__file__).parent / "data", help="folder of IDX files; MNIST's work too")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.9, help="factor of the learning rate after each epoch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-dropout", action="store_true")
    parser.add_argument("--double", action="store_true", help="in double precision: without dropout, devices agree for many steps")
    parser.add_argument("--steps", metavar="N", type=int, help="stop after N training steps")
    parser.add_argument("--losses", metavar="FILE", help="write the loss of each step, one per line, at the end")
    parser.add_argument("--checkpoint", metavar="FILE", help="save all state here after each epoch")
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint")
    parser.add_argument("--threads", metavar="N", type=int, help="threads of PyTorch's CPU kernels")
    parser.add_argument("--quiet", action="store_true", help="only the closing summary")
    args = parser.parse_args()
    if args.resume and not args.checkpoint:
        parser.error("--resume needs --checkpoint FILE")
    if args.batch_size < 1:
        parser.error(f"--batch-size {args.batch_size}: expected at least 1")
    return args


def prepare(args, ltc):
    """The training, at its start or resumed, and the test images and labels. Raises idx.DataError."""
    images, labels = load(args.data, "train")
    if len(images) < args.batch_size:
        raise idx.DataError(f"{args.data}: {len(images)} training images do not fill one batch of {args.batch_size}")
    training = Training(args, ltc, images, labels)
    if args.resume:
        if not Path(args.checkpoint).is_file():
            raise idx.DataError(f"{args.checkpoint}: no such checkpoint")
        training.resume(args.checkpoint)
    return training, load(args.data, "test")


def train(args, training, test):
    """Trains what is left to train; returns the final accuracy and the seconds spent in training steps."""
    progress = Progress(args.epochs, training.steps_per_epoch, args.quiet)
    seconds, accuracy = 0.0, None
    while training.epoch < args.epochs and (args.steps is None or training.steps < args.steps):
        epoch, start = training.epoch + 1, time.perf_counter()
        loss = training.run_epoch(lambda done: progress.step(epoch, done), args.steps)
        seconds += time.perf_counter() - start
        accuracy = training.accuracy(*test)
        progress.epoch(epoch, loss, accuracy)
        if args.checkpoint and training.epoch == epoch:
            training.save(args.checkpoint)
    return training.accuracy(*test) if accuracy is None else accuracy, seconds


def ltc_summary(metrics):
    """Lines that say how often graphs were compiled and found again, and which ops ran outside the plugin."""
    counts = {name: metrics.counter_value(name) for name in sorted(metrics.counter_names())}
    fallbacks = [f"{name} {count}" for name, count in counts.items() if name.startswith("aten::") and count]
    return [
        f"compiles {counts.get('UncachedCompile', 0)}, cache hits {counts.get('CachedCompile', 0)}",
        f"fallbacks {', '.join(fallbacks) or 'none'}",
    ]


def main():
    args = parse_args()
    ltc = None
    if args.device != "cpu":
        import ltc  # makes the device known to PyTorch
    if args.double:
        torch.set_default_dtype(torch.float64)
    if args.threads:
        torch.set_num_threads(args.threads)
    start = time.perf_counter()
    try:
        training, test = prepare(args, ltc)
    except idx.DataError as error:
        sys.exit(f"error: {error}")
    accuracy, train_seconds = train(args, training, test)
    if args.losses:
        Path(args.losses).write_text("".join(f"{loss.item():.9g}\n" for loss in training.losses))
    steps, seconds = len(training.losses), time.perf_counter() - start
    rate = f", {steps / train_seconds:.1f} steps/s in training" if steps else ""
    print(f"{steps} steps in {seconds:.1f} s{rate}")
    for line in ltc_summary(ltc.metrics) if ltc else []:
        print(line)
    print(f"test accuracy {accuracy:.1f} %")


if __name__ == "__main__":
    main()
