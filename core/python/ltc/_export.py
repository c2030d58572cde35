"""``ltc.export``: a function with its state as an archive, which runs without Python and without PyTorch. docs/archive.md"""

import contextlib
import functools
import inspect
import json
import math
import os
import re

import torch
from torch.utils import _pytree as pytree

from . import _C
from ._export_state import State
from ._placeholders import module_of
from ._sizes import Formulas, Unproved, read_dynamic_shapes
from ._version import __version__

FORMAT = 1


def export(function, args=(), kwargs=None, *, name=None, state=None, dynamic_shapes=None, sample=True, metadata=None):
    """Records ``function(*args, **kwargs)`` once, without running it, and returns an :class:`Exported` with it.

    name    of the function in the archive; default: its own, ``forward`` of a module
    state   what the function reads or changes besides its arguments: a dict of modules, optimizers and tensors by name, all on one
            ltc device; default: the module that the function is, or whose method it is
    dynamic_shapes  sizes that vary from call to call, as torch.export has them: by parameter, by dim, a name or a torch.export.Dim
            with a range, as in ``{"x": {0: "batch"}}``
    sample  whether to keep the arguments with the results that they give, for ``ltc check``
    metadata    a dict of texts, kept as it is for those who read the archive; ``ltc serve`` knows some

    `function` may be the path of a file .pt2 that torch.export.save has written. It is read as data, and nothing in it is run or unpickled;
    `args` may be left out, and `dynamic_shapes` are those of the file.

    Tensors among the arguments are the inputs of the archive's function; other arguments keep the values that they have here. The
    function may do a training step: a backward, and the step of an optimizer that has its state already. The state is not changed
    by the export. Raises RuntimeError with the reason where the function cannot be recorded: it depends on a tensor's value, say,
    or the backend does not run one of its ops.
    """
    if isinstance(function, (str, os.PathLike)):
        return _export_file(function, args, kwargs, name, state, dynamic_shapes, sample, metadata)
    if state is None:
        module = module_of(function)
        state = {"": module} if module is not None else {}
    exported = Exported(state, metadata)
    exported.add(function, args, kwargs, name=name, dynamic_shapes=dynamic_shapes, sample=sample)
    return exported


def _export_file(path, args, kwargs, name, state, dynamic_shapes, sample, metadata):
    from ._pt2 import Pt2

    if kwargs or state:
        raise TypeError("ltc.export: a file has its state in it, and its arguments go by place")
    file = Pt2(path, args)
    exported = Exported({"": file.module}, metadata)
    exported.add(file.function, file.args, name=name, dynamic_shapes=dynamic_shapes or file.dynamic_shapes, sample=sample)
    return exported


class Exported:
    """Functions over one state. :meth:`add` adds one, :meth:`save` writes the archive with the state as it was at the first one."""

    def __init__(self, state: dict, metadata: dict | None = None):
        for key, value in (metadata or {}).items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"ltc.export: metadata has {key!r}: {value!r}, and keys and values are to be texts")
        self.state, self.metadata = State(state), dict(metadata or {})
        self.constants, self.generators, self.functions, self.entries = {}, [], [], []
        self.values = {name: _to_cpu(tensor) for name, tensor in self.state.tensors.items()}

    def add(self, function, args=(), kwargs=None, *, name=None, dynamic_shapes=None, sample=True):
        """Records one more function, as :func:`export` does."""
        if name is None:
            name = "forward" if isinstance(function, torch.nn.Module) else getattr(function, "__name__", "function").strip("<>")
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"ltc.export({name}): args is a {type(args).__name__}, and is to be a tuple of the arguments")
        if not re.fullmatch(r"[\w-]+", name, re.ASCII):
            raise ValueError(f"ltc.export: {name!r} cannot be the name of a function: use letters, digits, - and _")
        if any(name == known["name"] for known in self.functions):
            raise ValueError(f"ltc.export: there is a function {name!r} already: give another name")
        _Recording(self, function, args, kwargs or {}, name, dynamic_shapes).run(sample)

    def save(self, path) -> None:
        """Writes the archive. The file is replaced as a whole."""
        manifest = {
            "format": FORMAT,
            "producer": f"ltc {__version__}, torch {torch.__version__}",
            **({"metadata": self.metadata} if self.metadata else {}),
            "state": list(self.values),
            "constants": list(self.constants),
            "generators": [{"seed": seed, "offset": offset} for _, seed, offset in self.generators],
            "functions": self.functions,
        }
        entries = [
            ("manifest.json", json.dumps(manifest, indent=1).encode() + b"\n"),
            *self.entries,
            ("values.safetensors", {**self.values, **self.constants}),
        ]
        _C.write_archive(os.fspath(path), entries)

    def save_torchscript(self, path, name=None) -> None:
        """Writes one function, by name where there are several, with its state, as a file for torch.jit.load. It runs on PyTorch's own
        kernels and needs nothing of this project. Raises RuntimeError where PyTorch lacks one of its ops, and for a function that draws
        random numbers or whose sizes vary."""
        from . import _torchscript

        names = [function["name"] for function in self.functions]
        if name is None and len(names) > 1 or name not in (None, *names):
            raise ValueError(f"ltc.export: {f'there is no function {name!r}' if name else 'one function is saved'}: name one of {', '.join(names)}")
        function = self.functions[names.index(name) if name else 0]
        _torchscript.save(os.fspath(path), function, self.entries, {**self.values, **self.constants}, DTYPES_BY_NAME)


