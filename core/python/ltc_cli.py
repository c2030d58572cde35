"""The command ``ltc``: a table of commands, and the code that reads it. Nothing here imports PyTorch; a script of ``ltc run`` may.

A new command is one row of ``COMMANDS``. Its help, errors and completion follow from the row.
"""

import argparse
import difflib
import functools
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

EXIT_CODES = """exit code:
  0  all is well
  1  the answer is no: a check failed, a file is damaged, 'ltc diff' found a difference, or a command could not do its work
  2  wrong use
  'ltc run' and 'ltc explain' end with the exit code of the script"""


class Argument:
    """The arguments of ``ArgumentParser.add_argument``."""

    def __init__(self, *names: str, **settings):
        self.names, self.settings = names, settings


@dataclass(frozen=True)
class Command:
    name: str
    help: str  # one line
    run: Callable | None = None  # takes the options that argparse read; returns the exit code, None for 0
    arguments: tuple[Argument, ...] = ()
    commands: tuple["Command", ...] = ()
    program: str = ""  # of the package; it reads the words that name none of `commands`, and has a help of its own
    subcommand: str = ""  # the first word that the program gets
    reads_words: bool = False  # `run` takes the words as they are
    args_behind_dashes: bool = False  # words behind -- are `args`, those of a script

    def options(self) -> dict[str, str]:
        """The long options with a line of help for each."""
        if self.program:
            return {"--help": "", **dict(re.findall(r"^  (--[\w-]+)(?: [A-Z,]+)?  +(.*)", _help_of(self.program), re.MULTILINE))}
        return {"--help": "", **{name: argument.settings.get("help", "") for argument in self.arguments for name in argument.names
                                 if name.startswith("--")}}

    def choices(self) -> dict[str, str]:
        """The words that may come next, options aside, with a line of help for each."""
        choices = {choice: "" for argument in self.arguments for choice in argument.settings.get("choices", ())}
        return {**{command.name: command.help for command in self.commands}, **choices}


def _package_path(*parts: str) -> str:
    """A path inside the package ltc, found without importing it: that would import torch. Exits where it is not there."""
    spec = importlib.util.find_spec("ltc")
    path = os.path.join(os.path.dirname(spec.origin), *parts) if spec else None
    if path is None or not os.path.exists(path):
        sys.exit(f"ltc: {path or 'the package ltc'} is not there: it was built without it")
    return path


@functools.cache
def _help_of(program: str) -> str:
    return subprocess.run([_package_path("bin", program), "--help"], capture_output=True, text=True).stdout


def _cache(options: argparse.Namespace) -> int:
    import ltc_cache

    return ltc_cache.COMMANDS[options.command](options.json)


def _warm(options: argparse.Namespace) -> int:
    import ltc_cache

    return ltc_cache.warm(options)


def _report(options: argparse.Namespace) -> None:
    from ltc_conformance.__main__ import run

    run(options)


def _run(options: argparse.Namespace) -> int:
    import ltc_run

    return ltc_run.run(options)


def _replay(options: argparse.Namespace) -> int:
    return _run(argparse.Namespace(**vars(options), args=[], is_module=False, summary=False, json=False, json_metrics=None))


def _explain(options: argparse.Namespace) -> int:
    if options.backend:
        os.environ["LTC_BACKEND"] = options.backend
    from ltc._explain import script

    return script.run(options)


def _export(options: argparse.Namespace) -> int:
    if options.backend:
        os.environ["LTC_BACKEND"] = options.backend
    from ltc import _export_command

    return _export_command.run(options)


def _graph(options: argparse.Namespace) -> int:
    from ltc_graphs import commands

    return commands.graph(options)


def _diff(options: argparse.Namespace) -> int:
    from ltc_graphs import commands

    return commands.diff(options)


def _sdk(options: argparse.Namespace) -> None:
    path = _package_path("sdk")
    print(json.dumps({"sdk": path}) if options.json else path)


def _completion(options: argparse.Namespace) -> None:
    import ltc_completion

    print(ltc_completion.script(options.shell, ROOT), end="")


