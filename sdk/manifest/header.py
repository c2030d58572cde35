"""The headers as text: names that they define, and the comments before them."""

import re
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[1] / "include"
COMMENT = r"/\*((?:(?!\*/).)*)\*/\s*"
SLOT = re.compile(rf"(?:{COMMENT})?[\w ]+\*?\s*\(LTC_CALL\*\s*(\w+)\)\(", re.S)
STRUCT = re.compile(rf"(?:{COMMENT})?typedef (?:struct|union) (\w+) \{{(.*?)\n\}} \w+;", re.S)
MACROS = {"LTC_EXPORT", "LTC_CALL", "LTC_SIZE_TO", "LTC_HAS", "LTC_EXTENSION_KIND"}  # no values
GUARD = re.compile(r"LTC_\w+_H")


def read(abi):
    """The text of each header that the manifest names."""
    return {name: (INCLUDE / name).read_text() for name in sorted({entry["header"] for entry in abi["struct"] + abi["enum"]})}


def plain(comment):
    """A comment without the stars at its left."""
    return "\n".join(re.sub(r"^\s*\*? ?", "", line) for line in (comment or "").strip().splitlines())


def comments(texts):
    """By name of a slot or struct: the comment before it."""
    found = {}
    for text in texts.values():
        found |= {match[2]: plain(match[1]) for pattern in (SLOT, STRUCT) for match in pattern.finditer(text)}
    return found


def code(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def values(texts):
    """Names of enumerators and constants."""
    found = set()
    for text in map(code, texts.values()):
        for body in re.findall(r"enum \{(.*?)\}", text, re.S):
            found |= set(re.findall(r"LTC_\w+", body))
        found |= set(re.findall(r"#define (LTC_\w+)", text))
    return {name for name in found - MACROS if not GUARD.fullmatch(name)}


def fields(texts):
    """By struct: its fields in order."""
    found = {}
    for text in texts.values():
        for _, name, body in STRUCT.findall(text):
            body = re.sub(r"union \{.*?\}", "", code(body), flags=re.S)
            found[name] = re.findall(r"(?:\(LTC_CALL\*\s*(?=\w+\)\()|\b)(\w+)(?:\)\([^;]*\)|\[\d+\])?;", body)
    return found


def codes(comment):
    """The codes that a comment says a caller can act upon."""
    return set(re.findall(r"\b[A-Z]+_[A-Z_]+\b|\bUNSUPPORTED\b", comment.partition("Codes:")[2]))