@contextlib.contextmanager
def _exporting():
    """``torch.compiler.is_exporting()`` is true meanwhile: libraries then ask for no values."""
    before = torch.compiler._is_compiling_flag, torch.compiler._is_exporting_flag
    torch.compiler._is_compiling_flag = torch.compiler._is_exporting_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag, torch.compiler._is_exporting_flag = before


class _Recording:
    """One call of a function, as an entry of the manifest."""

    def __init__(self, exported: Exported, function, args, kwargs, name, dynamic_shapes):
        self.exported, self.function, self.name = exported, function, name
        leaves, self.spec = pytree.tree_flatten_with_path((args, kwargs))
        self.leaves = [leaf for _, leaf in leaves]
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        names = _parameter_names(function, len(args))
        paths = [leaves[i][0] for i in self.places]
        self.input_names = [_input_name(path, names) for path in paths]
        self.inputs = [self._input(i) for i in self.places]
        self.state = exported.state.tensors
        self.shapes = read_dynamic_shapes(dynamic_shapes, [_keys(path, names) for path in paths], self.inputs, self.input_names)
        self.result_names, self.recorded_ones = [], {}

    def _input(self, place):
        tensor = self.leaves[place]
        if id(tensor) in self.exported.state.names:
            self._refuse(f"argument {self.input_names[self.places.index(place)]} is a tensor of the state")
        return tensor.detach().clone(memory_format=torch.contiguous_format)

    def _refuse(self, reason):
        raise RuntimeError(f"ltc.export({self.name}): {reason}")

    def run(self, sample):
        recorded = self._record(self.inputs)
        if recorded.parts["host_ops"]:
            self._refuse("the backend does not run " + "; ".join(recorded.parts["host_ops"]))
        others = self._record_other_sizes(recorded) if self.shapes.dimensions else {}
        self._add(recorded, others)
        if sample:
            self._add_sample(recorded)
            for sizes in [*list(others)[-1:], *list(self.recorded_ones)[-1:]]:
                self._add_sample(self._record(self.shapes.inputs_at(self.inputs, sizes)))

    def _record(self, inputs, compiles=True):
        tensors = [*inputs, *(tensor.detach() for tensor in self.state.values())]
        on_device = [tensor.device for tensor in tensors if tensor.device.type == "ltc"]
        if len(set(on_device)) > 1:
            self._refuse(f"its tensors are on {sorted(map(str, set(on_device)))}: an archive runs on one device")
        device = on_device[0].index if on_device else _C.current_device()
        capture = _C.Export(device, tensors)
        try:
            results = self._call(capture.placeholders())
            return _Recorded(capture, tensors, capture.finish(results, compiles), results)
        except Exception as error:
            reason = capture.abandon()
            if reason:
                raise RuntimeError(
                    f"ltc.export({self.name}): {reason}. The function is recorded once, so it may not depend on values of tensors, nor on "
                    "tensors that are neither arguments nor a part of `state`"
                ) from error
            raise

    def _call(self, placeholders):
        given, held = placeholders[: len(self.inputs)], dict(zip(self.state, placeholders[len(self.inputs) :]))
        if torch.is_grad_enabled():
            for name, tensor in self.state.items():
                held[name].requires_grad_(tensor.requires_grad)
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, given):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        with self.exported.state.shown(held), _exporting():
            leaves, _ = pytree.tree_flatten_with_path(self.function(*args, **kwargs))
        results, self.result_names = [], []
        for path, leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                self.result_names.append(_path_text(path) or "result")
                results.append(leaf.detach().clone(memory_format=torch.contiguous_format))
            elif leaf is not None:
                self._refuse(f"result {_path_text(path) or ''} is a {type(leaf).__name__}: return tensors")
        for tensor in held.values():
            tensor.grad = None
            tensor.requires_grad_(False)
        return results

    def _record_other_sizes(self, base):
        """By sizes, what is recorded there: as many as prove the formulas of all numbers."""
        others = {}
        for consecutive in (4, 8, 16, 32, 64):
            while missing := [sizes for sizes in self.shapes.recorded_sizes(consecutive) if sizes not in others]:
                others[missing[0]] = self._record_at(missing[0], base)
            proofs = {sizes: recorded for sizes, recorded in others.items() if recorded and self.shapes.has(sizes)}
            try:
                self._check_ones(base, proofs)
                return {sizes: recorded for sizes, recorded in proofs.items() if self.shapes.has(sizes)}
            except Unproved:
                continue
        self._refuse(f"{len(others)} sizes are too few to know how those of the results follow from them")

    def _record_at(self, sizes, base):
        """None where that is another program. For a size of 1 it often is one that does the same, since ops that then do nothing are
        not recorded."""
        try:
            recorded = self._record(self.shapes.inputs_at(self.inputs, sizes), compiles=False)
            difference = base.difference(recorded)
        except Exception as error:
            recorded, difference = None, error
        if difference is None:
            return recorded
        if self.shapes.ones(sizes) and recorded and recorded.changes == base.changes:
            self.recorded_ones[sizes] = recorded
        else:
            self._exclude(sizes, difference)
        return None

    def _exclude(self, sizes, difference):
        """Lets the range begin behind a size of 1. One that was given stays."""
        ones = self.shapes.ones(sizes)
        if not ones or not all(one.is_named_only for one in ones):
            names = ", ".join(f"{one.name} {size}" for one, size in zip(self.shapes.dimensions, sizes))
            reason = difference if isinstance(difference, str) else f"it cannot be recorded ({difference})"
            raise RuntimeError(
                f"ltc.export({self.name}): {reason} for {names}, unlike for {', '.join(map(str, self.shapes.example))}, and one archive "
                "cannot have both: give other arguments, or a torch.export.Dim with another range"
            ) from (difference if isinstance(difference, Exception) else None)
        for one in ones:
            one.min = 2

    def _check_ones(self, base, others):
        """Where the program for 1 has results of other shapes than the archive's program, or draws another number of random numbers, the
        range begins behind it."""
        formulas = self._formulas(base, others)
        for sizes, recorded in self.recorded_ones.items():

            def expected(number_of):
                return formulas[[number_of(one) for one in (base, *others.values())]].value(formulas.extended(sizes))

            shapes = [tuple(expected(lambda one: one.results[i].shape[dim]) for dim in range(result.dim())) for i, result in enumerate(base.results)]
            given = [tuple(result.shape) for result in recorded.results]
            if given != shapes:
                self._exclude(sizes, f"the results have shapes {given}, and not {shapes},")
            advances = [expected(lambda one: one.advances[i]) for i in range(len(base.advances))]
            if recorded.advances != advances:
                self._exclude(sizes, f"the draws move their generators by {recorded.advances}, and not by {advances},")
        self.recorded_ones = {sizes: recorded for sizes, recorded in self.recorded_ones.items() if self.shapes.has(sizes)}

    def _formulas(self, base, others):
        recorded = [base, *others.values()]
        for values in zip(*(one.values for one in recorded)):
            if len(set(values)) > 1 and not all(isinstance(value, int) for value in values):
                self._refuse(f"a number of it is {', '.join(map(str, values))}, by sizes, and only whole numbers may follow from them")
        try:
            return Formulas(self.shapes.dimensions, [self.shapes.example, *others], list(zip(*(one.all_numbers for one in recorded))))
        except ValueError as error:
            self._refuse(str(error))

    def _add(self, base, others):
        folder, parts = f"functions/{self.name}", base.parts
        constants = [self._constant(tensor) for tensor in parts["constants"]]
        state = list(self.state)
        formulas = self._formulas(base, others)

        def source(given):
            ((kind, index),) = given.items()
            if kind == "constant":
                return {"constant": constants[index]}
            if kind == "output":
                return {"output": index}
            return {"input": index} if index < len(self.inputs) else {"state": state[index - len(self.inputs)]}

        def size(number_of):
            return formulas[[number_of(one) for one in (base, *others.values())]].json(formulas.names)

        def number(index, given):
            if "value" not in given:
                return given
            varies = any(one.values[index] != base.values[index] for one in others.values())
            return {**given, "value": _json_number(given["value"]), **({"size": size(lambda one: one.values[index])} if varies else {})}

        def shape(index, tensor):
            return [size(lambda one: one.results[index].shape[dim]) for dim in range(tensor.dim())]

        for argument, _ in parts["updates"]:
            if argument < len(self.inputs):
                self._refuse(f"it writes its argument {self.input_names[argument]}: return the new value, or make it a part of `state`")
        about_sizes = {
            "dimensions": [dimension.json() for dimension in self.shapes.dimensions] + formulas.json(),
            "sizes": self._size_rules(base, others, formulas),
        }
        self.exported.functions.append({
            "name": self.name,
            "graph": f"{folder}/graph.bin",
            "text": f"{folder}/graph.txt",
            **(about_sizes if self.shapes.dimensions else {}),
            "inputs": [_about(name, tensor, self.shapes.shape(i, tensor)) for i, (name, tensor) in enumerate(zip(self.input_names, self.inputs))],
            "results": [{**_about(name, tensor, shape(i, tensor)), "from": source(given)}
                        for i, (name, tensor, given) in enumerate(zip(self.result_names, base.results, parts["results"]))],
            "params": [source(given) for given in parts["params"]],
            "numbers": [number(index, given) for index, given in enumerate(parts["numbers"])],
            "draws": [{"generator": self._generator(draw), "advance": size(lambda one: one.advances[index])}
                      for index, draw in enumerate(parts["draws"])],
            "updates": [{"state": state[argument - len(self.inputs)], "from": source(given)} for argument, given in parts["updates"]],
            "samples": [],
        })  # fmt: skip
        self.exported.entries += [(f"{folder}/graph.bin", parts["graph"]), (f"{folder}/graph.txt", parts["text"].encode()),
                                  (f"{folder}/graph.json", parts["json"].encode())]  # fmt: skip

    def _size_rules(self, base, others, formulas):
        rules = {}
        for index, place in enumerate(base.places if others else ()):
            values = [one.numbers[index] for one in (base, *others.values())]
            if len(set(values)) > 1:
                rules.setdefault(formulas[values], []).append(place)
        return [{"is": formula.json(formulas.names), "at": places} for formula, places in rules.items()]

    def _constant(self, tensor):
        name = f"constant.{len(self.exported.constants)}"
        self.exported.constants[name] = tensor
        return name

    def _generator(self, draw):
        generators = self.exported.generators
        for index, (known, _, _) in enumerate(generators):
            if known is draw["generator"]:
                return index
        generators.append((draw["generator"], draw["seed"], draw["offset"]))
        return len(generators) - 1

    def _add_sample(self, recorded):
        samples = self.exported.functions[-1]["samples"]
        try:
            results = [_to_cpu(result) for result in recorded.capture.run([tensor.clone() for tensor in recorded.tensors])]
        except RuntimeError as error:  # the values of an example need not fit other sizes
            shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in zip(self.input_names, recorded.tensors))
            raise RuntimeError(f"ltc.export({self.name}): its sample with {shapes} fails: {error}. sample=False writes none") from error
        entry = f"functions/{self.name}/sample{len(samples)}.safetensors"
        sample = {f"input.{name}": _to_cpu(tensor) for name, tensor in zip(self.input_names, recorded.tensors)}
        sample.update({f"result.{name}": tensor for name, tensor in zip(self.result_names, results)})
        self.exported.entries.append((entry, sample))
        samples.append(entry)


