"""The command ``ltc``: what needs no PyTorch."""

import importlib.util
import os
import signal
import sys

USAGE = """usage: ltc COMMAND [ARGS]

  conformance ARGS   check a plugin's library: ltc conformance --backend lib.so; --help lists ARGS
  info [PLUGIN]      the plugins that are found, their devices and options
  cache COMMAND      the programs kept on disk: list, verify or clear
  sdk                print the folder of the SDK, for CMAKE_PREFIX_PATH
"""


def _package_path(*parts: str) -> str:
    """A path inside the package ltc, found without importing it: that would import torch. Exits where it is not there."""
    spec = importlib.util.find_spec("ltc")
    path = os.path.join(os.path.dirname(spec.origin), *parts) if spec else None
    if path is None or not os.path.exists(path):
        sys.exit(f"ltc: {path or 'the package ltc'} is not there: it was built without it")
    return path


def main() -> None:
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `ltc cache list | head` ends quietly
    command, args = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("help", [])
    if command in ("conformance", "info"):
        program = _package_path("bin", f"ltc-{command}")
        os.execv(program, [program, *args])
    elif command == "cache":
        import ltc_cache

        sys.exit(ltc_cache.main(args))
    elif command == "sdk" and not args:
        print(_package_path("sdk"))
    elif command in ("help", "-h", "--help"):
        print(USAGE, end="")
    else:
        sys.exit(f"{USAGE}\nltc: no such command: {' '.join(sys.argv[1:])}")


if __name__ == "__main__":
    main()