def _new_backend(words: list[str]) -> int:
    """Copies the templates of the SDK into a new folder, with their placeholders replaced."""
    is_cpp = "--cpp" in words
    names = [word for word in words if word != "--cpp"]
    if len(names) != 1:
        wrong = [name for name in names if name.startswith("-")]
        sys.exit("\n".join(["usage: ltc new-backend NAME [--cpp]", *(_unknown("option", name, ["--help", "--cpp"]) for name in wrong)]))
    name = names[0]
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        sys.exit(f"ltc: '{name}' cannot be the name of a backend: use small letters and digits, with - or _ between them")
    if os.path.lexists(name):
        sys.exit(f"ltc: {name} exists already")
    language, suffix, standard = ("CXX", "cpp", "cxx_std_20") if is_cpp else ("C", "c", "c_std_99")
    capitals = name.upper().replace("-", "_")
    values = {"NAME": name, "NAME_IN_CAPITALS": capitals, "LANGUAGE": language, "SOURCE": f"plugin.{suffix}", "STANDARD": standard}
    for template in "common", suffix:
        root = _package_path("sdk", "templates", template)
        for folder, _, files in os.walk(root):
            target = os.path.join(name, os.path.relpath(folder, root))
            os.makedirs(target, exist_ok=True)
            for file in files:
                with open(os.path.join(folder, file), encoding="utf-8") as source:
                    text = re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], source.read())
                with open(os.path.join(target, file), "w", encoding="utf-8") as copy:
                    copy.write(text)
    print(f"{name} is ready. Next: cd {name}; cmake -B build && cmake --build build && ctest --test-dir build")
    return 0


JSON = Argument("--json", action="store_true", help="write JSON")
RESULTS = Argument("files", metavar="FILE", nargs="+", help="JSON of conformance runs, of one plugin or several")
BACKEND = Argument("--backend", metavar="PLUGIN", help="plugin, as in LTC_BACKEND; default: that variable, else torchscript")
SCRIPT = (
    Argument("-m", dest="is_module", action="store_true", help="SCRIPT is the name of a module"),
    Argument("script", metavar="SCRIPT", help="file or folder that Python can run"),
    Argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="arguments of the script"),
)
RUN_ARGUMENTS = (
    BACKEND,
    Argument("--summary", action="store_true", help="at the end, write one line of counters to standard error"),
    Argument("--json", action="store_true", help="the same as JSON"),
    Argument("--json-metrics", metavar="FILE", help="at the end, write the counters as JSON to FILE"),
    *SCRIPT,
)
WARM_ARGUMENTS = (
    BACKEND,
    Argument("--to", metavar="FOLDER", help="folder to keep them in, for LTC_CACHE_SHARED on another machine or for other users; default: the own one"),
    *SCRIPT,
)
EXPLAIN_ARGUMENTS = (
    BACKEND,
    Argument("--json", metavar="FILE", help="write all of the report as JSON to FILE; -: to standard output, and no text"),
    Argument("--html", metavar="PAGE", help="write one page that needs no network: timeline, programs, their graphs"),
    Argument("--beside", metavar="FILE", action="append", default=[], help="JSON of another run, to compare with on the page; may be repeated"),
    *SCRIPT,
)
EXPORT_ARGUMENTS = (
    BACKEND,
    Argument("-o", dest="to", metavar="FILE", help="archive to write; default: the script's name with .ltc"),
    Argument("--input", metavar="TYPE", action="append", default=[],
             help="an input as dtype and sizes, f32[1,3,224,224]; repeated for each in order; f32[batch=8,3] where a size varies"),
    Argument("--name", metavar="NAME", help="name of the function in the archive; default: its own, forward of a module"),
    Argument("--training", action="store_true", help="leave modules in training mode, and gradients on"),
    Argument("target", metavar="SCRIPT[:NAME]",
             help="module or function of a script; a class or function without parameters is called first. Without NAME: the function "
                  "`export`, which returns what ltc.export returns. Or a file .pt2 of torch.export. Behind --: arguments of the script"),
)
GRAPHS = "graph as ltc.graph() and LTC_LOG print it, or report of 'ltc explain --json'; FILE:3 is the third graph, or the report's program 3"
GRAPH_ARGUMENTS = (
    Argument("--to", metavar="PICTURE", help="file to write, for the program that its suffix names; default: print the text"),
    Argument("file", metavar="FILE", help=f"{GRAPHS}; default: the program that ran longest"),
)
COMMANDS = (
    Command("info", "list the plugins that are found, their devices and options, and the variables that are set", program="ltc-info"),
    Command("run", "run a Python script with a backend", _run, RUN_ARGUMENTS),
    Command("explain", "run a Python script, then say where its time went: by line, with the reason and what to do", _explain, EXPLAIN_ARGUMENTS),
    Command("graph", "write a graph for a browser (.svg), Graphviz (.dot), Netron (.onnx) or Model Explorer (.json)", _graph, GRAPH_ARGUMENTS),
    Command("diff", "say how two graphs or two runs differ, times aside", _diff,
            (JSON, Argument("a", metavar="A", help=GRAPHS), Argument("b", metavar="B", help="the same"))),
    Command("replay", "compute what a script of LTC_CHECK holds once more, on the device and on the CPU", _replay, (BACKEND, SCRIPT[1])),
    Command("cache", "look after the programs kept on disk", commands=(
        Command("list", "list the programs, last used first: size, time of the last use, description", _cache, (JSON,)),
        Command("verify", "check each file and name those that are damaged", _cache, (JSON,)),
        Command("clear", "delete all programs", _cache, (JSON,)),
        Command("warm", "run a script and keep the programs and kernels that it needs", _warm, WARM_ARGUMENTS),
    )),
    Command("conformance", "check a plugin's library", program="ltc-conformance", commands=(
        Command("levels", "print each plugin's level, and what is missing to the next", _report, (JSON, RESULTS)),
        Command("report", "write one HTML page that needs no network", _report,
                (Argument("--html", metavar="PAGE", required=True, help="file of the page"), RESULTS)),
    )),
    Command("export", "write a module or a function of a script as an archive", _export, EXPORT_ARGUMENTS, args_behind_dashes=True),
    Command("show", "list the functions of an archive of ltc.export: what they take, give and change", program="ltc-archive", subcommand="show"),
    Command("compile", "add the executables of a plugin's device to an archive", program="ltc-archive", subcommand="compile"),
    Command("check", "compile an archive's functions for a plugin and run its samples", program="ltc-archive", subcommand="check"),
    Command("serve", "answer HTTP requests with the functions of archives", program="ltc-serve"),
    Command("new-backend", "make the project of a plugin that builds, holds memory, and has tests", _new_backend,
            (Argument("name", metavar="NAME", help="name of the plugin and of the new folder"),
             Argument("--cpp", action="store_true", help="in C++ instead of C")), reads_words=True),
    Command("sdk", "print the folder of the SDK, for CMAKE_PREFIX_PATH", _sdk, (JSON,)),
    Command("completion", "print a script that completes commands and options in a shell", _completion,
            (Argument("shell", choices=("bash", "zsh"), help="the shell"),)),
)
ROOT = Command("ltc", "A lazy device for PyTorch.", commands=COMMANDS)


