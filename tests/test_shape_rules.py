"""Sizes and strides of dear ops, which are not asked from the CPU's kernels (core/torch/dispatch/shape_rules.cpp): those of the kernels."""

import itertools

import pytest
import torch

from comparing import LTC

aten = torch.ops.aten
FORMS = [torch.contiguous_format, torch.channels_last, "swapped"]


def zeros(sizes, form=torch.contiguous_format, dtype=torch.float32):
    """A tensor in a memory format if it has enough dims for it; "swapped" is dense and in none."""
    tensor = torch.zeros(sizes, dtype=dtype)
    if form == "swapped":
        return tensor.transpose(0, 1).contiguous().transpose(0, 1)
    if form == torch.channels_last and len(sizes) >= 4:
        return tensor.contiguous(memory_format=form if len(sizes) == 4 else torch.channels_last_3d)
    return tensor


def on_device(args):
    """With the strides that they have here; those in lists too."""
    if isinstance(args, torch.Tensor):
        return torch.empty_strided(args.shape, args.stride(), dtype=args.dtype, device=LTC)
    return [on_device(one) for one in args] if isinstance(args, (list, tuple)) else args


def geometries(results):
    results = [results] if isinstance(results, torch.Tensor) else results
    return [None if result is None else (result.dtype, result.shape, result.stride()) for result in results]


def assert_geometry(op, *args):
    """The CPU's, or an error where it has one. Returns its results."""
    try:
        expected = op(*args)
    except (RuntimeError, IndexError) as error:
        with pytest.raises(type(error)):
            op(*on_device(args))
        return None
    assert geometries(op(*on_device(args))) == geometries(expected)
    return expected


# Input, weight, then what is not 1, 0, 1, 1. Batches of one and of many, single channels, kernels of one, depthwise, three dims,
# one dim, none; then mistakes.
CONVOLUTIONS = [
    ((64, 1, 28, 28), (32, 1, 3, 3)),
    ((2, 32, 12, 12), (8, 32, 3, 3), {"stride": [2, 2], "padding": [1, 1]}),
    ((1, 3, 9, 7), (4, 3, 2, 3), {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]}),
    ((2, 8, 6, 6), (8, 8, 1, 1)),
    ((16, 8, 6, 6), (4, 8, 1, 1)),
    ((16, 8, 6, 6), (4, 8, 1, 1), {"stride": [2]}),
    ((3, 8, 6, 6), (8, 1, 3, 3), {"padding": [1], "groups": 8}),
    ((3, 8, 6, 6), (4, 4, 3, 3), {"padding": [1], "groups": 2}),
    ((3, 1, 1, 9), (5, 1, 1, 2)),
    ((4, 2, 1, 1), (3, 2, 1, 1)),
    ((2, 3, 5, 5, 5), (4, 3, 2, 2, 2)),
    ((2, 3, 9), (4, 3, 2)),
    ((2, 3, 9), (4, 3, 2), {"stride": [2], "padding": [1]}),
    ((2, 4, 9), (4, 1, 3), {"groups": 4, "padding": [1]}),
    ((1, 3, 9), (4, 3, 1)),
    ((2, 1, 9), (1, 1, 3)),
    ((2, 3, 1), (4, 3, 1)),
    ((0, 3, 5, 5), (4, 3, 2, 2)),
    ((2, 3, 2, 2), (4, 3, 3, 3)),
    ((2, 5, 8, 8), (4, 3, 3, 3)),
    ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": [-1]}),
    ((2, 3, 8, 8), (4, 3, 3, 3), {"stride": [0]}),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("input, weight, options", [(*case, {})[:3] for case in CONVOLUTIONS])
