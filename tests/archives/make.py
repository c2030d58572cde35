"""Makes an archive of the present format: `make.py FILE`. It has a training step with dropout, an inference, and a sample of each."""

import sys

import torch
from torch import nn

import ltc


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)).to("ltc")
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)

    def train(x, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def predict(x):
        model.eval()
        with torch.no_grad():
            scores = model(x)
        model.train()
        return scores

    batch = torch.randn(5, 4), torch.randint(0, 3, (5,))
    on_device = [tensor.to("ltc") for tensor in batch]
    train(*on_device).item()
    exported = ltc.export(train, tuple(on_device), state={"model": model, "optimizer": optimizer})
    exported.add(predict, (on_device[0],))
    exported.save(sys.argv[1])


main()
