"""Mixtures of experts as loops over the experts that were chosen: the sizes of every step are new, and nothing is compiled for them."""

import pytest
import torch
from torch import nn
import torch.nn.functional as F

from comparing import assert_close

EXPERTS, TOKENS, WIDTH, LAYERS, STEPS = 4, 40, 8, 2, 30


class Router(nn.Module):
    def __init__(self, chosen):
        super().__init__()
        self.chosen = chosen
        self.linear = nn.Linear(WIDTH, EXPERTS)

    def forward(self, x):
        weights, indices = self.linear(x).softmax(-1).topk(self.chosen)
        return weights / weights.sum(-1, keepdim=True), F.one_hot(indices, EXPERTS).permute(2, 1, 0)


class ModulePerExpert(nn.Module):
    """As Switch Transformers and NLLB have it: one choice, a module for each expert."""

    def __init__(self):
        super().__init__()
        self.router = Router(1)
        self.experts = nn.ModuleDict(
            {f"expert_{i}": nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)) for i in range(EXPERTS)})

    def forward(self, x):
        weights, mask = self.router(x)
        result = torch.zeros_like(x)
        for expert in torch.greater(mask.sum((-1, -2)), 0).nonzero():
            place, token = torch.where(mask[expert].squeeze(0))
            rows = x[None, token].reshape(-1, WIDTH)
            result.index_add_(0, token, self.experts[f"expert_{expert[0]}"](rows) * weights[token, place, None])
        return result


class StackedExperts(nn.Module):
    """As Mixtral, Qwen-MoE and DBRX have it: two choices, the experts' weights in one tensor."""

    def __init__(self):
        super().__init__()
        self.router = Router(2)
        self.up = nn.Parameter(torch.randn(EXPERTS, 2 * WIDTH, WIDTH) / 4)
        self.down = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) / 4)

    def forward(self, x):
        weights, mask = self.router(x)
        result = torch.zeros_like(x)
        for expert in torch.greater(mask.sum((-1, -2)), 0).nonzero():
            expert = expert[0]
            if expert == EXPERTS:
                continue
            place, token = torch.where(mask[expert])
            gate, up = F.linear(x[token], self.up[expert]).chunk(2, dim=-1)
            rows = F.linear(F.silu(gate) * up, self.down[expert]) * weights[token, place, None]
            result.index_add_(0, token, rows.to(result.dtype))
        return result


class Mixture(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer() for _ in range(LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(LAYERS))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = x + layer(norm(x))
        return x


def run(layer, device, trains, after_step=lambda: None):
    torch.manual_seed(0)
    model = Mixture(layer).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(STEPS):
        x, y = torch.randn(2, TOKENS, WIDTH, generator=generator).to(device)
        with torch.set_grad_enabled(trains):
            loss = F.mse_loss(model(x), y)
        if trains:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
        after_step()
    return losses, [parameter.detach().cpu() for parameter in model.parameters()]


@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("layer", [ModulePerExpert, StackedExperts])
def test_steps_of_new_sizes_compile_nothing(layer, trains, metrics):
    compiles = []
    ours = run(layer, "ltc", trains, lambda: compiles.append(metrics.counter_value("UncachedCompile")))
    fallbacks = {one["op"]: one["count"] for one in metrics.fallbacks()}
    theirs = run(layer, "cpu", trains)
    assert_close(torch.tensor(ours[0]), torch.tensor(theirs[0]), rtol=1e-4, atol=1e-5)
    for one, other in zip(ours[1], theirs[1]):
        assert_close(one, other, rtol=1e-3, atol=1e-4)
    segments = LAYERS * (EXPERTS + 1)  # programs of a forward pass: sizes are read once per layer and once per expert
    assert compiles[-1] < 3 * segments
    assert compiles[-1] - compiles[4] < 2 * segments  # a size that has come often is compiled
    assert metrics.counter_value("QuickCompile") + metrics.counter_value("SymbolicReuse") > 0
    assert fallbacks.keys() == {"aten::nonzero"}
    assert fallbacks["aten::nonzero"] <= STEPS * segments  # an expert that no token chose is passed over