def test_convolution(input, weight, options, dtype):
    """With the one thread that these tests have, PyTorch computes kernels of one place by products of matrices."""
    options = {"stride": [1], "padding": [0], "dilation": [1], "groups": 1, **options}
    lists = options["stride"], options["padding"], options["dilation"], False, [0], options["groups"]
    for input_form, weight_form in itertools.product(FORMS, FORMS[:2]):
        x, w, bias = zeros(input, input_form, dtype), zeros(weight, weight_form, dtype), zeros(weight[:1], dtype=dtype)
        assert_geometry(aten.convolution, x, w, None, *lists)
        output = assert_geometry(aten.convolution, x, w, bias, *lists)
        if output is None:
            continue
        for gradient, mask in itertools.product((output, zeros(output.shape, dtype=dtype)), itertools.product((False, True), repeat=3)):
            assert_geometry(aten.convolution_backward, gradient, x, w, list(bias.shape), *lists, mask)
        assert_geometry(aten.convolution_backward, output, x, w, None, *lists, (True, True, False))


def test_convolution_of_mixed_types():
    lists = [1], [0], [1], False, [0], 1
    x, w = zeros((2, 3, 8, 8)), zeros((4, 3, 3, 3))
    for mixed in (x.double(), w, None), (x, w, torch.zeros(4).double()), (x, w.bfloat16(), None):
        assert_geometry(aten.convolution, *mixed, *lists)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(
    "sizes", [(4, 3), (4, 3, 5), (4, 3, 5, 5), (4, 1, 5, 5), (4, 3, 1, 1), (1, 3, 5, 5), (1, 1, 1, 1), (2, 3, 4, 4, 4), (0, 3, 2, 2)]
)
def test_relu_and_batch_norm(sizes, form):
    for dtype in torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool:
        assert_geometry(aten.relu, zeros(sizes, form, dtype))
    if 0 in sizes:  # PyTorch's own kernel divides by zero
        return
    channels = torch.ones(sizes[1])
    for dtype, training, count in itertools.product((torch.float32, torch.bfloat16), (True, False), (sizes[1], sizes[1] + 1)):
        x, running = zeros(sizes, form, dtype), torch.ones(count)
        assert_geometry(aten._native_batch_norm_legit_functional, x, channels, channels, running, running, training, 0.1, 1e-5)
        assert_geometry(aten._native_batch_norm_legit_functional, x, None, None, running, running, training, 0.1, 1e-5)
        for gradient, some in itertools.product((x, torch.zeros(sizes, dtype=dtype), torch.zeros((1,), dtype=dtype).expand(sizes)), (True, False)):
            assert_geometry(aten.native_batch_norm_backward, gradient, x, channels, channels, channels, channels, channels, training,
                            1e-5, (some, True, some))  # fmt: skip


# Queries, keys and values of these sizes, each in row-major order, with positions before heads, and positions first.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [((2, 3, 5, 8), (2, 3, 7, 8)), ((1, 1, 4, 8), (1, 1, 4, 8)), ((2, 3, 1, 8), (2, 3, 6, 8))])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3), (0, 1, 3, 2)])
def test_attention(sizes, order, dtype):
    def laid_out(size):
        back = [order.index(dim) for dim in range(4)]
        return torch.zeros(size, dtype=dtype).permute(order).contiguous().permute(back)

    query, key = map(laid_out, sizes)
    part = torch.cat([query] * 3, -1)[..., : query.shape[-1]]  # of a projection to all three at once
    by_position = part.transpose(1, 2).contiguous().transpose(1, 2)
    for q, masked in itertools.product((query, query[:, :, :1].expand(query.shape), part, by_position), (False, True)):
        mask = torch.zeros(q.shape[2], key.shape[2], dtype=dtype) if masked else None
        results = assert_geometry(lambda *args: aten._scaled_dot_product_flash_attention_for_cpu(*args[:3], attn_mask=args[3]),
                                  q, key, key, mask)  # fmt: skip
        if results is None:
            continue
        for gradient in results[0], torch.zeros(q.shape, dtype=dtype), torch.zeros((1,), dtype=dtype).expand(q.shape):
            assert_geometry(
                lambda *args: aten._scaled_dot_product_flash_attention_for_cpu_backward(*args[:6], 0.0, False, attn_mask=args[6]),
                gradient, q, key, key, *results, mask,
            )  # fmt: skip


