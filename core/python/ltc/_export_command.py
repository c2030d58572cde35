"""``ltc export``: a module or a function of a script as an archive."""

import argparse
import contextlib
import inspect
import os
import re
import sys

import torch
from torch.export import Dim

import ltc_run

from ._export import DTYPES_BY_NAME, Exported, export


class WrongUse(Exception):
    """The words of the command do not fit what is there."""


def run(options: argparse.Namespace) -> int:
    try:
        path = options.to or _default_path(options.target)
        if options.target.endswith(".pt2"):
            exported = _export_file(options)
        else:
            exported = _export_target(options)
        exported.save(path)
    except WrongUse as error:
        print(f"ltc export: {error}", file=sys.stderr)
        return 2
    except SystemExit:
        raise
    except BaseException as error:
        if isinstance(error, (RuntimeError, TypeError, ValueError)) and _is_ours(error):
            print(f"ltc export: {error}", file=sys.stderr)
        else:
            ltc_run.print_error(error)
        return 1
    print(f"{path} is written: {', '.join(function['name'] for function in exported.functions)}")
    return 0


def _is_ours(error):
    """Whether ltc.export raised it, and no code of the script."""
    frames = error.__traceback__
    while frames.tb_next:
        frames = frames.tb_next
    return os.path.dirname(frames.tb_frame.f_code.co_filename) == os.path.dirname(__file__)


def _default_path(target):
    return os.path.splitext(os.path.basename(target.partition(":")[0]))[0] + ".ltc"


def _export_file(options):
    if options.input or options.args:
        raise WrongUse(f"{options.target} has inputs of its own: --input and arguments are for scripts")
    return export(options.target, name=options.name)


def _export_target(options):
    place, _, name = options.target.partition(":")
    try:
        members = ltc_run.import_script(place, options.args)
    except ltc_run.NoScript as error:
        raise WrongUse(str(error)) from None
    if (name or "export") not in members:
        known = [key for key, value in members.items() if isinstance(value, torch.nn.Module) or (callable(value) and not inspect.isclass(value)
                 and getattr(value, "__module__", None) == members.get("__name__"))]  # fmt: skip
        asked = f"no {name}" if name else "no function `export`, and no name was given as in script.py:model"
        raise WrongUse(f"{place} has {asked}; it has: {', '.join(known) or 'no modules and no functions'}")
    value = members[name or "export"]
    if inspect.isclass(value) or (inspect.isroutine(value) and not options.input and not _needed(value)):
        value = value()  # makes a model, or exports by itself
    if isinstance(value, Exported):
        return value
    if not name:
        raise WrongUse(f"`export` of {place} returned a {type(value).__name__}, and is to return what ltc.export returns")
    if not callable(value):
        raise WrongUse(f"{options.target} is a {type(value).__name__}, and is to be a module or a function")
    return _export(options, name, value, members)


def _needed(function):
    """The parameters that a call has to give."""
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one for one in inspect.signature(function).parameters.values() if one.default is one.empty and one.kind in plain]


def _export(options, name, value, members):
    inputs = [_read_input(text) for text in options.input]
    args = tuple(tensor for tensor, _ in inputs)
    is_module = isinstance(value, torch.nn.Module)
    names = [one.name for one in inspect.signature(value.forward if is_module else value).parameters.values() if one.kind == one.POSITIONAL_OR_KEYWORD]
    if not inputs:
        raise WrongUse(f"{options.target} takes inputs ({', '.join(names)}): give an example of each, as in --input f32[1,3,224,224]")
    state = {"": value} if is_module else _state_of(value, members)
    for part in state.values():
        if isinstance(part, torch.nn.Module):
            part.to("ltc").train(options.training)
    shapes = tuple(dims or None for _, dims in inputs) if any(dims for _, dims in inputs) else None
    with contextlib.nullcontext() if options.training else torch.no_grad():
        return export(value, args, name=options.name or ("forward" if is_module else name), state=state, dynamic_shapes=shapes)


def _state_of(function, members):
    """The modules and optimizers of the script that the function names."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    kinds = torch.nn.Module, torch.optim.Optimizer
    return {key: value for key, value in members.items() if code and key in code.co_names and isinstance(value, kinds)}


def _read_input(text):
    """f32[1,3] or, with sizes that vary, f32[batch=8,3]: the tensor, and the dims that vary."""
    found = re.fullmatch(r"(\w+)\[(.*)\]", text)
    if not found or found[1] not in DTYPES_BY_NAME:
        raise WrongUse(f"--input {text}: this is to be a dtype and sizes, as f32[1,3,224,224] or i64[batch=4,16]; dtypes: {', '.join(DTYPES_BY_NAME)}")
    sizes, dims = [], {}
    for dim, size in enumerate(found[2].split(",") if found[2] else []):
        name, is_named, number = size.strip().rpartition("=")
        if not number.isdigit() or (is_named and not name.isidentifier()):
            raise WrongUse(f"--input {text}: {size or 'nothing'} is no size: give a number, or a name with an example, as batch=8")
        sizes.append(int(number))
        if is_named:
            dims[dim] = Dim(name)
    dtype = DTYPES_BY_NAME[found[1]]
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point or dtype.is_complex:
        wide = dtype if dtype.itemsize >= 4 else torch.float32
        return torch.randn(sizes, dtype=wide, generator=generator).to(dtype), dims
    return torch.randint(0, 2, sizes, generator=generator).to(dtype), dims  # as indices these fit any table of two rows
