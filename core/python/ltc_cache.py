"""``ltc cache``: the programs that are kept on disk. Needs no PyTorch; the files are those of core/base/disk_cache.h.

Only regular files are opened that have the names of this cache, and only those are deleted that begin as its files do.
"""

import os
import re
import stat
import struct
import sys
import time
import zlib
from pathlib import Path

USAGE = """usage: ltc cache list | verify | clear

  list     the programs, those used last first: size, time of the last use, what it is
  verify   check each file; names those that are damaged, and ends with 1 if there are any
  clear    delete all of them
"""
HEAD = struct.Struct("<8sIIQ")
MAGIC, FORMAT = b"ltcprog\n", 1
PROGRAM, TEMPORARY = re.compile(r"[0-9a-f]{32}\.ltc"), re.compile(r"[0-9a-f]{32}\.ltc\.[0-9a-f]{16}\.tmp")


def folder() -> Path:
    if named := os.environ.get("LTC_CACHE_DIR"):
        return Path(named)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "ltc"
    return Path.home() / ".cache" / "ltc"


def distrust(path: Path) -> str:
    """Why a process of this user takes nothing from the file or folder; empty if it does."""
    facts = path.stat()
    if facts.st_uid != os.geteuid():
        return f"user {facts.st_uid} owns it"
    return "others than its owner may write it" if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def begin_of(path: Path, size: int) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(size)


def inspect(path: Path) -> tuple[str, str]:
    """The file's description of itself, and its fault; one of the two is empty."""
    if wrong := distrust(path):
        return "", wrong
    head = begin_of(path, HEAD.size)
    if len(head) < HEAD.size or not head.startswith(MAGIC):
        return "", "no file of this cache"
    _, file_format, crc, size = HEAD.unpack(head)
    if file_format != FORMAT:
        return "", f"format {file_format}, this is {FORMAT}"
    if path.stat().st_size != HEAD.size + size:
        return "", "damaged"
    body = begin_of(path, HEAD.size + size)[HEAD.size:]
    if len(body) != size or zlib.crc32(body) != crc:
        return "", "damaged"
    (length,) = struct.unpack_from("<Q", body)
    return body[8:8 + length].decode(errors="replace"), ""


def files(pattern: re.Pattern) -> list[Path]:
    """The regular files whose names are of that form, those used last first."""
    found = {}
    for entry in os.scandir(folder()) if folder().is_dir() else []:
        if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            found[Path(entry.path)] = entry.stat().st_mtime
    return sorted(found, key=found.get, reverse=True)


def programs() -> list[Path]:
    return files(PROGRAM)


def list_programs() -> int:
    paths = programs()
    for path in paths:
        about, wrong = inspect(path)
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
        print(f"{path.stat().st_size:10,}  {used}  {path.name}  {about or wrong}")
    print(f"{len(paths)} programs, {sum(path.stat().st_size for path in paths):,} bytes in {folder()}")
    return 0


def verify() -> int:
    wrong = [(path, reason) for path in programs() if (reason := inspect(path)[1])]
    for path, reason in wrong:
        print(f"{path}: {reason}")
    print(f"{len(programs()) - len(wrong)} programs are sound, {len(wrong)} are not")
    if untrusted := folder().is_dir() and distrust(folder()):
        print(f"{folder()}: {untrusted}; no programs are taken from it")
    return 1 if wrong or untrusted else 0


def clear() -> int:
    own = [path for path in programs() if begin_of(path, len(MAGIC)) == MAGIC]
    own += [path for path in files(TEMPORARY) if MAGIC.startswith(begin_of(path, len(MAGIC)))]
    for path in own:
        path.unlink(missing_ok=True)
    print(f"{len(own)} files deleted from {folder()}")
    return 0


def main(args: list[str]) -> int:
    commands = {"list": list_programs, "verify": verify, "clear": clear}
    if len(args) != 1 or args[0] not in commands:
        print(USAGE, end="", file=sys.stderr)
        return 2
    return commands[args[0]]()
