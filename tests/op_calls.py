"""Random calls of ops by their schemas: operands of few sizes and many layouts, scalars and 0-dim tensors in every place."""

import random

import torch

from ltc import _C

SIZES = [(), (1,), (3,), (0,), (2, 3), (3, 2), (2, 0), (1, 3), (2, 3, 4), (1, 2, 4, 4), (2, 2, 4, 4, 4)]
DTYPES = [torch.float32, torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.bfloat16, torch.complex64, torch.uint8]
PLACEMENT = {"dtype", "layout", "device", "pin_memory", "memory_format", "generator"}
INDICES, MASKS = {"index", "indices", "target", "repeats"}, {"condition", "mask"}
WORDS = ["mean", "sum", "none", "prod", "amax", "floor", "trunc", "linear", "replace", "fro", "tanh"]
# They make random numbers or other layouts, or read beyond the end of operands that do not belong together.
NOT_CALLED = ("_", "sparse", "to_sparse", "to_mkldnn", "quantize", "fake_quant", "empty", "new_empty", "rand", "normal", "bernoulli",
              "multinomial", "from_file", "native_batch_norm", "fbgemm", "mkldnn", "cudnn", "dequantize", "embedding_bag", "lstm", "gru",
              "rnn", "lu_unpack", "linalg_lu_solve")  # fmt: skip


def ops():
    """By name: ops that compute something anew, and that the device can record, those without a row in the op table too."""
    host = {name for _, name, _, tier, _ in _C.op_rows() if tier == 3}
    result = {}
    for schema in torch._C._jit_get_all_schemas():
        name = (schema.name + "." + schema.overload_name).rstrip(".")
        base = schema.name.removeprefix("aten::")
        if not schema.name.startswith("aten::") or name in host or base.startswith(NOT_CALLED) or "backward" in base:
            continue
        if any(arg.alias_info for arg in schema.arguments) or not torch._C._dispatch_has_kernel(name):
            continue
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
            continue
        if not any("Tensor" in str(value.type) for value in schema.returns):
            continue
        if not any(arg.name == "device" or "Tensor" in str(arg.type) for arg in schema.arguments):
            continue
        result[name] = getattr(getattr(torch.ops.aten, base), schema.overload_name or "default")
    return result


def _tensor(rng, sizes, dtype):
    sizes = rng.choice(SIZES) if rng.random() < 0.25 else sizes
    tensor = torch.ones(sizes, dtype=rng.choice(DTYPES) if rng.random() < 0.2 else dtype)
    layout = rng.random()
    if layout < 0.25 and tensor.dim() > 1:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout < 0.4 and tensor.dim() == 4:
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor[..., :1].expand(sizes) if layout < 0.5 and tensor.numel() > 0 and tensor.dim() > 0 else tensor


def _value(rng, arg, sizes, dtype):
    kind = str(arg.type)
    if arg.name in PLACEMENT or (kind.startswith("Optional") and rng.random() < 0.5):
        return None
    kind = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional") else kind
    if kind == "Tensor" and arg.name in INDICES:
        return _tensor(rng, sizes, torch.int64).mul(0)
    if kind == "List[Optional[Tensor]]":
        return [None if rng.random() < 0.3 else _tensor(rng, rng.choice([(), (2,), (1,)]), torch.int64).mul(0) for _ in range(rng.randint(1, 2))]
    values = {
        "Tensor": lambda: _tensor(rng, sizes, torch.bool if arg.name in MASKS else dtype),
        "List[Tensor]": lambda: [_tensor(rng, sizes, dtype) for _ in range(rng.randint(1, 3))],
        "bool": lambda: rng.random() < 0.5,
        "int": lambda: rng.choice([-1, 0, 1, 2, 0, 1]),
        "List[int]": lambda: [rng.choice([-1, 0, 1, 2, 3]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4, len(sizes)]))],
        "float": lambda: rng.choice([0.5, 1.0, 2.0]),
        "List[float]": lambda: [1.0, 2.0][: rng.randint(1, 2)],
        "number": lambda: rng.choice([1, 2, 0.5, True, -1, 3]),
        "str": lambda: rng.choice(WORDS),
    }
    return values.get(kind, lambda: None)()


def calls(name, op, count):
    """Arguments for the op, the same each time, each as a list and a dict; most are an error for some ops."""
    rng = random.Random(name)
    for _ in range(count):
        sizes, dtype = rng.choice(SIZES), rng.choice(DTYPES)
        args, kwargs = [], {}
        for arg in op._schema.arguments:
            value = _value(rng, arg, sizes, dtype)
            if arg.has_default_value() and (value is None or rng.random() < 0.5):
                value = arg.default_value
            if not arg.kwarg_only:
                args.append(value)
            elif value is not None:
                kwargs[arg.name] = value
        yield args, kwargs