def test_attention_of_other_sizes():
    """Only mistakes that PyTorch's kernel looks for; others it reads beyond the end with."""
    query = zeros((2, 4, 5, 8))
    for key, value in ((2, 4, 7, 6), (2, 4, 7, 6)), ((2, 4, 7, 8), (2, 4, 7, 6)), ((4, 5, 8), (4, 5, 8)):
        assert_geometry(aten._scaled_dot_product_flash_attention_for_cpu, query, zeros(key), zeros(value))
    for mask in (5, 5), (2, 4, 5, 5), (2, 1, 5, 5), (1, 5), (4, 5), (5, 6):
        assert_geometry(lambda *args: aten._scaled_dot_product_flash_attention_for_cpu(*args[:3], attn_mask=args[3]),
                        query, query, query, zeros(mask))  # fmt: skip


@pytest.mark.parametrize("mask", [(1, 5), (4, 1), (1, 1), (2, 1, 4, 5), (1, 3, 4, 5), (1, 1, 1, 5), (2, 1, 4, 1), (4, 5), (2, 3, 4, 5)], ids=str)
def test_attention_with_a_mask_that_broadcasts(mask):
    query, key, mask = zeros((2, 3, 4, 8)), zeros((2, 3, 5, 8)), zeros(mask)
    results = assert_geometry(lambda *args: aten._scaled_dot_product_flash_attention_for_cpu(*args[:3], attn_mask=args[3]),
                              query, key, key, mask)  # fmt: skip
    assert_geometry(lambda *args: aten._scaled_dot_product_flash_attention_for_cpu_backward(*args[:6], 0.0, False, attn_mask=args[6]),
                    results[0], query, key, key, *results, mask)  # fmt: skip


SIZES = [(4, 3), (4, 3, 5), (4, 3, 5, 5), (4, 1, 5, 5), (4, 3, 1, 1), (1, 3, 5, 5), (3, 1), (1, 3), (1, 1), (0, 3), (3, 0)]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_where_and_masked_fill(sizes, form):
    x, dtypes = zeros(sizes, form), (torch.float32, torch.float64, torch.int64)
    others = [(), (1,), sizes, sizes[1:], (sizes[0], *[1] * (len(sizes) - 1)), (1, *sizes[1:]), (*sizes[:-1], 1), (7,), (2, *sizes)]
    for of_mask, other, dtype in itertools.product(others, others, dtypes):
        mask = torch.zeros(of_mask, dtype=torch.bool)
        assert_geometry(aten.where.self, mask, x, torch.zeros(other, dtype=dtype))
        assert_geometry(aten.where.self, mask, torch.zeros(other, dtype=dtype), x)
    for of_mask, dtype, value in itertools.product(others, dtypes, (1, 1.5, -float("inf"), 1j)):
        assert_geometry(aten.masked_fill.Scalar, x.to(dtype), torch.zeros(of_mask, dtype=torch.bool), value)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_abs_losses_and_softmax(sizes, form):
    for dtype in torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64:
        assert_geometry(aten.abs, zeros(sizes, form, dtype))
        assert_geometry(aten.hardswish, zeros(sizes, form, dtype))
        assert_geometry(aten.gelu, zeros(sizes, form, dtype))
        for gradient in zeros(sizes, form, dtype), zeros(sizes, dtype=dtype), zeros(sizes, form), zeros((1,), dtype=dtype):
            assert_geometry(aten.hardswish_backward, gradient, zeros(sizes, form, dtype))
            assert_geometry(lambda *both: aten.gelu_backward(*both, approximate="tanh"), gradient, zeros(sizes, form, dtype))
        for dim in -1, 0, 1, 9:
            assert_geometry(aten._safe_softmax, zeros(sizes, form, dtype), dim)
    assert_geometry(aten._safe_softmax, zeros(sizes, form, torch.bfloat16), 0, torch.float32)
    x = zeros(sizes, form)
    for reduction, gradient, target in itertools.product((0, 1, 2), ((), (1,), sizes), (x, zeros(sizes), x.double(), torch.zeros(1))):
        assert_geometry(aten.mse_loss_backward, torch.zeros(gradient), x, target, reduction)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_stack_and_pad(sizes, form):
    x = zeros(sizes, form)
    for others, dim in itertools.product(([x], [x, x], [x, zeros(sizes)], [x, x.double()], [x, x[:1]], []), (0, 1, -1, -2, 7)):
        assert_geometry(torch.stack, [x, *others], dim)
    for pad in (1, 1), (0, 0), (0, 2), (-1, 2), (1, 1, 1, 1), (0, 0, 1, 0), (1, 0, 0, 0, 1, 1), (1,), (-9, 0):
        assert_geometry(aten.constant_pad_nd, x, pad, 0)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("sizes, normalized", [((4, 3, 8), 1), ((4, 3, 8), 2), ((5,), 1), ((2, 3, 4, 4), 3), ((1, 1, 1), 1), ((0, 3), 1)])
