"""A function of an archive as a file that ``torch.jit.load`` reads, in Python and in C++, without this project."""

import json
import warnings

import torch

REFUSED = "ltc.export: {}() cannot be saved as TorchScript: {}"


def _turned_rows(batch_sizes):
    """The rows of packed sequences with the steps of each sequence in the other order."""
    first_rows = [sum(batch_sizes[:step]) for step in range(len(batch_sizes))]
    steps = [sum(batch > k for batch in batch_sizes) for k in range(batch_sizes[0])]  # of each sequence
    return torch.tensor([first_rows[steps[k] - 1 - step] + k for step, batch in enumerate(batch_sizes) for k in range(batch)])


def _layer(layer, input, states, weights, reverse, batch_sizes=None):
    """One layer in one direction, of input [steps, rows, features] and states [rows, features]. Packed sequences: input [rows, features],
    the rows of each step behind those of the step before."""
    weights = [weight for weight in weights if weight is not None]
    states = [state.unsqueeze(0) for state in states]
    turned = (lambda x: x) if not reverse else (lambda x: x.flip(0)) if batch_sizes is None else (lambda x: x[_turned_rows(batch_sizes)])
    sizes, layout = ((), (False,)) if batch_sizes is None else ((torch.tensor(batch_sizes),), ())
    output, *states = layer(turned(input), *sizes, states if len(states) > 1 else states[0], weights, len(weights) > 3, 1, 0.0, False, False, *layout)
    return [turned(output), *(state.squeeze(0) for state in states), None]  # a backward alone reads the reserve


# The ops of this project, as calls of PyTorch's: operands by place, attributes by name.
OWN_OPS = {
    "ltc::lstm_layer": lambda input, hx, cx, *weights, reverse, train: _layer(torch.lstm, input, [hx, cx], weights, reverse),
    "ltc::gru_layer": lambda input, hx, *weights, reverse, train: _layer(torch.gru, input, [hx], weights, reverse),
    "ltc::packed_lstm_layer": lambda input, hx, cx, *weights, batch_sizes, reverse, train: _layer(
        torch.lstm, input, [hx, cx], weights, reverse, batch_sizes),
    "ltc::packed_gru_layer": lambda input, hx, *weights, batch_sizes, reverse, train: _layer(
        torch.gru, input, [hx], weights, reverse, batch_sizes),
    "ltc::packed_rnn_layer": lambda input, hx, *weights, nonlinearity, batch_sizes, reverse: _layer(
        {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu}[nonlinearity], input, [hx], weights, reverse, batch_sizes)[:2],
    "ltc::roll": lambda self, shift, dim: torch.roll(self, shift, dim),
    "ltc::ctc_loss": lambda *operands, blank, zero_infinity: torch.ops.aten._ctc_loss.Tensor(*operands, blank, zero_infinity),
    "ltc::as_strided": lambda self, offset, size, stride: torch.as_strided(self.contiguous(), size, stride, offset),
    "ltc::as_strided_scatter": lambda self, src, offset, size, stride: torch.as_strided_scatter(self.contiguous(), src, size, stride, offset),
}


class Graph(torch.nn.Module):
    """Calls the graph of an exported function op by op, on PyTorch's own kernels. To be traced."""

    def __init__(self, function: dict, graph: dict, values: dict, dtypes: dict):
        super().__init__()
        self.function, self.dtypes = function, dtypes
        self.params, self.nodes, self.outputs = graph["params"], graph["nodes"], graph["outputs"]
        self.places = {}  # by name of a value, the buffer
        for name in [source[kind] for source in self._sources() for kind in ("state", "constant") if kind in source]:
            if name not in self.places:
                self.places[name] = _buffer_name(name, self.places)
                self.register_buffer(self.places[name], values[name].clone())
        for node in self.nodes:
            if node["op"] not in OWN_OPS:
                self._op(node["op"])

    def _sources(self):
        return [*self.function["params"], *(one["from"] for one in (*self.function["results"], *self.function["updates"])),
                *({"state": update["state"]} for update in self.function["updates"])]  # fmt: skip

    def _op(self, name):
        namespace, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if namespace != "aten" or not hasattr(torch.ops.aten, packet):
            raise RuntimeError(REFUSED.format(self.function["name"], f"PyTorch has no op {name}"))
        return getattr(getattr(torch.ops.aten, packet), overload or "default")

    def forward(self, *inputs):
        sources, numbers = iter(self.function["params"]), iter(self.function["numbers"])
        values = {}
        for param in self.params:
            values[param["value"]] = _number(next(numbers)) if param.get("number") else self._value(next(sources), inputs, values)
        for node in self.nodes:
            results = self._call(node, values)
            values.update((result["value"], value) for result, value in zip(node["results"], results) if result)
        results = [self._value(result["from"], inputs, values).clone() for result in self.function["results"]]
        new = [self._value(update["from"], inputs, values).clone() for update in self.function["updates"]]
        for update, value in zip(self.function["updates"], new):
            getattr(self, self.places[update["state"]]).copy_(value)
        return results[0] if len(results) == 1 else tuple(results)

    def _value(self, source, inputs, values):
        ((kind, where),) = source.items()
        if kind == "input":
            return inputs[where]
        return values[self.outputs[where]] if kind == "output" else getattr(self, self.places[where])

    def _call(self, node, values):
        operands = [None if value is None else values[value] for value in node["operands"]]
        if node["op"] in OWN_OPS:
            result = OWN_OPS[node["op"]](*operands, **node["attributes"])
            return result if isinstance(result, (tuple, list)) else [result]
        op = self._op(node["op"])
        given = {}
        for argument in op._schema.arguments:
            count = node["attributes"].get(f"{argument.name}.count")
            if argument.name in node["attributes"]:
                given[argument.name] = self._attribute(argument, node["attributes"][argument.name])
            elif count is not None:
                given[argument.name], operands = operands[:count], operands[count:]
            elif operands:
                given[argument.name] = operands.pop(0)
        if op._schema.name in ("aten::as_strided", "aten::as_strided_scatter"):
            given["self"] = given["self"].contiguous()  # a value of a graph has no strides
        positional = [given.pop(argument.name) for argument in op._schema.arguments if argument.name in given and not argument.kwarg_only]
        result = op(*positional, **given)
        return result if isinstance(result, (tuple, list)) else [result]

    def _attribute(self, argument, value):
        """Texts stand for dtypes and for numbers that JSON does not have."""
        if not isinstance(value, str) or "str" in str(argument.type):
            return value
        return self.dtypes[value] if value in self.dtypes else float(value)


def _number(number):
    value = number["value"]
    return float(value) if isinstance(value, str) else value


def _buffer_name(name, places):
    """TorchScript's names have no dots."""
    plain = name.replace(".", "_")
    while plain in places.values() or hasattr(torch.nn.Module, plain):
        plain += "_"
    return plain


def save(path, function, entries, values, dtypes):
    """Writes it, from the parts of ltc.export's Exported. `values`: state and constants on the CPU."""
    name = function["name"]
    for member, reason in (("draws", "it draws random numbers from a generator of its own"), ("dimensions", "its sizes vary")):
        if function.get(member):
            raise RuntimeError(REFUSED.format(name, reason))
    graph = json.loads(dict(entries)[f"functions/{name}/graph.json"])
    module = Graph(function, graph, values, dtypes)
    inputs = tuple(torch.zeros(one["shape"], dtype=dtypes[one["dtype"]]) for one in function["inputs"])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(module, inputs, check_trace=False)
        for held, place in module.places.items():  # the trace ran it once
            getattr(traced, place).copy_(values[held])
        torch.jit.save(traced, path)
