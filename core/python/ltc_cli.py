"""The command ``ltc``: what needs no PyTorch."""

import importlib.util
import os
import re
import signal
import sys

USAGE = """usage: ltc COMMAND [ARGS]

  conformance ARGS   check a plugin's library: ltc conformance --backend lib.so; --help lists ARGS
  conformance levels FILES, conformance report --html PAGE FILES
                     what results of conformance runs say of plugins; --help lists FILES
  info [PLUGIN]      the plugins that are found, their devices and options
  cache COMMAND      the programs kept on disk: list, verify or clear
  sdk                print the folder of the SDK, for CMAKE_PREFIX_PATH
  new-backend NAME [--cpp]
                     make the folder NAME with the project of a plugin in C or C++ that builds, holds memory, and has tests
"""


def _package_path(*parts: str) -> str:
    """A path inside the package ltc, found without importing it: that would import torch. Exits where it is not there."""
    spec = importlib.util.find_spec("ltc")
    path = os.path.join(os.path.dirname(spec.origin), *parts) if spec else None
    if path is None or not os.path.exists(path):
        sys.exit(f"ltc: {path or 'the package ltc'} is not there: it was built without it")
    return path


def _new_backend(args: list[str]) -> None:
    """Copies the templates of the SDK into a new folder, with their placeholders replaced."""
    is_cpp = "--cpp" in args
    names = [arg for arg in args if arg != "--cpp"]
    if len(names) != 1:
        sys.exit("usage: ltc new-backend NAME [--cpp]")
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


def main() -> None:
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `ltc cache list | head` ends quietly
    command, args = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("help", [])
    if command == "conformance" and args[:1] in (["levels"], ["report"]):
        from ltc_conformance.__main__ import main as report

        report(args)
    elif command in ("conformance", "info"):
        program = _package_path("bin", f"ltc-{command}")
        os.execv(program, [program, *args])
    elif command == "cache":
        import ltc_cache

        sys.exit(ltc_cache.main(args))
    elif command == "sdk" and not args:
        print(_package_path("sdk"))
    elif command == "new-backend":
        _new_backend(args)
    elif command in ("help", "-h", "--help"):
        print(USAGE, end="")
    else:
        sys.exit(f"{USAGE}\nltc: no such command: {' '.join(sys.argv[1:])}")


if __name__ == "__main__":
    main()
