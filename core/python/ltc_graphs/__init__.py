"""Graphs in the text form of core/ir/text.h: read, compared, and written for other programs. Nothing here imports PyTorch."""

from .graph import Graph, Node, Param, parse

__all__ = ["Graph", "Node", "Param", "parse"]
