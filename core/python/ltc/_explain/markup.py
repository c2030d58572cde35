"""Pieces of HTML that several tables use."""

from html import escape

from .costs import without_backward
from .text import size_text, time_text

MOST_ROWS = 400  # of a table


def line_button(where: str) -> str:
    """A button that selects the line."""
    if not where:
        return ""
    return f'<button class="line" data-line="{escape(without_backward(where))}" title="{escape(where)}">{escape(short(where))}</button>'


def short(where: str) -> str:
    """Without the folders, but for the last one of a long path."""
    parts = where.split("/")
    return where if len(where) <= 40 or len(parts) < 3 else ".../" + "/".join(parts[-2:])


def change(ms: float, before: float, least: float = 0.1) -> str:
    """How much more or less; nothing below `least` milliseconds."""
    if abs(ms - before) < least:
        return ""
    return f' <b class="{"more" if ms > before else "less"}">{"+" if ms > before else "-"}{time_text(abs(ms - before))}</b>'


def size(count: int) -> str:
    return size_text(count).removeprefix(", ") or "0 bytes"


def letter(name: str) -> str:
    """The short name of a run."""
    return name.split(":")[0]
