"""A random program as text: it runs on any device and in any dtype, and what it computes can be compared and shortened.

A program is three lists of lines. `setup` makes tensors and modules, `body` runs `steps` times, and `outputs` names what a step leaves.
The text uses the names of NAMES and of Run below.
"""

import dataclasses
import re

import torch
import torch.nn.functional as F
from torch import nn

import ltc

NAMES = {"torch": torch, "nn": nn, "F": F}


class Run:
    """The context of one run of a program: where its tensors are, and a list for its results. `nudges`: floats a last bit away."""

    def __init__(self, device, dtype, nudges=False):
        self.device, self.dtype, self.nudges, self.results = torch.device(device), dtype, nudges, {}

    def names(self):
        return {**NAMES, "integers": self.integers, "normal": self.normal, "tokens": self.tokens, "module": self.module, "sync": self.sync,
                "note": self.note}

    def integers(self, *sizes, grad=False):
        """Small whole numbers: their sums and products are exact in any order."""
        return torch.randint(-3, 4, sizes).to(self.dtype).to(self.device).requires_grad_(grad)

    def normal(self, *sizes, grad=False):
        return self.nudged(torch.randn(*sizes, dtype=torch.float64).to(self.dtype)).to(self.device).requires_grad_(grad)

    def tokens(self, below, *sizes):
        return torch.randint(0, below, sizes).to(self.device)

    def module(self, made, frozen=False):
        made = made.to(self.dtype).to(self.device).requires_grad_(not frozen)
        if self.nudges:
            with torch.no_grad():
                for parameter in made.parameters():
                    parameter.copy_(self.nudged(parameter))
        return made

    def nudged(self, value):
        return value * (1 + torch.finfo(self.dtype).eps) if self.nudges else value

    def sync(self):
        if self.device.type == "ltc":
            ltc.mark_step()

    def note(self, name, value):
        """Keeps the value as it is now: the program may go on writing to it."""
        if isinstance(value, torch.Tensor):
            self.results[name] = (value.detach().clone(), (value.dtype, tuple(value.shape), value.stride(), value.storage_offset()))


@dataclasses.dataclass
class Program:
    setup: list
    body: list
    outputs: list
    tail: list = dataclasses.field(default_factory=list)
    steps: int = 1

    def text(self):
        notes = [f'note(f"{name} of step {{step}}", {name})' for name in self.outputs]
        inner = "\n".join("    " + line for line in [*self.body, *notes])
        return "\n".join([*self.setup, f"for step in range({self.steps}):", inner or "    pass", *self.tail])

    def run(self, device, dtype, nudges=False):
        """The results by name, on the CPU, with their geometry. Raises what the program raises."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            torch.manual_seed(0)
            run = Run(device, dtype, nudges)
            exec(compile(self.text(), "<program>", "exec"), run.names())  # noqa: S102
            return {name: (value.cpu(), geometry) for name, (value, geometry) in run.results.items()}
        finally:
            torch.set_default_dtype(before)

    def outcome(self, *args, **kwargs):
        """As run; where that raises, the exception."""
        try:
            return self.run(*args, **kwargs)
        except Exception as error:  # noqa: BLE001
            return error


def shorter_forms(program):
    """Programs with one line less, or with an expression replaced by a variable that it reads."""
    for i in reversed(range(len(program.body))):
        line = program.body[i]
        without = program.body[:i] + program.body[i + 1:]
        yield dataclasses.replace(program, body=without)
        made = re.match(r"(\w+) = (?!\w+$)", line)
        for name in dict.fromkeys(re.findall(r"\b[a-z]\d+\b", line[made.end():])) if made else ():
            yield dataclasses.replace(program, body=program.body[:i] + [f"{made[1]} = {name}"] + program.body[i + 1:])
    for i in range(len(program.outputs)):
        if len(program.outputs) > 1:
            yield dataclasses.replace(program, outputs=program.outputs[:i] + program.outputs[i + 1:])
    for i in reversed(range(len(program.setup))):
        yield dataclasses.replace(program, setup=program.setup[:i] + program.setup[i + 1:])
    if program.steps > 1:
        yield dataclasses.replace(program, steps=1)


def shorten(program, fails, most=400):
    """The shortest program found for which `fails` still holds, after at most that many trials."""
    trials = 0
    found = True
    while found and trials < most:
        found = False
        for candidate in shorter_forms(program):
            trials += 1
            if trials < most and fails(candidate):
                program, found = candidate, True
                break
    return program
