"""Makes an archive of the present format: `make.py FILE`. It has a training step with dropout, an inference for batches of
any size, samples of both, and metadata."""

import sys
from pathlib import Path

import torch

import ltc

sys.path.insert(0, str(Path(__file__).parents[1]))
from comparing import to_device  # noqa: E402: it lies with the tests
from test_export import trained_net  # noqa: E402


def main():
    state, train, batch = trained_net()
    model, (x, labels) = state["model"], to_device(batch)

    def predict(x):
        model.eval()
        with torch.no_grad():
            scores = model(x)
        model.train()
        return scores

    exported = ltc.export(train, (x, labels), state=state, metadata={"classes": "3"})
    exported.add(predict, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch", min=1, max=64)}})
    exported.save(sys.argv[1])


main()
