"""Files of graphs for other programs. A new form is one row of ``FORMS``."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from . import dot, model_explorer, onnx, svg
from .graph import Graph, parse


@dataclass(frozen=True)
class Form:
    write: Callable[[Graph], bytes]
    reader: str  # the program that opens it


FORMS = {
    ".dot": Form(dot.write, "Graphviz"),
    ".svg": Form(svg.write, "a browser"),
    ".onnx": Form(onnx.write, "Netron"),
    ".json": Form(model_explorer.write, "Model Explorer"),
}


def form_of(path: str) -> Form:
    """By the suffix of the path. Raises ValueError."""
    suffix = os.path.splitext(path)[1]
    if suffix not in FORMS:
        raise ValueError(f"{path} ends with none of {', '.join(FORMS)}")
    return FORMS[suffix]


def save(text: str, path: str) -> None:
    """Writes the graph of the text. Raises OSError, and ValueError where the suffix or the text is wrong."""
    form = form_of(path)
    data = form.write(parse(text))
    with open(path, "wb") as file:
        file.write(data)
