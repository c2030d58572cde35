"""Cost of a collective in seconds: from its bytes, its number of ranks and the links between them.

A message of b bytes takes alpha + b / beta on a link. Each algorithm below is a number of such messages in a row. Sources:

- R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH. International Journal of High Performance
  Computing Applications 19(1), 2005: trees, recursive halving and doubling, rings.
- P. Patarasuk, X. Yuan: Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations. Journal of Parallel and Distributed Computing 69(2), 2009:
  the ring of all_reduce.

The time to add numbers is part of 1 / beta where the link is fitted to measured times, and left out elsewhere.
"""

import math
from dataclasses import dataclass, replace

import numpy


@dataclass(frozen=True)
class Link:
    """alpha: seconds per message. beta: bytes per second. is_shared: all ranks of a node send through one link of this kind."""

    alpha: float
    beta: float
    is_shared: bool = False


@dataclass(frozen=True)
class Network:
    """Ranks 0 .. per_node - 1 are the first node, and so on."""

    name: str
    within: Link
    between: Link
    per_node: int = 8


# Nominal rates per direction. The latencies are of the usual order for each kind; neither was measured here.
NVLINK, PCIE = Link(3e-6, 450e9), Link(8e-6, 25e9)
NETWORKS = [
    Network("NVLink, InfiniBand NDR", NVLINK, Link(5e-6, 50e9)),  # a network card for each rank
    Network("PCIe, 100 Gb Ethernet", PCIE, Link(25e-6, 12.5e9, is_shared=True)),
    Network("PCIe, 10 Gb Ethernet", PCIE, Link(40e-6, 1.25e9, is_shared=True)),
]


def one_link(name, link):
    """A network whose ranks are all in one node."""
    return Network(name, link, link, per_node=1 << 30)


def rounds(ranks):
    """Rounds of a binomial tree, or of recursive doubling."""
    return math.ceil(math.log2(ranks))


# (messages in a row, bytes in a row as a multiple of the whole) of n ranks. The whole is the result of all_gather and the input of reduce_scatter.
RING = {
    "all_reduce": lambda n: (2 * (n - 1), 2 * (n - 1) / n),
    "all_gather": lambda n: (n - 1, (n - 1) / n),
    "reduce_scatter": lambda n: (n - 1, (n - 1) / n),
    "all_to_all": lambda n: (n - 1, (n - 1) / n),
    "broadcast": lambda n: (rounds(n) + n - 1, 2 * (n - 1) / n),  # a scatter by a tree, then the ring of all_gather
}
TREE = {
    "all_reduce": lambda n: (2 * rounds(n), 2 * rounds(n)),  # a reduction to rank 0, then a broadcast
    "broadcast": lambda n: (rounds(n), rounds(n)),
}
HALVING = {
    "all_reduce": lambda n: (2 * rounds(n), 2 * (n - 1) / n),  # Rabenseifner's
    "all_gather": lambda n: (rounds(n), (n - 1) / n),
    "reduce_scatter": lambda n: (rounds(n), (n - 1) / n),
    "all_to_all": lambda n: (rounds(n), rounds(n) / 2),
    "broadcast": lambda n: (2 * rounds(n), 2 * (n - 1) / n),
}
# How many ranks of a node send through its link to other nodes at the same time: one of a ring and of a tree, all when ranks pair up.
ALGORITHMS = {"ring": (RING, False), "tree": (TREE, False), "halving": (HALVING, True)}
KINDS = list(RING)


def on_link(table, kind, size, ranks, link):
    if ranks == 1:
        return 0.0
    messages, share = table[kind](ranks)
    return messages * link.alpha + share * size / link.beta


def flat(algorithm, kind, size, ranks, network):
    """The algorithm over all ranks. Between nodes, the slower kind of link decides each round."""
    table, all_send = ALGORITHMS[algorithm]
    if ranks <= network.per_node:
        return on_link(table, kind, size, ranks, network.within)
    link = network.between
    if link.is_shared and all_send:
        link = replace(link, beta=link.beta / network.per_node)
    return on_link(table, kind, size, ranks, link)


def in_two_levels(kind, size, ranks, network):
    """all_reduce: reduce_scatter within each node, all_reduce of each part between nodes, all_gather within. The others are its halves."""
    local, nodes = network.per_node, ranks // network.per_node
    part = size if network.between.is_shared else size / local  # through a shared link go the parts of all ranks
    ring = "all_reduce" if kind == "all_reduce" else "all_gather"
    inside = on_link(RING, ring, size, local, network.within)
    return inside + min(on_link(table, ring, part, nodes, network.between) for table in (RING, HALVING))


def costs(kind, size, ranks, network):
    """Seconds by the name of the algorithm, for `size` bytes."""
    result = {name: flat(name, kind, size, ranks, network) for name, (table, _) in ALGORITHMS.items() if kind in table}
    if kind in ("all_reduce", "all_gather", "reduce_scatter") and ranks > network.per_node and ranks % network.per_node == 0:
        result["two levels"] = in_two_levels(kind, size, ranks, network)
    return result


def cost(kind, size, ranks, network, algorithm="best"):
    """Seconds of the cheapest algorithm, as libraries choose it, or of the one named where it knows the collective, else of the ring."""
    if ranks == 1:
        return 0.0
    known = costs(kind, size, ranks, network)
    return min(known.values()) if algorithm == "best" else known.get(algorithm, known["ring"])


def slowdown(ranks, cores):
    """How much longer each rank works where several share a core."""
    return max(1.0, ranks / cores)


def crowded(link, ranks, cores):
    """The link between processes of one machine. A message wakes a process, which must wait for its core; bytes wait for the memory."""
    return replace(link, alpha=link.alpha * slowdown(ranks, cores))


def fit_link(samples, cores):
    """The link under which a ring of all_reduce, crowded, takes the times of `samples`, which are (ranks, bytes, seconds). Errors count relative to
    the time."""
    rows = []
    for ranks, size, seconds in samples:
        messages, share = RING["all_reduce"](ranks)
        rows.append(numpy.array([messages * slowdown(ranks, cores), share * size]) / seconds)
    alpha, per_byte = numpy.linalg.lstsq(numpy.array(rows), numpy.ones(len(rows)), rcond=None)[0]
    return Link(float(max(alpha, 0.0)), float(1 / max(per_byte, 1e-15)))
