"""``ltc.export``: a function with its state as an archive, which runs without Python and without PyTorch. docs/archive.md"""

import collections
import contextlib
import inspect
import json
import math
import os
import re

import torch
from torch.utils import _pytree as pytree

from . import _C
from ._placeholders import module_of, own_tensors, show_placeholders
from ._version import __version__

FORMAT = 1


def export(function, args=(), kwargs=None, *, name=None, state=None, sample=True):
    """Records ``function(*args, **kwargs)`` once, without running it, and returns an :class:`Exported` with it.

    name    of the function in the archive; default: its own, ``forward`` of a module
    state   what the function reads or changes besides its arguments: a dict of modules, optimizers and tensors by name, all on one
            ltc device; default: the module that the function is, or whose method it is
    sample  whether to keep the arguments with the results that they give, for ``ltc check``

    Tensors among the arguments are the inputs of the archive's function; other arguments keep the values that they have here. The
    function may do a training step: a backward, and the step of an optimizer that has its state already. The state is not changed
    by the export. Raises RuntimeError with the reason where the function cannot be recorded: it depends on a tensor's value, say,
    or the backend does not run one of its ops.
    """
    if state is None:
        module = module_of(function)
        state = {"": module} if module is not None else {}
    exported = Exported(state)
    exported.add(function, args, kwargs, name=name, sample=sample)
    return exported


