"""A program: what each op makes of a bad index, on the CPU and on the device. It prints a JSON object by case."""

import json

import torch
import torch.nn.functional as F

import ltc

N, WIDTH = 4, 3
BAD = {"too_large": N, "negative": -N - 1, "huge": 2**62}


def rows(device):
    return torch.arange(1.0, 1 + N * WIDTH).reshape(N, WIDTH).to(device)


def at(device, bad, good=1):
    """Two indices, the second of them bad."""
    return torch.tensor([good, bad]).to(device)


def of_last(bad):
    """No place along the last dim, which is shorter by one."""
    return bad if abs(bad) > N + 1 else bad - 1


def of_all(bad):
    """No place among all elements."""
    return bad if abs(bad) > N + 1 else 3 * bad


def wide(device, bad):
    return torch.tensor([[1, 0, 2], [0, bad, 1]]).to(device)


def ones(device, *sizes):
    return torch.full(sizes, 9.0).to(device)


def bag(x, indices, offsets, **how):
    return F.embedding_bag(torch.tensor(indices).to(x.device), x, torch.tensor(offsets).to(x.device), **how)


# Each reads or writes rows of x, of sizes [4, 3]; `bad` is no place along the dim that it indexes.
READS = {
    "index_select": lambda x, bad: x.index_select(0, at(x.device, bad)),
    "embedding": lambda x, bad: F.embedding(at(x.device, bad), x),
    "embedding_padding": lambda x, bad: F.embedding(at(x.device, bad), x, padding_idx=0),
    "embedding_max_norm": lambda x, bad: F.embedding(at(x.device, bad), x.detach().clone(), max_norm=1.0),
    "gather": lambda x, bad: x.gather(0, wide(x.device, bad)),
    "take": lambda x, bad: x.take(at(x.device, of_all(bad))),
    "take_along_dim": lambda x, bad: torch.take_along_dim(x, wide(x.device, bad), 0),
    "index": lambda x, bad: x[at(x.device, bad)],
    "index_last_dim": lambda x, bad: x[:, at(x.device, bad)],
    "index_first_of_two": lambda x, bad: x[at(x.device, bad), at(x.device, 2)],
    "index_second_of_two": lambda x, bad: x[at(x.device, 2), at(x.device, of_last(bad))],
    "index_of_three": lambda x, bad: x.reshape(2, 2, 3)[at(x.device, 1), at(x.device, bad), at(x.device, 0)],
    "index_apart": lambda x, bad: x.reshape(2, 2, 3)[at(x.device, 1), :, at(x.device, bad)],
    "index_after_compute": lambda x, bad: (x * 2)[at(x.device, bad), at(x.device, 2)] + 1,
    "embedding_bag_sum": lambda x, bad: bag(x, [0, bad, 1], [0, 2], mode="sum"),
    "embedding_bag_mean": lambda x, bad: bag(x, [0, bad, 1], [0, 2], mode="mean"),
    "embedding_bag_max": lambda x, bad: bag(x, [0, bad, 1], [0, 2], mode="max"),
    "cross_entropy": lambda x, bad: F.cross_entropy(x.t(), torch.tensor([1, bad, 2]).to(x.device)),
    "cross_entropy_weighted": lambda x, bad: F.cross_entropy(
        x.t(), torch.tensor([1, bad, 2]).to(x.device), weight=ones(x.device, N)
    ),
    "cross_entropy_smooth": lambda x, bad: F.cross_entropy(x.t(), torch.tensor([1, bad, 2]).to(x.device), label_smoothing=0.1),
    "nll_loss": lambda x, bad: F.nll_loss(x.t(), torch.tensor([1, bad, 2]).to(x.device), reduction="sum"),
    "nll_loss_2d": lambda x, bad: F.nll_loss(x.reshape(1, N, 1, 3), torch.tensor([[[1, bad, 2]]]).to(x.device)),
    "nll_loss_unreduced": lambda x, bad: F.nll_loss(x.t(), torch.tensor([1, bad, 2]).to(x.device), reduction="none"),
    "multi_margin_loss": lambda x, bad: F.multi_margin_loss(x.t(), torch.tensor([1, bad, 2]).to(x.device)),
}
WRITES = {
    "scatter": lambda x, bad: x.scatter(0, wide(x.device, bad), ones(x.device, 2, 3)),
    "scatter_value": lambda x, bad: x.scatter(0, wide(x.device, bad), 9.0),
    "scatter_add": lambda x, bad: x.scatter_add(0, wide(x.device, bad), ones(x.device, 2, 3)),
    "scatter_multiply": lambda x, bad: x.scatter(0, wide(x.device, bad), ones(x.device, 2, 3), reduce="multiply"),
    "scatter_amax": lambda x, bad: x.scatter_reduce(0, wide(x.device, bad), ones(x.device, 2, 3), "amax"),
    "scatter_mean": lambda x, bad: x.scatter_reduce(0, wide(x.device, bad), ones(x.device, 2, 3), "mean"),
    "index_put": lambda x, bad: x.index_put((at(x.device, bad),), ones(x.device)),
    "index_put_of_two": lambda x, bad: x.index_put((at(x.device, bad), at(x.device, 2)), ones(x.device)),
    "index_put_second": lambda x, bad: x.index_put((at(x.device, 2), at(x.device, of_last(bad))), ones(x.device, 2)),
    "index_put_accumulate": lambda x, bad: x.index_put(
        (at(x.device, bad), at(x.device, 2)), ones(x.device, 2), accumulate=True
    ),
    "index_add": lambda x, bad: x.index_add(0, at(x.device, bad), ones(x.device, 2, 3)),
    "index_add_alpha": lambda x, bad: x.index_add(0, at(x.device, bad), ones(x.device, 2, 3), alpha=2),
    "index_copy": lambda x, bad: x.index_copy(0, at(x.device, bad), ones(x.device, 2, 3)),
    "index_fill": lambda x, bad: x.index_fill(0, at(x.device, bad), 9.0),
    "index_reduce": lambda x, bad: x.index_reduce(0, at(x.device, bad), ones(x.device, 2, 3), "amax"),
    "put": lambda x, bad: x.put(at(x.device, of_all(bad)), ones(x.device, 2)),
    "put_accumulate": lambda x, bad: x.put(at(x.device, of_all(bad)), ones(x.device, 2), accumulate=True),
    "setitem": lambda x, bad: set_item(x, (at(x.device, 2), at(x.device, bad))),
    "one_hot": lambda x, bad: F.one_hot(at(x.device, bad), N),
    "max_unpool2d": lambda x, bad: F.max_unpool2d(
        ones(x.device, 1, 1, 1, 2), torch.tensor([[[[1, bad]]]]).to(x.device), (1, 2), output_size=(1, 4)
    ),
    "rank_0_index_select": lambda x, bad: x[0, 0].index_select(0, torch.tensor([bad]).to(x.device)),
    "rank_0_scatter": lambda x, bad: x[0, 0].scatter(0, torch.tensor(bad).to(x.device), 9.0),
    "rank_0_index_fill": lambda x, bad: x[0, 0].index_fill(0, torch.tensor([bad]).to(x.device), 9.0),
    "rank_0_index_copy": lambda x, bad: x[0, 0].index_copy(0, torch.tensor([bad]).to(x.device), ones(x.device, 1)),
    "rank_0_index_add": lambda x, bad: x[0, 0].index_add(0, torch.tensor([bad]).to(x.device), ones(x.device, 1)),
}
# Numbers that are bad in their own way, and some that only look so.
SINGLE = {
    "offsets_beyond": lambda x: bag(x, [0, 1, 2], [0, 7], mode="sum"),
    "offsets_begin_late": lambda x: bag(x, [0, 1, 2], [1, 2], mode="sum"),
    "offsets_negative": lambda x: bag(x, [0, 1, 2], [-1, 2], mode="mean"),
    "offsets_beyond_max": lambda x: bag(x, [0, 1, 2], [0, 4], mode="max"),
    "offsets_without_indices": lambda x: F.embedding_bag(
        torch.zeros(0, dtype=torch.int64).to(x.device), x, torch.tensor([0, 2]).to(x.device), mode="sum"
    ),
    "offsets_last_beyond": lambda x: bag(x, [0, 1, 2], [0, 1, 4], mode="sum", include_last_offset=True),
    "multilabel_below": lambda x: F.multilabel_margin_loss(x[:1], torch.tensor([[1, -5, 0]]).to(x.device)),
    "multilabel_beyond": lambda x: F.multilabel_margin_loss(x[:1], torch.tensor([[1, 3, 0]]).to(x.device)),
    "multilabel_behind_the_end": lambda x: F.multilabel_margin_loss(x[:1], torch.tensor([[1, -1, 7]]).to(x.device)),
    "multilabel_good": lambda x: F.multilabel_margin_loss(x[:1], torch.tensor([[1, -1, 0]]).to(x.device)),
    "index_least": lambda x: x[at(x.device, 1), at(x.device, -(2**63))],
    "index_put_least": lambda x: x.index_put((at(x.device, -(2**63)), at(x.device, 1)), ones(x.device)),
    "index_from_the_end": lambda x: x[at(x.device, -4), at(x.device, -3)],
    "index_put_from_the_end": lambda x: x.index_put((at(x.device, -4), at(x.device, -3)), ones(x.device)),
    "ignored_label": lambda x: F.cross_entropy(x.t(), torch.tensor([1, -100, 2]).to(x.device)),
    "ignored_label_beyond": lambda x: F.cross_entropy(x.t(), torch.tensor([1, 255, 2]).to(x.device), ignore_index=255),
}


