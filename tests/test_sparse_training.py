"""Training with sparse tensors, beside the CPU: graph networks with sparse adjacency, tables with sparse gradients."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ltc
from comparing import LTC, output_of
from test_sparse import LAYOUTS, assert_same, fallbacks

STEPS = 8


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        bound = 1 / math.sqrt(outputs)
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def forward(self, x, adjacency):
        return torch.spmm(adjacency, torch.mm(x, self.weight)) + self.bias


class GCN(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first, self.second = GraphConvolution(features, hidden), GraphConvolution(hidden, classes)

    def forward(self, x, adjacency):
        return F.log_softmax(self.second(F.relu(self.first(x, adjacency)), adjacency), dim=1)


def graph(nodes=40, edges=120, features=12, classes=4):
    indices = torch.randint(nodes, (2, edges))
    adjacency = torch.sparse_coo_tensor(indices, torch.rand(edges), (nodes, nodes), check_invariants=True)
    return torch.randn(nodes, features).relu(), adjacency, torch.randint(classes, (nodes,))


def compiles():
    ltc.wait_device_ops()
    return ltc.metrics.counter_value("UncachedCompile")


def train_gcn(device, layout, sparse_features):
    torch.manual_seed(0)
    x, adjacency, target = graph()
    x = x.to_sparse() if sparse_features else x
    x, adjacency, target = x.to(device), LAYOUTS[layout](adjacency).to(device), target.to(device)
    model = GCN(12, 16, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses, counts = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x, adjacency)[:20], target[:20])
        loss.backward()
        optimizer.step()
        ltc.mark_step()
        losses.append(loss.detach())
        counts.append(compiles())
    return [torch.stack(losses), *(p.detach() for p in model.parameters())], counts


@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_graph_network(layout, sparse_features, metrics):
    results, counts = train_gcn(LTC, layout, sparse_features)
    assert fallbacks() == {}
    assert counts[1] == counts[-1]  # the first step has no optimizer state yet
    for lazy, cpu in zip(results, train_gcn("cpu", layout, sparse_features)[0], strict=True):
        assert_same(lazy, cpu)


@pytest.mark.parametrize("backend", ["opencl", "minimal"])
def test_graph_network_on_other_plugins(backend):
    program = """
        import sys; sys.path.insert(0, "tests")
        import torch, ltc
        from test_sparse_training import train_gcn, LTC, fallbacks
        for layout in ("coo", "csr"):
            results, counts = train_gcn(LTC, layout, False)
            for lazy, cpu in zip(results, train_gcn("cpu", layout, False)[0]):
                torch.testing.assert_close(lazy.cpu(), cpu, rtol=1e-4, atol=1e-5)
            print(layout, counts[1] == counts[-1], fallbacks())
        """
    assert output_of(program, LTC_BACKEND=backend).splitlines() == ["coo True {}", "csr True {}"]


class Attention(nn.Module):
    """A layer of a graph attention network: weights of edges by a softmax over each row of a sparse matrix."""

    def __init__(self, features):
        super().__init__()
        self.project, self.score = nn.Linear(features, 8), nn.Linear(16, 1)

    def forward(self, x, edges):
        h = self.project(x)
        scores = F.leaky_relu(self.score(torch.cat([h[edges[0]], h[edges[1]]], dim=1))).squeeze(1)
        weights = torch.sparse_coo_tensor(edges, scores, (len(x), len(x)), is_coalesced=True)
        return torch.sparse.mm(torch.sparse.softmax(weights, dim=1), h)


def train_attention(device):
    torch.manual_seed(0)
    x, adjacency, _ = graph()
    x, edges = x.to(device), adjacency.coalesce().indices().to(device)
    model = Attention(12).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses, counts = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(x, edges).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        ltc.mark_step()
        counts.append(compiles())
    return [torch.stack(losses), *(p.detach() for p in model.parameters())], counts


def test_graph_attention(metrics):
    results, counts = train_attention(LTC)
    assert fallbacks()["_sparse_softmax"] == fallbacks()["_sparse_softmax_backward_data"] == STEPS
    assert counts[1] == counts[-1]
    for lazy, cpu in zip(results, train_attention("cpu")[0], strict=True):
        assert_same(lazy, cpu)


# ---- tables

OPTIMIZERS = {
    "SparseAdam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
    "SparseAdam_maximize": lambda p: torch.optim.SparseAdam(p, lr=0.01, maximize=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD_foreach": lambda p: torch.optim.SGD(p, lr=0.1, foreach=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adagrad_foreach": lambda p: torch.optim.Adagrad(p, lr=0.1, foreach=True),
}
TABLES = {
    "plain": lambda: nn.Embedding(40, 3, sparse=True),
    "padding": lambda: nn.Embedding(40, 3, sparse=True, padding_idx=2),
    "bag": lambda: nn.EmbeddingBag(40, 3, sparse=True, mode="mean"),
}


def train_table(device, make, optimizer, lookups=1, offsets=False):
    torch.manual_seed(0)
    table = make().to(device)
    optimizer = optimizer(list(table.parameters()))
    losses, counts = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = 0
        for _ in range(lookups):
            indices, target = torch.randint(40, (6, 3)), torch.randn(3)
            indices[0, 0] = 2
            loss = loss + (table(indices.to(device)) - target.to(device)).square().sum()
        loss.backward()
        optimizer.step()
        ltc.mark_step()
        losses.append(loss.detach())
        counts.append(compiles())
    return [torch.stack(losses), table.weight.detach()], counts


@pytest.mark.patch("sparse_optimizers")
@pytest.mark.parametrize("lookups", [1, 2])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_tables_with_sparse_gradients(name, table, lookups, metrics):
    """The host sees no value, however many rows a batch names."""
    results, counts = train_table(LTC, TABLES[table], OPTIMIZERS[name], lookups)
    assert fallbacks() == {}
    assert counts[1] == counts[-1]
    for lazy, cpu in zip(results, train_table("cpu", TABLES[table], OPTIMIZERS[name], lookups)[0], strict=True):
        assert_same(lazy, cpu)


def test_momentum_of_sparse_gradients(metrics):
    """Its buffer grows with each step; it never has more elements than the table has rows."""

    def momentum(parameters):
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)

    results, _ = train_table(LTC, TABLES["plain"], momentum)
    assert set(fallbacks()) == {"_coalesce"}
    for lazy, cpu in zip(results, train_table("cpu", TABLES["plain"], momentum)[0], strict=True):
        assert_same(lazy, cpu)


def test_a_gradient_is_as_on_the_cpu():
    def gradient(device, scale):
        torch.manual_seed(0)
        table = nn.Embedding(20, 3, sparse=True).to(device)
        table(torch.tensor([[1, 2, 1], [4, 0, 2]], device=device)).square().sum().backward()
        table(torch.tensor([1, 5], device=device)).sum().mul(scale).backward()
        return table.weight.grad

    lazy, cpu = gradient(LTC, 3), gradient("cpu", 3)
    assert lazy.layout == torch.sparse_coo and not lazy.is_coalesced()
    assert_same(lazy, cpu)
    assert_same(lazy.coalesce(), cpu.coalesce())


def test_a_table_is_never_made_dense():
    """Memory follows the rows that a batch names: a table of 128 MB has no gradient of that size."""
    table = nn.Embedding(500_000, 64, sparse=True).to(LTC)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    table(torch.tensor([1, 2, 1], device=LTC)).sum().backward()
    ltc.sync()
    assert table.weight.grad._values().shape == (3, 64)
    before = table.weight[:3, 0].tolist()
    optimizer.step()
    after = table.weight[:3, 0].tolist()
    assert after == pytest.approx([before[0], before[1] - 0.2, before[2] - 0.1])


def test_dense_optimizers_refuse_sparse_gradients():
    table = nn.Embedding(5, 3, sparse=True).to(LTC)
    table(torch.tensor([1, 2], device=LTC)).sum().backward()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        torch.optim.Adam(table.parameters()).step()
    layer = nn.Linear(2, 2).to(LTC)
    layer(torch.ones(2, device=LTC)).sum().backward()
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        torch.optim.SparseAdam(layer.parameters()).step()


@pytest.mark.parametrize("index", [[0, 4], [0, 9], [-1, 0]])
def test_rows_that_are_not_there_change_nothing(index):
    """Rows are added in place; the indices are looked at before that, for each size of table."""
    large, small, other = (torch.ones(rows, 2) for rows in (6, 4, 6))
    tables = [table.to(LTC) for table in (large, small, other)]
    ltc.sync()
    places, source = torch.tensor(index).to(LTC), torch.ones(2, 2, device=LTC)
    with pytest.raises(RuntimeError, match=r"index -?\d is out of bounds for dimension 0 with size [46]"):
        for table in tables:
            table.index_add_(0, places, source)
        ltc.mark_step()
        tables[1].cpu()
    assert [table.shape for table in tables] == [(6, 2), (4, 2), (6, 2)]
    assert tables[1].tolist() == small.tolist()
    assert (tables[1].index_add_(0, torch.tensor([1, 1]).to(LTC), source)).tolist() == [[1, 1], [3, 3], [1, 1], [1, 1]]
