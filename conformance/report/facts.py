"""The facts of a run, for programs that write results of a plugin: they are those of ltc-conformance, so that results can be matched."""

import importlib.util
import json
import os
import subprocess
import tempfile

_CHECK = "Loader.describe_says_what_the_plugin_is"
_KEYS = ("abi", "host", "plugin", "machine")


def facts(backend=None):
    """ABI, host, plugin and machine as ltc-conformance reports them for `backend`, by default that of LTC_BACKEND."""
    backend = backend or os.environ.get("LTC_BACKEND") or "torchscript"
    program = os.path.join(os.path.dirname(importlib.util.find_spec("ltc").origin), "bin", "ltc-conformance")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "facts.json")
        ran = subprocess.run([program, "--backend", backend, "--filter", _CHECK, "--json", path], capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"{program} says nothing of the plugin {backend}: {ran.stdout}{ran.stderr}")
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    return {key: result[key] for key in _KEYS}
