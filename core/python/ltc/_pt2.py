"""Files of ``torch.export.save`` (.pt2), read as data: nothing in them is run or unpickled. Their graph is called op by op.

``torch.export.load`` is not used, since it evaluates texts of the file as Python and unpickles parts of it.
"""

import inspect
import io
import json
import math
import operator
import os
import re
import zipfile

import torch
from torch._export.serde import schema, serialize
from torch.export import Dim
from torch.utils import _pytree as pytree

# Arithmetic of sizes, which a graph may call besides ops of aten.
NUMBERS = {f"_operator.{name}": getattr(operator, name) for name in (
    "add", "sub", "mul", "floordiv", "mod", "neg", "pow", "truediv", "lt", "le", "gt", "ge", "eq", "ne", "and_", "or_")}  # fmt: skip
NUMBERS |= {"torch.sym_max": max, "torch.sym_min": min, "torch.sym_float": float, "torch.sym_int": int, "torch.sym_not": operator.not_,
            "math.ceil": math.ceil, "math.floor": math.floor, "math.trunc": math.trunc}  # fmt: skip
# Ops that look at nothing but types, whose checks the recording does itself, and one that opens files.
CHECKS = {"aten._assert_tensor_metadata", "aten._assert_scalar", "aten.sym_constrain_range_for_size", "aten.sym_constrain_range"}
REFUSED = {"aten.from_file"}


class Pt2Error(RuntimeError):
    pass


class Pt2:
    """A file's program: `function`, with the names of its inputs; `args`, those of its export; `module`, which has the weights, on
    device ltc; and `dynamic_shapes`."""

    def __init__(self, path, args=()):
        self.path, self.args = os.fspath(path), tuple(args)
        try:
            with zipfile.ZipFile(self.path) as archive:
                self._files = {name.partition("/")[2]: name for name in archive.namelist()}
                self._archive = archive
                self._read()
        except FileNotFoundError:
            raise Pt2Error(f"ltc.export: {self.path} is not there") from None
        except (zipfile.BadZipFile, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise Pt2Error(f"ltc.export: {self.path} is damaged, or is no .pt2 file: {error}") from error
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise Pt2Error(f"ltc.export: {self.path} has a form that is not known here, perhaps of another PyTorch: {error!r}") from error

    def _refuse(self, reason):
        raise Pt2Error(f"ltc.export: {self.path}: {reason}")

    def _bytes(self, name):
        if name not in self._files:
            self._refuse(f"it has no entry {name}" + (", and may be of an older PyTorch: save it again" if "config" in name else ""))
        return self._archive.read(self._files[name])

    def _read(self):
        models = [name for name in self._files if re.fullmatch(r"models/[^/]+\.json", name)]
        if len(models) != 1:
            self._refuse(f"it has {len(models)} exported programs, and is to have one")
        name = models[0][len("models/") : -len(".json")]
        program = json.loads(self._bytes(models[0]))
        if (major := program["schema_version"]["major"]) != schema.SCHEMA_VERSION[0]:
            self._refuse(f"its schema is {major}, and this PyTorch has {schema.SCHEMA_VERSION[0]}: save it again")
        self.graph, signature = program["graph_module"]["graph"], program["graph_module"]["signature"]
        tensors = {**self._tensors("weights", name), **self._tensors("constants", name)}
        self.module, self.places, self.inputs = torch.nn.Module(), {}, []
        for spec in signature["input_specs"]:
            ((kind, about),) = spec.items()
            if kind == "user_input":
                self.inputs.append(self._value_name(about["arg"]))
            elif kind in ("parameter", "buffer", "tensor_constant"):
                fqn = about[f"{kind}_name"]
                _register(self.module, fqn, tensors[fqn], kind == "parameter")
                self.places[about["arg"]["name"]] = fqn
            else:
                self._refuse(f"it takes a {kind}, which an archive cannot have")
        self.module.to("ltc").requires_grad_(False)
        self.output_specs = [next(iter(spec.items())) for spec in signature["output_specs"]]
        self.out_spec = program["graph_module"]["module_call_graph"][0]["signature"]["out_spec"]
        for kind, _ in self.output_specs:
            if kind not in ("user_output", "buffer_mutation"):
                self._refuse(f"it gives a {kind}, which an archive cannot have")
        for node in self.graph["nodes"]:
            self._op(node["target"])
        self.args = self.args or self._args(name)
        if len(self.args) != len(self.inputs):
            self._refuse(f"it takes {len(self.inputs)} inputs, and {len(self.args)} were given")
        self.dynamic_shapes = self._dynamic_shapes(program["range_constraints"])

    def _value_name(self, arg):
        ((kind, value),) = arg.items()
        if kind != "as_tensor":
            self._refuse(f"it takes an argument of kind {kind}, and an archive takes tensors only")
        return value["name"]

    def _tensors(self, folder, name):
        tensors = {}
        for fqn, about in json.loads(self._bytes(f"data/{folder}/{name}_{folder}_config.json"))["config"].items():
            if about["use_pickle"] or about["tensor_meta"] is None:
                self._refuse(f"{fqn} is a pickled object: it would have to be unpickled, which can run any code")
            meta, dims = about["tensor_meta"], {}
            for key in "sizes", "strides":
                dims[key] = [size["as_int"] for size in meta[key]]
            dtype = serialize.deserialize_scalar_type(meta["dtype"])
            data = bytearray(self._bytes(f"data/{folder}/{about['path_name']}"))
            flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
            tensors[fqn] = torch.as_strided(flat, dims["sizes"], dims["strides"], meta["storage_offset"]["as_int"])
        return tensors

    def _args(self, name):
        try:
            args, kwargs = torch.load(io.BytesIO(self._bytes(f"data/sample_inputs/{name}.pt")), weights_only=True)
        except Exception as error:
            self._refuse(f"its example inputs are objects that would have to be unpickled, which can run any code: give `args`, the tensors "
                         f"{', '.join(self.inputs)} ({str(error).splitlines()[0]})")  # fmt: skip
        return tuple(pytree.tree_leaves((args, kwargs)))

    def _dynamic_shapes(self, ranges):
        shapes, dims = {}, {}
        for name in self.inputs:
            for dim, size in enumerate(self.graph["tensor_values"][name]["sizes"]):
                if "as_int" in size:
                    continue
                symbol = re.fullmatch(r"Symbol\('(\w+)'.*\)|(\w+)", size["as_expr"]["expr_str"])
                if not symbol:
                    self._refuse(f"a size of {name} is {size['as_expr']['expr_str']}, and is to be a number or a name")
                symbol = symbol[1] or symbol[2]
                limits = ranges.get(symbol, {})
                given = {"min": limits.get("min_val"), "max": limits.get("max_val")}
                dims.setdefault(symbol, Dim(symbol, **{key: value for key, value in given.items() if value is not None}))
                shapes.setdefault(name, {})[dim] = dims[symbol]
        return shapes or None

    def _op(self, target):
        """The function that a node calls."""
        if target in NUMBERS:
            return NUMBERS[target]
        found = re.fullmatch(r"torch\.ops\.(aten\.\w+)\.(\w+)", target)
        op = getattr(getattr(torch.ops.aten, found[1][5:], None), found[2], None) if found and found[1] not in REFUSED else None
        if op is None:
            self._refuse(f"it calls {target}, which an archive cannot have: only ops of aten are read")
        return op

    @property
    def function(self):
        def forward(*inputs):
            return self._call(inputs)

        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.inputs]
        forward.__signature__ = inspect.Signature(parameters)
        return forward

    @torch.no_grad()
    def _call(self, inputs):
        values = {value: _find(self.module, fqn) for value, fqn in self.places.items()}
        values.update(zip(self.inputs, inputs))
        for node in self.graph["nodes"]:
            if node["target"].removeprefix("torch.ops.").rpartition(".")[0] in CHECKS:
                continue
            args = [self._argument(one["arg"], values) for one in node["inputs"] if one["kind"] != schema.ArgumentKind.KEYWORD]
            kwargs = {one["name"]: self._argument(one["arg"], values) for one in node["inputs"] if one["kind"] == schema.ArgumentKind.KEYWORD}
            self._keep(node["outputs"], self._op(node["target"])(*args, **kwargs), values)
        results = []
        for (kind, about), output in zip(self.output_specs, self.graph["outputs"]):
            value = self._argument(output, values)
            if kind == "buffer_mutation":
                _find(self.module, about["buffer_name"]).copy_(value)
            else:
                results.append(value)
        spec = pytree.treespec_loads(self.out_spec)
        return pytree.tree_unflatten(results, spec)

    def _keep(self, outputs, result, values):
        results = result if isinstance(result, (tuple, list)) else [result]
        if len(outputs) == 1 and "as_tensors" in outputs[0]:
            outputs = [{"as_tensor": one} for one in outputs[0]["as_tensors"]]
        for output, value in zip(outputs, results):
            ((kind, about),) = output.items()
            if kind.startswith("as_sym"):
                about = {"name": about["as_name"]}
            if kind != "as_none":
                values[about["name"]] = value

    def _argument(self, arg, values):
        ((kind, value),) = arg.items()
        if kind in _CONVERT:
            return _CONVERT[kind](value, values)
        self._refuse(f"it has an argument of kind {kind}, which an archive cannot have")


