#!/usr/bin/env python3
"""Writes an archive that trains the digits network: functions `train`, a step of a batch, and `predict`.

    python samples/digits_archive/export.py digits.ltc
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.optim import Adadelta

import ltc

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "digits"))
import idx
from train import Net

DATA = Path(__file__).resolve().parent.parent / "digits/data"
BATCH, TEST_BATCH = 64, 72


def normalise(images):
    """Bytes of images as the network wants them, N x 1 x 28 x 28."""
    images = images.unsqueeze(1).to(torch.float32) / 255
    return (F.interpolate(images, size=(28, 28), mode="bilinear", align_corners=False) - 0.1307) / 0.3081


class Training:
    """The network and its optimizer on device ltc, with the steps that go into the archive."""

    def __init__(self, dropout=True):
        torch.manual_seed(1)
        self.model = Net(dropout).to("ltc")
        self.optimizer = Adadelta(self.model.parameters(), lr=1.0, capturable=True)
        images, labels = idx.load(DATA, "train")
        self.images, self.labels = images, labels.to(torch.uint8)

    def batch(self, step):
        first = step % (len(self.images) // BATCH) * BATCH
        return self.images[first : first + BATCH], self.labels[first : first + BATCH]

    def train(self, images, labels):
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.nll_loss(self.model(normalise(images)), labels.long())
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def predict(self, images):
        self.model.eval()
        return self.model(normalise(images)).argmax(1)

    def step(self, number):
        images, labels = self.batch(number)
        return self.train(images.to("ltc"), labels.to("ltc")).item()

    def export(self):
        """After one step, in which the optimizer makes its state."""
        archive = ltc.export(self.train, self.batch(0), state={"model": self.model, "optimizer": self.optimizer})
        archive.add(self.predict, (self.images[:TEST_BATCH],))
        return archive


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: export.py ARCHIVE")
    training = Training()
    print(f"step 0 loss {training.step(0):.9g}")
    training.export().save(sys.argv[1])
    print(f"{sys.argv[1]} is written")


if __name__ == "__main__":
    main()