def set_item(x, places):
    x = x.clone()
    x[places] = 9.0
    return x


def grids():
    """grid_sample at places that are no numbers."""
    places = torch.tensor([[float("nan"), 0.0, 0.1], [0.3, float("nan"), 0.1], [float("inf"), 0.1, 0.1], [0.2, -0.4, 0.1]])
    for dims, mode in ((2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")):
        for padding in ("zeros", "border", "reflection"):

            def sample(x, dims=dims, mode=mode, padding=padding):
                image = x.reshape(1, 1, *(2,) * (dims - 2), 12 // 3 // 2 ** (dims - 2), 3)
                grid = places[:, :dims].reshape(1, *(1,) * (dims - 1), 4, dims).to(x.device)
                return F.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=False)

            yield f"grid_sample_{dims}d_{mode}_{padding}", sample


def outcome(run, device):
    x = rows(device)
    try:
        return {"value": run(x).cpu().tolist()}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def gradient(run, device):
    """The gradient of x, where nobody reads the forward's result."""
    x = rows(device).requires_grad_()
    try:
        run(x).sum().backward()
        return {"value": x.grad.cpu().tolist()}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def cases():
    for name, op in (READS | WRITES).items():
        for kind, bad in BAD.items():
            yield f"{name}-{kind}", lambda x, op=op, bad=bad: op(x, bad), name in READS
    for name, op in (SINGLE | dict(grids())).items():
        yield name, op, False


if __name__ == "__main__":
    found = {}
    for name, run, backwards in cases():
        found[name] = {"cpu": outcome(run, "cpu"), "device": outcome(run, "ltc")}
        if backwards:
            found[name] |= {"cpu_gradient": gradient(run, "cpu"), "gradient": gradient(run, "ltc")}
    print(json.dumps(found))
