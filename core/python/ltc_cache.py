"""``ltc cache``: the programs that are kept on disk. Needs no PyTorch; the files are those of core/base/disk_cache.h.

Only regular files are opened that have the names of this cache, and only those are deleted that begin as its files do.
"""

import argparse
import json
import os
import re
import stat
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

HEAD = struct.Struct("<8sIIQ")
MAGIC, FORMAT = b"ltcprog\n", 1
PATIENCE_S, WIDTH = 2, 40  # of progress bars
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


def with_progress(paths: list[Path]) -> Iterator[Path]:
    """The paths, with a progress bar on a terminal where they take more than PATIENCE_S."""
    begin, shown = time.monotonic(), False
    for count, path in enumerate(paths):
        if sys.stderr.isatty() and time.monotonic() - begin > PATIENCE_S:
            shown = True
            done = WIDTH * count // len(paths)
            print(f"\r[{'#' * done}{'.' * (WIDTH - done)}] {count} of {len(paths)}", end="", file=sys.stderr, flush=True)
        yield path
    if shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def list_programs(as_json: bool) -> int:
    found = []
    for path in with_progress(programs()):
        facts = path.stat()
        found.append((path, facts.st_size, time.localtime(facts.st_mtime), *inspect(path)))
    total = sum(size for _, size, *_ in found)
    if as_json:
        files = [{"file": path.name, "bytes": size, "used": time.strftime("%Y-%m-%dT%H:%M:%S%z", used), "about": about, "fault": wrong}
                 for path, size, used, about, wrong in found]
        print(json.dumps({"folder": str(folder()), "bytes": total, "programs": files}, indent=2))
        return 0
    for path, size, used, about, wrong in found:
        print(f"{size:10,}  {time.strftime('%Y-%m-%d %H:%M', used)}  {path.name}  {about or wrong}")
    print(f"{len(found)} programs, {total:,} bytes in {folder()}")
    return 0


def verify(as_json: bool) -> int:
    paths = programs()
    wrong = [(path, reason) for path in with_progress(paths) if (reason := inspect(path)[1])]
    untrusted = distrust(folder()) if folder().is_dir() else ""
    if as_json:
        faults = [{"file": path.name, "fault": reason} for path, reason in wrong]
        print(json.dumps({"folder": str(folder()), "folder_fault": untrusted, "sound": len(paths) - len(wrong), "faults": faults}, indent=2))
        return 1 if wrong or untrusted else 0
    for path, reason in wrong:
        print(f"{path}: {reason}")
    print(f"{len(paths) - len(wrong)} programs are sound, {len(wrong)} are not")
    if untrusted:
        print(f"{folder()}: {untrusted}; no programs are taken from it")
    return 1 if wrong or untrusted else 0


def clear(as_json: bool) -> int:
    own = [path for path in programs() if begin_of(path, len(MAGIC)) == MAGIC]
    own += [path for path in files(TEMPORARY) if MAGIC.startswith(begin_of(path, len(MAGIC)))]
    for path in own:
        path.unlink(missing_ok=True)
    print(json.dumps({"folder": str(folder()), "deleted": len(own)}) if as_json else f"{len(own)} files deleted from {folder()}")
    return 0


def warm(options: argparse.Namespace) -> int:
    """Runs a script whose programs and kernels are all kept, in a folder that others may read where one is named. Its exit code."""
    import ltc_run

    os.environ["LTC_CACHE"] = "1"
    os.environ.setdefault("LTC_TORCHSCRIPT_KERNELS", "sync")  # those in the background might not be ready before the end
    if options.to:
        os.environ["LTC_CACHE_DIR"] = os.path.abspath(options.to)
        os.makedirs(os.path.dirname(folder()), exist_ok=True)
    before, begin = set(programs()), time.time()
    code: object = 1
    try:
        code = ltc_run.run(argparse.Namespace(**vars(options), summary=False, json=False, json_metrics=None))
    except SystemExit as end:
        code = end.code
    if hasattr(ltc := sys.modules.get("ltc"), "sync"):
        ltc.sync()
    used = [path for path in programs() if path.stat().st_mtime >= begin - 1]
    if options.to and folder().is_dir():
        for path in programs():
            path.chmod(0o644)
        folder().chmod(0o755)
    total = sum(path.stat().st_size for path in used)
    if "ltc" in sys.modules:
        new = len(set(used) - before)
        print(f"ltc: the script uses {len(used)} programs and kernels, {total:,} bytes, of {folder()}; {new} are new", file=sys.stderr)
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
    return 0 if code is None else code if isinstance(code, int) else 1


COMMANDS = {"list": list_programs, "verify": verify, "clear": clear}
