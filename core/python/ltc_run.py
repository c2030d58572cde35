"""``ltc run``: a script as Python runs it, with a backend, and a summary of its counters at the end."""

import argparse
import builtins
import importlib.machinery
import importlib.util
import json
import os
import runpy
import signal
import sys
import time
import types
import zipfile

STEPS = ("MarkStep", "OptimizerStepBarrier", "BackwardBarrier", "RepetitionBarrier", "KnownStepBarrier")
COUNTERS = {  # core/report/metrics.h
    "runs": "ProgramRuns",
    "compiled": "UncachedCompile",
    "cache_hits": "CachedCompile",
    "disk_cache_hits": "DiskCacheHits",
    "bytes_to_device": "BytesToDevice",
    "bytes_from_device": "BytesFromDevice",
}


# Files whose frames are not the script's.
OURS = ("ltc_run.py", "ltc_cli.py", "script.py", "_export_command.py", "runpy.py", "<frozen runpy>", "<frozen importlib._bootstrap>",
        "<frozen importlib._bootstrap_external>")  # fmt: skip


class NoScript(Exception):
    """There is nothing to run."""


def _put_first(folder: str | None) -> None:
    """Replaces the folder of this program in sys.path, as Python has that of the script there; None removes it."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[:1] = [folder] if folder else []


def _run_file(path: str) -> None:
    # Not runpy.run_path: it changes sys.argv[0], and takes __main__ away before handlers of atexit run.
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    main = types.ModuleType("__main__")
    main.__file__, main.__loader__, main.__builtins__ = path, loader, builtins
    sys.modules["__main__"] = main
    exec(compile(loader.get_data(path), path, "exec", dont_inherit=True), main.__dict__)


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def run_script(options: argparse.Namespace) -> None:
    """Runs `options.script` with `options.args`, as a module with `options.is_module`. Throws what it throws, SystemExit too."""
    script, path = options.script, os.path.abspath(options.script)
    sys.argv = [script, *options.args]
    if options.is_module:
        _put_first(os.getcwd())
        if not _has_module(script):
            raise NoScript(f"no module '{script}'")
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    elif not os.path.exists(path):
        raise NoScript(f"no script {script}")
    elif os.path.isdir(path) or zipfile.is_zipfile(path):
        _put_first(None)
        runpy.run_path(path, run_name="__main__")  # puts the path there
    else:
        _put_first(os.path.dirname(os.path.realpath(path)))
        _run_file(path)


def import_script(script: str, args: list[str]) -> dict:
    """The members of a script, or of a module by name, after an import: its `__name__` is not `__main__`, so a main program stays out."""
    path = os.path.abspath(script)
    sys.argv = [script, *args]
    if os.path.isfile(path):
        _put_first(os.path.dirname(os.path.realpath(path)))
        name = os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location(name, path, loader=importlib.machinery.SourceFileLoader(name, path))
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return vars(module)
    _put_first(os.getcwd())
    if script.endswith(".py") or "/" in script or not _has_module(script):
        raise NoScript(f"no script and no module '{script}'")
    return vars(importlib.import_module(script))


def print_error(error: BaseException) -> None:
    """As Python prints it, without the frames of these commands."""
    frames = error.__traceback__
    while frames and os.path.basename(frames.tb_frame.f_code.co_filename) in OURS:
        frames = frames.tb_next
    sys.excepthook(type(error), error.with_traceback(frames), frames)


def _summary(seconds: float) -> dict:
    ltc = sys.modules.get("ltc")
    if not hasattr(ltc, "metrics"):  # the script has not imported PyTorch
        return {"steps": 0, **dict.fromkeys(COUNTERS, 0), "fallbacks": [], "seconds": seconds}
    counters = {"steps": sum(map(ltc.metrics.counter_value, STEPS))}
    counters |= {name: ltc.metrics.counter_value(counter) for name, counter in COUNTERS.items()}
    return {**counters, "fallbacks": ltc.metrics.fallbacks(), "seconds": seconds}


def _text(summary: dict) -> str:
    ops = ", ".join(f"{one['op']} {one['count']}" for one in summary["fallbacks"])
    count = sum(one["count"] for one in summary["fallbacks"])
    values = {**summary, "fallbacks": f"{count} ({ops})" if ops else 0}
    return "ltc: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())


def _report(options: argparse.Namespace, begin: float) -> None:
    if not (options.summary or options.json or options.json_metrics):
        return
    if hasattr(ltc := sys.modules.get("ltc"), "wait_device_ops"):
        try:
            ltc.wait_device_ops()  # the transfers of the last step count too
        except Exception as error:  # of values that the script did not read
            print(f"ltc run: {error}", file=sys.stderr)
    summary = _summary(round(time.monotonic() - begin, 3))
    if options.json_metrics:
        try:
            with open(options.json_metrics, "w", encoding="utf-8") as file:
                json.dump(summary, file, indent=2)
        except OSError as error:  # the end of the script stays what it was
            print(f"ltc run: {error.filename}: {error.strerror}", file=sys.stderr)
    if options.summary or options.json:
        sys.stdout.flush()
        print(json.dumps(summary) if options.json else _text(summary), file=sys.stderr)


def run(options: argparse.Namespace) -> int:
    """Runs the script. Returns 1 where an exception ends it, else 0; its own exit comes as SystemExit."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python has it
    os.environ["LTC_BACKEND"] = options.backend or os.environ.get("LTC_BACKEND") or "torchscript"
    begin = time.monotonic()
    try:
        run_script(options)
    except NoScript as error:
        print(f"ltc run: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        print_error(error)
        return 1
    finally:
        _report(options, begin)
    return 0