def test_layer_norm(sizes, normalized, form):
    if form == "swapped" and len(sizes) == 1:
        return
    shape = sizes[-normalized:]
    for dtype, of_weight in itertools.product((torch.float32, torch.bfloat16), (torch.float32, torch.bfloat16)):
        x, weight = zeros(sizes, form, dtype), torch.ones(shape, dtype=of_weight)
        assert_geometry(aten.native_layer_norm, x, shape[1:] or (7,), None, None, 1e-5)
        for parameters in (weight, weight), (weight, None), (None, None):
            results = assert_geometry(aten.native_layer_norm, x, shape, *parameters, 1e-5)
            if results is None:
                continue
            expanded = torch.zeros((1,), dtype=dtype).expand(sizes)
            for gradient, mask in [(expanded, (True,) * 3), *((x, mask) for mask in itertools.product((True, False), repeat=3))]:
                assert_geometry(aten.native_layer_norm_backward, gradient, x, shape, *results[1:], *parameters, mask)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("sizes", [(4, 6), (4, 6, 5), (4, 6, 5, 5), (1, 6, 1, 1), (2, 6, 4, 4, 4), (4, 1, 3, 3)])
def test_group_norm(sizes, form):
    counts = (sizes[0], sizes[1], torch.Size(sizes[2:]).numel())
    for dtype, of_weight, groups in itertools.product((torch.float32, torch.bfloat16), (torch.float32, torch.bfloat16), (1, 3)):
        if sizes[1] % groups or dtype == torch.float32 != of_weight:  # which PyTorch's kernel does not look at
            continue
        x, weight = zeros(sizes, form, dtype), torch.ones(sizes[1], dtype=of_weight)
        for parameters in (weight, weight), (None, None):
            results = assert_geometry(aten.native_group_norm, x, *parameters, *counts, groups, 1e-5)
            if results is None:
                continue
            if form != torch.contiguous_format:  # PyTorch's own kernel crashes at some
                continue
            expanded = torch.zeros((1,), dtype=dtype).expand(sizes)
            wanted = itertools.product((True, False), *[(True, False) if parameters[0] is not None else (False,)] * 2)
            for gradient, mask in [(expanded, (True, False, False)), *((x, mask) for mask in wanted)]:
                assert_geometry(aten.native_group_norm_backward, gradient, x, *results[1:], parameters[0], *counts, groups, mask)