class Exported:
    """Functions over one state. :meth:`add` adds one, :meth:`save` writes the archive with the state as it was at the first one."""

    def __init__(self, state: dict):
        self.state = _State(state)
        self.constants, self.generators, self.functions, self.entries = {}, [], [], []
        self.values = {name: _to_cpu(tensor) for name, tensor in self.state.tensors.items()}

    def add(self, function, args=(), kwargs=None, *, name=None, sample=True):
        """Records one more function, as :func:`export` does."""
        if name is None:
            name = "forward" if isinstance(function, torch.nn.Module) else getattr(function, "__name__", "function").strip("<>")
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"ltc.export({name}): args is a {type(args).__name__}, and is to be a tuple of the arguments")
        if not re.fullmatch(r"[\w-]+", name, re.ASCII):
            raise ValueError(f"ltc.export: {name!r} cannot be the name of a function: use letters, digits, - and _")
        if any(name == known["name"] for known in self.functions):
            raise ValueError(f"ltc.export: there is a function {name!r} already: give another name")
        _Recording(self, function, args, kwargs or {}, name).run(sample)

    def save(self, path) -> None:
        """Writes the archive. The file is replaced as a whole."""
        manifest = {
            "format": FORMAT,
            "producer": f"ltc {__version__}, torch {torch.__version__}",
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


class _State:
    """The tensors of modules and optimizers, by name, and placeholders in their place."""

    def __init__(self, parts: dict):
        self.tensors, self.modules, self.optimizers = {}, [], []
        self.names = {}  # by the tensor's id
        for name, part in parts.items():
            if isinstance(part, torch.nn.Module):
                self.modules.extend(module for module in part.modules() if module not in self.modules)
                self._add_all(name, [*part.named_parameters(), *part.named_buffers()])
            elif isinstance(part, torch.Tensor):
                self._add(name, part)
            elif not isinstance(part, torch.optim.Optimizer):
                raise TypeError(f"ltc.export: state {name!r} is a {type(part).__name__}, and is to be a module, an optimizer or a tensor")
        for name, part in parts.items():
            if isinstance(part, torch.optim.Optimizer):
                self.optimizers.append(part)
                self._add_optimizer(name, part)

    def _add_all(self, prefix, tensors):
        for name, tensor in tensors:
            self._add(f"{prefix}.{name}" if prefix else name, tensor)

    def _add(self, name, tensor):
        if id(tensor) in self.names:
            return
        if name in self.tensors:
            raise ValueError(f"ltc.export: two tensors of the state are called {name!r}")
        if tensor.device.type != "ltc":
            raise RuntimeError(f"ltc.export: state {name!r} is on {tensor.device}: move it to device ltc first")
        self.names[id(tensor)] = name
        self.tensors[name] = tensor

    def _add_optimizer(self, prefix, optimizer):
        for number, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                self._add(f"{prefix}.{number}.{place}", parameter)
                for key, value in optimizer.state.get(parameter, {}).items():
                    if isinstance(value, torch.Tensor):
                        self._check_step(group, key, value)
                        self._add(f"{prefix}.{self.names[id(parameter)]}.{key}", value)
            self._add_all(f"{prefix}.{number}", [(key, value) for key, value in group.items() if isinstance(value, torch.Tensor)])

    def _check_step(self, group, key, value):
        if value.device.type != "cpu" or "capturable" not in group or group["capturable"]:
            return
        raise RuntimeError(
            f"ltc.export: the optimizer keeps its {key!r} on the CPU, where its value would become a part of the program: make the "
            "optimizer with capturable=True"
        )

    @contextlib.contextmanager
    def shown(self, placeholders: dict):
        """While the block runs, modules and optimizers have `placeholders`, by name, in the place of their tensors."""
        stand_in = {key: placeholders[name] for key, name in self.names.items()}
        with contextlib.ExitStack() as stack:
            for optimizer in self.optimizers:
                stack.enter_context(_show_in_optimizer(optimizer, stand_in))
            in_modules = [stand_in[id(tensor)] for module in self.modules for tensor in own_tensors(module)]
            with show_placeholders(self.modules, in_modules):
                yield


@contextlib.contextmanager
def _show_in_optimizer(optimizer, stand_in: dict):
    def shown(value):
        return stand_in.get(id(value), value)

    groups, state = optimizer.param_groups, optimizer.state
    optimizer.param_groups = [
        {key: [shown(one) for one in value] if key == "params" else shown(value) for key, value in group.items()} for group in groups
    ]
    own = {shown(parameter): {key: shown(value) for key, value in values.items()} for parameter, values in state.items()}
    optimizer.state = collections.defaultdict(dict, {parameter: dict(values) for parameter, values in own.items()})
    try:
        yield
        for parameter, values in optimizer.state.items():
            before = own.get(parameter, {})
            for key, value in values.items():
                if key not in before:
                    raise RuntimeError(
                        f"ltc.export: the optimizer makes its state ({key!r}) in its first step: run a step before the export"
                    )
                if value is not before[key]:
                    raise RuntimeError(f"ltc.export: the optimizer counts {key!r} in Python, which an archive cannot do")
    finally:
        optimizer.param_groups, optimizer.state = groups, state


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

    def __init__(self, exported: Exported, function, args, kwargs, name):
        self.exported, self.function, self.name = exported, function, name
        leaves, self.spec = pytree.tree_flatten_with_path((args, kwargs))
        self.leaves = [leaf for _, leaf in leaves]
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        names = _parameter_names(function, len(args))
        self.input_names = [_input_name(leaves[i][0], names) for i in self.places]
        self.inputs = [self._input(i) for i in self.places]
        self.state = exported.state.tensors
        self.result_names = []

    def _input(self, place):
        tensor = self.leaves[place]
        if id(tensor) in self.exported.state.names:
            self._refuse(f"argument {self.input_names[self.places.index(place)]} is a tensor of the state")
        return tensor.detach().clone(memory_format=torch.contiguous_format)

    def _refuse(self, reason):
        raise RuntimeError(f"ltc.export({self.name}): {reason}")

    def run(self, sample):
        tensors = [*self.inputs, *(tensor.detach() for tensor in self.state.values())]
        on_device = [tensor.device for tensor in tensors if tensor.device.type == "ltc"]
        if len(set(on_device)) > 1:
            self._refuse(f"its tensors are on {sorted(map(str, set(on_device)))}: an archive runs on one device")
        device = on_device[0].index if on_device else _C.current_device()
        capture = _C.Export(device, tensors)
        try:
            results = self._record(capture.placeholders())
            recorded = capture.finish(results)
        except Exception as error:
            reason = capture.abandon()
            if reason:
                raise RuntimeError(
                    f"ltc.export({self.name}): {reason}. The function is recorded once, so it may not depend on values of tensors, nor on "
                    "tensors that are neither arguments nor a part of `state`"
                ) from error
            raise
        if recorded["host_ops"]:
            self._refuse("the backend does not run " + "; ".join(recorded["host_ops"]))
        self._add(recorded, results)
        if sample:
            self._add_sample(capture, tensors)

    def _record(self, placeholders):
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
        results = []
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

    def _add(self, recorded, results):
        folder = f"functions/{self.name}"
        constants = [self._constant(tensor) for tensor in recorded["constants"]]
        state = list(self.state)

        def source(given):
            ((kind, index),) = given.items()
            if kind == "constant":
                return {"constant": constants[index]}
            if kind == "output":
                return {"output": index}
            return {"input": index} if index < len(self.inputs) else {"state": state[index - len(self.inputs)]}

        for argument, _ in recorded["updates"]:
            if argument < len(self.inputs):
                self._refuse(f"it writes its argument {self.input_names[argument]}: return the new value, or make it a part of `state`")
        self.exported.functions.append({
            "name": self.name,
            "graph": f"{folder}/graph.bin",
            "text": f"{folder}/graph.txt",
            "inputs": [_about(name, tensor) for name, tensor in zip(self.input_names, self.inputs)],
            "results": [{**_about(name, tensor), "from": source(given)}
                        for name, tensor, given in zip(self.result_names, results, recorded["results"])],
            "params": [source(given) for given in recorded["params"]],
            "numbers": [{**number, "value": _json_number(number["value"])} if "value" in number else number
                        for number in recorded["numbers"]],
            "draws": [{"generator": self._generator(draw), "advance": draw["advance"]} for draw in recorded["draws"]],
            "updates": [{"state": state[argument - len(self.inputs)], "from": source(given)} for argument, given in recorded["updates"]],
            "samples": [],
        })  # fmt: skip
        self.exported.entries += [(f"{folder}/graph.bin", recorded["graph"]), (f"{folder}/graph.txt", recorded["text"].encode())]

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

    def _add_sample(self, capture, tensors):
        results = capture.run([tensor.clone() for tensor in tensors])
        entry = f"functions/{self.name}/sample0.safetensors"
        sample = {f"input.{name}": _to_cpu(tensor) for name, tensor in zip(self.input_names, self.inputs)}
        sample.update({f"result.{name}": _to_cpu(tensor) for name, tensor in zip(self.result_names, results)})
        self.exported.entries.append((entry, sample))
        self.exported.functions[-1]["samples"].append(entry)


def _to_cpu(tensor):
    return tensor.detach().cpu().contiguous().clone()


def _about(name, tensor):
    return {"name": name, "dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape)}


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
    """Of a leaf of (args, kwargs)."""
    kind, first, *rest = path
    name = names[first.idx] if kind.idx == 0 else str(first.key)
    return ".".join([name, _path_text(rest)]) if rest else name


def _path_text(path):
    return ".".join(str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", key)))) for key in path)


_DTYPES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.complex64: "c64",
    torch.complex128: "c128", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e5m2: "f8e5m2",
}  # fmt: skip
