"""The command `ltc info`: what it lists, and that it survives every plugin."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import ltc

PACKAGE = Path(ltc.__file__).parent
TEST_PLUGINS = PACKAGE.parents[1] / "tests" / "plugins"


def info(folder, *args):
    environment = {**os.environ, "LTC_PLUGIN_PATH": str(folder)}
    return subprocess.run([PACKAGE / "bin" / "ltc-info", *args], env=environment, capture_output=True, text=True, timeout=60)


def test_it_lists_plugins_with_devices_and_options(tmp_path):
    listed = info(tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "torchscript: torchscript " in listed.stdout and "  1 device\n" in listed.stdout and "  option kernels=" in listed.stdout


@pytest.mark.skipif(not TEST_PLUGINS.exists(), reason="no unit tests in this build")
def test_a_plugin_that_ends_the_process_is_named_and_the_others_are_listed(tmp_path):
    for name in ("test_exits_in_describe", "test_not_a_plugin", "test_two"):
        shutil.copy(TEST_PLUGINS / f"libltc_{name}.so", tmp_path)
    listed = info(tmp_path)
    assert listed.returncode == 0, listed.stderr
    path = tmp_path / "libltc_test_exits_in_describe.so"
    assert f"refused, and dangerous to load\n  [test_exits_in_describe] {path}: it ended the process with exit code 3\n" in listed.stdout
    assert "test_not_a_plugin: refused\n" in listed.stdout
    assert "  2 devices\n" in listed.stdout