class _Recorded:
    """A function as it is for the sizes of some arguments."""

    def __init__(self, capture, tensors, parts, results):
        self.capture, self.tensors, self.parts, self.results = capture, tensors, parts, results

    @functools.cached_property
    def _graph(self):
        return _C.graph_numbers(self.parts["graph"])

    @property
    def numbers(self):
        return self._graph[1]

    @property
    def places(self):
        return self._graph[2]

    @property
    def values(self) -> list:
        """Whole ones as integers."""
        values = [_json_number(number.get("value", 0)) for number in self.parts["numbers"]]
        return [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]

    @property
    def all_numbers(self) -> list:
        """All that may follow from sizes: those of the graph, the results' shapes, the numbers that the graph takes, and the advances."""
        return [*self.numbers, *(size for result in self.results for size in result.shape), *self.values, *self.advances]

    @property
    def advances(self) -> list:
        """By draw, how much it moves the offset of its generator."""
        return [draw["advance"] for draw in self.parts["draws"]]

    @property
    def changes(self):
        """The tensors that a call changes, and the number of its draws."""
        return [argument for argument, _ in self.parts["updates"]], len(self.parts["draws"])

    def difference(self, other) -> str | None:
        """A text of what is not the same but for numbers."""
        kinds = [[{key: value for key, value in number.items() if key != "value"} for number in one.parts["numbers"]] for one in (self, other)]
        same = self._graph[0] == other._graph[0] and kinds[0] == kinds[1] and len(self.results) == len(other.results)
        if not same or any(self.parts[part] != other.parts[part] for part in ("params", "results", "updates")):
            return "the function computes something else"
        if len(self.parts["draws"]) != len(other.parts["draws"]):
            return "the function draws random numbers more or less often"
        mine, others = self.parts["constants"], other.parts["constants"]
        if len(mine) != len(others) or not all(a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b) for a, b in zip(mine, others)):
            return "the function makes another constant"
        return None