def test_gradients_of_pieces():
    for dtype in torch.float32, torch.bfloat16, torch.complex64:
        gradient = zeros((3, 4), "swapped", dtype)
        assert_geometry(aten.select_backward, gradient, (3, 5, 4), 1, 2)
        assert_geometry(aten.slice_backward, gradient, (3, 9), 1, 1, 9, 2)


# Steps, batch, features, hidden values.
LAYERS = [(4, 3, 5, 7), (1, 3, 5, 7), (4, 1, 5, 7), (2, 3, 1, 1)]


def layer_of(kind, sizes, dtype, *, bias=True, projection=None, packed=False):
    """The operands of a layer, in the order of its op, and the rows of its steps."""
    steps, batch, features, hidden = sizes
    gates, state = {"lstm": 4, "gru": 3, "rnn": 1}[kind] * hidden, projection or hidden
    batch_sizes = [max(batch - step, 1) for step in range(steps)]
    new = lambda *sizes: zeros(sizes, dtype=dtype)  # noqa: E731
    operands = [new(sum(batch_sizes), features) if packed else new(steps, batch, features), new(batch, state)]
    operands += [new(batch, hidden)] if kind == "lstm" else []
    operands += [new(gates, features), new(gates, state), *([new(gates), new(gates)] if bias else [None, None])]
    operands += [new(state, hidden) if projection else None] if kind == "lstm" and packed else []
    return operands, batch_sizes


def assert_geometry_of_layer(kind, operands, batch_sizes, gradients=lambda results: results):
    """Forward, with a reserve and without, and backward."""
    name = f"{'packed_' if batch_sizes else ''}{kind}_layer"
    order = [*(["tanh"] if kind == "rnn" else []), *([batch_sizes] if batch_sizes else []), True]
    for train in [[]] if kind == "rnn" else [[False], [True]]:
        results = assert_geometry(getattr(torch.ops.ltc, name), *operands, *order, *train)
    if results is not None:
        states = 2 if kind == "lstm" else 1
        kept = results[:1] if kind == "rnn" else results
        assert_geometry(getattr(torch.ops.ltc, name + "_backward"), *gradients(results[: 1 + states]), *operands, *kept, *order)


@pytest.mark.parametrize(("kind", "packed"), [("lstm", False), ("gru", False), ("lstm", True), ("gru", True), ("rnn", True)])
class TestRecurrentLayers:
    @pytest.mark.parametrize("sizes", LAYERS, ids=str)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
    @pytest.mark.parametrize("bias", [True, False])
    def test_geometry(self, kind, packed, sizes, dtype, bias):
        operands, batch_sizes = layer_of(kind, sizes, dtype, bias=bias, packed=packed)
        swapped = lambda results: [zeros(result.shape, "swapped", dtype) for result in results]  # noqa: E731
        some = lambda results: [None, *results[1:]]  # noqa: E731
        for gradients in (lambda results: results, swapped, some):
            assert_geometry_of_layer(kind, operands, batch_sizes if packed else None, gradients)

    def test_mistakes(self, kind, packed):
        operands, batch_sizes = layer_of(kind, LAYERS[0], torch.float32, packed=packed)
        for place, operand in enumerate(operands):
            if operand is not None and operand.dim() == 2:
                wrong = [*operands]
                wrong[place] = zeros((operand.shape[0] + 1, operand.shape[1]))
                assert_geometry_of_layer(kind, wrong, batch_sizes if packed else None)
        if packed:
            for wrong in ([3, 2, 2], [2, 3, 1, 1], [3, 2, 1, 1, 1], [3, 2, 1]):
                assert_geometry_of_layer(kind, operands, wrong)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_projections(dtype):
    assert_geometry_of_layer("lstm", *layer_of("lstm", LAYERS[0], dtype, projection=2, packed=True))


def test_a_function_that_is_none():
    operands, batch_sizes = layer_of("rnn", LAYERS[0], torch.float32, packed=True)
    assert assert_geometry(torch.ops.ltc.packed_rnn_layer, *operands, "sine", batch_sizes, False) is None
