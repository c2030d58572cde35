"""The state of an archive: the tensors of modules and optimizers, and placeholders in their place while a function is recorded."""

import collections
import contextlib

import torch

from ._placeholders import own_tensors, show_placeholders


class State:
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