def _to_cpu(tensor):
    return tensor.detach().cpu().contiguous().clone()


def _about(name, tensor, shape):
    return {"name": name, "dtype": DTYPES[tensor.dtype], "shape": shape}


def _json_number(value):
    if isinstance(value, complex):
        return [_json_number(value.real), _json_number(value.imag)]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _parameter_names(function, count):
    """The names of the positional parameters; numbers where they cannot be known."""
    try:
        target = function.forward if isinstance(function, torch.nn.Module) else function
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in plain]
    return [names[i] if i < len(names) else str(i) for i in range(count)]


def _input_name(path, names):
    """The name of a leaf of (args, kwargs)."""
    name, rest = _keys(path, names)[0], path[2:]
    return ".".join([name, _path_text(rest)]) if rest else name


def _keys(path, names):
    """The parameter of a leaf of (args, kwargs), its number or None, and the keys inside of it."""
    kind, first, *rest = path
    name, number = (names[first.idx], first.idx) if kind.idx == 0 else (str(first.key), None)
    return name, number, [getattr(key, "idx", getattr(key, "key", getattr(key, "name", None))) for key in rest]


def _path_text(path):
    return ".".join(str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", key)))) for key in path)


DTYPES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.complex64: "c64",
    torch.complex128: "c128", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e5m2: "f8e5m2",
}  # fmt: skip
DTYPES_BY_NAME = {name: dtype for dtype, name in DTYPES.items()}