def _number(value, values):
    """A size or number that is computed, or that is fixed."""
    return values[value["as_name"]] if "as_name" in value else next(iter(value.values()))


def _each(convert):
    return lambda items, values: [convert(item, values) for item in items]


def _tensor(value, values):
    return values[value["name"]]


def _optional(value, values):
    ((kind, inner),) = value.items()
    return None if kind == "as_none" else values[inner["name"]]


_CONVERT = {
    **dict.fromkeys(("as_int", "as_ints", "as_float", "as_floats", "as_string", "as_strings", "as_bool", "as_bools"), lambda value, values: value),
    "as_none": lambda value, values: None,
    "as_tensor": _tensor,
    "as_tensors": _each(_tensor),
    "as_optional_tensor": _optional,
    "as_optional_tensors": _each(_optional),
    **dict.fromkeys(("as_sym_int", "as_sym_bool", "as_sym_float"), _number),
    **dict.fromkeys(("as_sym_ints", "as_sym_bools", "as_sym_floats"), _each(_number)),
    "as_scalar_type": lambda value, values: serialize.deserialize_scalar_type(value),
    "as_memory_format": lambda value, values: serialize._SERIALIZE_TO_TORCH_MEMORY_FORMAT[value],
    "as_layout": lambda value, values: serialize._SERIALIZE_TO_TORCH_LAYOUT[value],
    "as_device": lambda value, values: torch.device("ltc"),  # wherever it was exported
    "as_complex": lambda value, values: complex(value["real"], value["imag"]),
}


def _register(module, fqn, tensor, is_parameter):
    *folders, name = fqn.split(".")
    for folder in folders:
        if folder not in module._modules:
            module.add_module(folder, torch.nn.Module())
        module = module._modules[folder]
    if is_parameter:
        module.register_parameter(name, torch.nn.Parameter(tensor, requires_grad=False))
    else:
        module.register_buffer(name, tensor)


def _find(module, fqn):
    *folders, name = fqn.split(".")
    for folder in folders:
        module = module._modules[folder]
    return module._parameters[name] if name in module._parameters else module._buffers[name]
