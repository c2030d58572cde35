"""ONNX, which Netron opens. The ops keep their names, in domains such as "aten": no runtime of ONNX computes them.

The file is a message of protobuf, in which each field is a number, a kind and bytes: https://protobuf.dev/programming-guides/encoding. The
numbers of fields and types are those of onnx.proto: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import re
import struct

from .graph import Graph, Node, split_type

IR_VERSION = 10  # the first one in which nodes have metadata
TYPES = {"f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11, "u32": 12, "u64": 13, "c64": 14,
         "c128": 15, "bf16": 16, "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19, "f8e5m2fnuz": 20, "f8e8m0fnu": 24}  # fmt: skip

_CODES = {'"': '"', "\\": "\\", "n": "\n"}  # behind a backslash


def write(graph: Graph) -> bytes:
    shown = [value for value in dict.fromkeys(graph.outputs) if value is not None]
    params = {param.value for param in graph.params}
    inner = [value for value in graph.types if value not in params and value not in shown]
    body = b"".join(_field(1, _node(i, node)) for i, node in enumerate(graph.nodes)) + _field(2, "graph")
    for number, values in (11, params), (12, shown), (13, inner):
        body += b"".join(_field(number, _value(value, graph.types[value])) for value in values)
    domains = dict.fromkeys(["", *(_split(node.op)[0] for node in graph.nodes)])
    return b"".join([_field(1, IR_VERSION), _field(2, "ltc"), _field(7, body),
                     *(_field(8, _field(1, domain) + _field(2, 1 if domain else 21)) for domain in domains)])  # fmt: skip


def _node(i: int, node: Node) -> bytes:
    domain, name = _split(node.op)
    op, _, overload = name.partition(".")  # Netron shows what is behind a dot
    fields = [_field(1, _name(value)) for value in node.inputs] + [_field(2, _name(value)) for value in node.outputs]
    fields += [_field(3, f"{i}"), _field(4, op), _field(7, domain), _field(8, overload)]
    fields += [_field(5, _attribute(name, text)) for name, text in node.attribute_texts.items()]
    if node.line:
        fields.append(_field(9, _field(1, "line") + _field(2, node.line)))
    return b"".join(fields)


def _split(op: str) -> tuple[str, str]:
    domain, _, name = op.rpartition("::")
    return domain, name


def _name(value: int | None) -> str:
    return "" if value is None else f"%{value}"


def _value(value: int, kind: str) -> bytes:
    dtype, sizes, _ = split_type(kind)
    shape = b"".join(_field(1, _field(1, size)) for size in sizes)
    tensor = _field(1, TYPES.get(dtype, 0)) + _field(2, shape)
    described = _field(4, _field(1, "type") + _field(2, kind))  # strides too, and types that ONNX lacks
    return _field(1, _name(value)) + _field(2, _field(1, tensor)) + described


def _attribute(name: str, text: str) -> bytes:
    """An attribute in the text form of graphs. A boolean is 0 or 1; none and a dtype are strings."""
    is_list = text.endswith("]")
    items = _items(text) if is_list else [_item(text)]
    kind = str if text.startswith("strings") else float if text.startswith("floats") else type(items[0]) if items else int
    number, code = {float: (2, 1), int: (3, 2), str: (4, 3)}[kind]
    if is_list:
        number, code = number + 5, code + 5
    return _field(1, name) + b"".join(_field(number, item) for item in items) + _field(20, code)


def _items(text: str) -> list:
    return [_item(item) for item in re.findall(r'"(?:\\.|[^"\\])*"|[^,\[\]]+', text[text.index("[") + 1 : -1])]


def _item(text: str) -> int | float | str:
    if text.startswith('"'):
        return re.sub(r"\\(x..|.)", lambda match: _CODES.get(match[1]) or chr(int(match[1][1:], 16)), text[1:-1])
    if text in ("true", "false"):
        return int(text == "true")
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        return text


# ---- protobuf


def _field(number: int, value: int | float | str | bytes) -> bytes:
    """A field of the kind that fits the value: a varint, a float of 32 bits, or bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & (1 << 64) - 1)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Seven bits in each byte, the low ones first."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
