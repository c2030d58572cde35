"""Follows a guide in Markdown: a sentence before each block of code says where the code goes, blocks of commands are run in between.

  Write `FILE`:                         the block is the file
  In `FILE`, instead of `TEXT`:         the block replaces the statement whose line begins with the text
  In `FILE`, above (below) `TEXT`:      the block is added above (below) the line that has the text
  From `FILE`:                          the block is a part of the file

A block ```text behind commands is what they print. Times, percentages and numbers with a fraction may differ; `...` stands for any text.
"""

import doctest
import os
import re
import shlex
import sys
from pathlib import Path

BLOCK = re.compile(r"(?P<before>[^\n]*(?:\n[^\n]+)*)\n\n```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"\d[\d.]* *(s|ms|us|%)(?!\w)|\d+\.\d+")
OUTPUT = Path("output.txt")  # of the commands before
SENTENCE = re.compile(r"(?:(Write) `([^`]+)`|In `([^`]+)`, (instead of|above|below) `([^`]+)`|(From) `([^`]+)`):$")


def blocks(guide):
    """Kind, file, place and text of each block that is followed: the sentence says the first three. Commands have the kind "sh",
    what they print the kind "text"."""
    found = list(BLOCK.finditer(guide))
    assert 2 * len(found) == len(re.findall("^```", guide, re.MULTILINE)), "each block stands behind a paragraph"
    for block in found:
        sentence = SENTENCE.search(block["before"].replace("\n", " "))
        if block["language"] in ("sh", "text"):
            yield block["language"], None, None, block["text"]
        elif sentence:
            write, written, edited_file, how, place, quote, quoted = sentence.groups()
            yield write or how or quote, written or edited_file or quoted, place, block["text"]
        else:
            assert not block["language"], f"no sentence says where this goes:\n{block['text']}"


def end_of(lines, begin):
    """The line behind a statement: behind its closing brace, or where its parentheses are closed."""
    if lines[begin].rstrip().endswith("{"):
        indent = re.match(" *", lines[begin])[0]
        return next(i for i in range(begin + 1, len(lines)) if lines[i].startswith(indent + "}")) + 1
    end = begin + 1
    while "".join(lines[begin:end]).count("(") > "".join(lines[begin:end]).count(")"):
        end += 1
    return end


def edited(text, how, place, code):
    lines = text.splitlines(keepends=True)
    found = [i for i, line in enumerate(lines) if (line.startswith(place) if how == "instead of" else place in line)]
    assert len(found) == 1, f"'{place}' is in {len(found)} lines"
    begin = found[0] + (how == "below")
    end = end_of(lines, begin) if how == "instead of" else begin
    return "".join([*lines[:begin], code, *lines[end:]])


def check_output(shown, output):
    expected, found = (VARYING.sub("N", text) for text in (shown, output))
    is_equal = doctest.OutputChecker().check_output(expected, found, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert is_equal, f"the guide shows:\n{shown}\nprinted is:\n{output}"


def follow(guide, number):
    """Does what the sentence before a block says, in the current folder."""
    how, name, place, code = list(blocks(guide))[number]
    if how == "text":
        return check_output(code, OUTPUT.read_text())
    file = Path(name)
    if how == "From":
        assert code in file.read_text(), f"{name} has no such part:\n{code}"
    else:
        file.write_text(code if how == "Write" else edited(file.read_text(), how, place, code))


def script(path):
    """All of a guide as commands of one shell."""
    this = shlex.join([sys.executable, os.path.abspath(__file__), str(path)])
    found = list(blocks(path.read_text()))
    lines = [f"trap '[[ ! -f {OUTPUT} ]] || cat {OUTPUT}' EXIT"]
    for number, (kind, *_, text) in enumerate(found):
        is_shown = found[number + 1 : number + 2] and found[number + 1][0] == "text"
        commands = text if kind == "sh" else f"{this} {number}"
        lines.append(f"{{\n{commands}\n}} > {OUTPUT} 2>&1" if is_shown else commands)
    return "\n".join(lines)


if __name__ == "__main__":
    follow(Path(sys.argv[1]).read_text(), int(sys.argv[2]))
