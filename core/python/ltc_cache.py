"""``ltc cache``: the programs that are kept on disk. Needs no PyTorch; the files are those of core/compile/disk_cache.h."""

import os
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


def folder() -> Path:
    if named := os.environ.get("LTC_CACHE_DIR"):
        return Path(named)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "ltc"
    return Path.home() / ".cache" / "ltc"


def inspect(path: Path) -> tuple[str, str]:
    """What the file says it is, and what is wrong with it; one of the two is empty."""
    data = path.read_bytes()
    if len(data) < HEAD.size or not data.startswith(MAGIC):
        return "", "no file of this cache"
    _, file_format, crc, size = HEAD.unpack_from(data)
    body = data[HEAD.size:]
    if file_format != FORMAT:
        return "", f"format {file_format}, this is {FORMAT}"
    if len(body) != size or zlib.crc32(body) != crc:
        return "", "damaged"
    (length,) = struct.unpack_from("<Q", body)
    return body[8:8 + length].decode(errors="replace"), ""


def programs() -> list[Path]:
    return sorted(folder().glob("*.ltc"), key=lambda path: path.stat().st_mtime, reverse=True)


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
    return 1 if wrong else 0


def clear() -> int:
    paths = [*folder().glob("*.ltc"), *folder().glob("*.ltc.*.tmp")]
    for path in paths:
        path.unlink(missing_ok=True)
    print(f"{len(paths)} files deleted from {folder()}")
    return 0


def main(args: list[str]) -> int:
    commands = {"list": list_programs, "verify": verify, "clear": clear}
    if len(args) != 1 or args[0] not in commands:
        print(USAGE, end="", file=sys.stderr)
        return 2
    return commands[args[0]]()