def _unknown(kind: str, word: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(word, list(known), 1)
    fault = f"no {kind} '{word}'" if word else f"a {kind} is missing"
    return f"{fault}; the nearest is '{nearest[0]}'" if nearest else f"{fault}; there are: {', '.join(known)}"


def _wrong_use(message: str) -> None:
    print(message, file=sys.stderr)
    sys.exit(2)


def _overview(row: Command, path: str) -> str:
    lines = [f"  {command.name:<14}{command.help}" for command in row.commands]
    begin = _help_of(row.program) if row.program else f"usage: {path} COMMAND [ARGS]\n\n{row.help}\n"
    return "\n".join([begin, *lines, "", f"'{path} COMMAND --help' tells more of a command.", "", EXIT_CODES])


class _Parser(argparse.ArgumentParser):
    def __init__(self, row: Command, path: str, words: list[str]):
        super().__init__(prog=path, description=row.help, epilog=EXIT_CODES, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.row, self.words = row, words
        for argument in row.arguments:
            self.add_argument(*argument.names, **argument.settings)

    def error(self, message: str) -> None:
        known = self.row.options()
        for word in self.words:  # a misspelt option is the cause of other errors
            if word.startswith("--") and len(word) > 2 and word.partition("=")[0] not in known:
                message = _unknown("option", word.partition("=")[0], known)
        _wrong_use(f"{self.format_usage()}{self.prog}: {message}")


def _dispatch(row: Command, words: list[str], path: str) -> int | None:
    first = words[0] if words else ""
    for command in row.commands:
        if command.name == first:
            return _dispatch(command, words[1:], f"{path} {first}")
    if row.commands and first in ("--help", "-h", "help"):
        print(_overview(row, path))
        return 0
    if row.commands and not (row.program and first[:1] in ("", "-")):
        kind, known = ("option", row.options()) if first.startswith("-") else ("command", row.choices())
        _wrong_use(f"{path}: {_unknown(kind, first, known)}\n'{path} --help' lists the commands")
    if row.program:
        return _become(row, words, path)
    args = []
    if row.args_behind_dashes and "--" in words:
        words, args = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = _Parser(row, path, words)
    if row.reads_words:
        return row.run(words) if first not in ("--help", "-h") else parser.print_help()
    options, more = parser.parse_known_args(words)
    if more:
        parser.error(f"there is an argument too many: '{more[0]}'")
    options.command = row.name
    if row.args_behind_dashes:
        options.args = args
    return row.run(options)


def _become(row: Command, words: list[str], path: str) -> None:
    known = row.options() if any(word.startswith("--") for word in words) else {}
    for word in words:
        if word.startswith("--") and word not in known:
            _wrong_use(f"{path}: {_unknown('option', word, known)}")
    program = _package_path("bin", row.program)
    os.execv(program, [program, *filter(None, [row.subcommand]), *words])


def main() -> None:
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `ltc cache list | head` ends quietly
    if code := _dispatch(ROOT, sys.argv[1:] or ["--help"], "ltc"):
        sys.exit(code)


if __name__ == "__main__":
    main()
