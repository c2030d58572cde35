"""The command `ltc info`: what it lists, and that it survives every plugin."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import ltc

PACKAGE = Path(ltc.__file__).parent
TEST_PLUGINS = PACKAGE.parents[1] / "tests" / "plugins"


def info(folder, *args, **variables):
    environment = {**os.environ, "LTC_PLUGIN_PATH": str(folder), **variables}
    return subprocess.run([PACKAGE / "bin" / "ltc-info", *args], env=environment, capture_output=True, text=True, timeout=60)


def test_it_lists_plugins_with_devices_and_options(tmp_path):
    listed = info(tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "torchscript: torchscript " in listed.stdout and "  1 device\n" in listed.stdout and "  option kernels=" in listed.stdout
    assert re.search(r"\n  1 device\n  device 0: libtorch CPU, [\d.]+ GB\n", listed.stdout)


@pytest.mark.skipif(not TEST_PLUGINS.exists(), reason="no unit tests in this build")
def test_a_plugin_that_ends_the_process_is_named_and_the_others_are_listed(tmp_path):
    for name in ("test_exits_in_describe", "test_not_a_plugin", "test_two"):
        shutil.copy(TEST_PLUGINS / f"libltc_{name}.so", tmp_path)
    listed = info(tmp_path)
    assert listed.returncode == 0, listed.stderr
    path = tmp_path / "libltc_test_exits_in_describe.so"
    assert f"refused, and dangerous to load\n  [test_exits_in_describe] {path}: it ended the process with exit code 3, in describe\n" in listed.stdout
    assert "test_not_a_plugin: refused\n" in listed.stdout
    assert "  2 devices\n" in listed.stdout


@pytest.mark.skipif(not TEST_PLUGINS.exists(), reason="no unit tests in this build")
@pytest.mark.parametrize("deed, told", [
    ("crashes", "it ended the process by signal 11, Segmentation fault"),
    ("aborts", "it ended the process by signal 6, Aborted"),
    ("exits", "it ended the process with exit code 3"),
    ("spins", "it gave no answer within 2 s"),
])
@pytest.mark.parametrize("where, slot", [
    ("in its constructor", "the loading of its library"),
    ("in ltc_plugin_entry", "ltc_plugin_entry"),
    ("in describe", "describe"),
])
def test_what_no_process_survives_is_named_with_its_slot(tmp_path, deed, told, where, slot):
    for name in ("test_hostile", "test_two"):
        shutil.copy(TEST_PLUGINS / f"libltc_{name}.so", tmp_path)
    listed = info(tmp_path, "--timeout", "2", LTC_TEST_HOSTILE_DEADLY=f"{deed} {where}")
    assert listed.returncode == 0, listed.stderr
    path = tmp_path / "libltc_test_hostile.so"
    assert f"test_hostile: refused, and dangerous to load\n  [test_hostile] {path}: {told}, in {slot}\n" in listed.stdout
    assert "  2 devices\n" in listed.stdout


@pytest.mark.skipif(not TEST_PLUGINS.exists(), reason="no unit tests in this build")
def test_a_fault_that_the_host_refuses_is_told_in_its_words(tmp_path):
    shutil.copy(TEST_PLUGINS / "libltc_test_hostile.so", tmp_path)
    (tmp_path / "libltc_cut.so").write_bytes((tmp_path / "libltc_test_hostile.so").read_bytes()[:5000])
    listed = info(tmp_path, LTC_TEST_HOSTILE_FAULT="null_option")
    assert listed.returncode == 0, listed.stderr
    path = tmp_path / "libltc_test_hostile.so"
    assert f"test_hostile: refused\n  [test_hostile] {path}: describe gives no option 1 of 3\n" in listed.stdout
    assert f"cut: refused\n  [cut] {tmp_path}/libltc_cut.so: the file is cut short: it has 5000 bytes\n" in listed.stdout


def test_it_tells_the_version_the_variables_and_the_cache(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / ("a" * 32 + ".ltc")).write_bytes(b"ltcprog\n")
    (cache / "notes").write_bytes(b"ltcprog\n")
    variables = {"LTC_CACHE": "1", "LTC_CACHE_DIR": str(cache), "LTC_FALBACK": "warn", "LTC_EAGER": "on"}
    text = info(tmp_path, **variables).stdout
    assert text.startswith(f"ltc {ltc.__version__}, ABI 1.0\n") and "  LTC_FALBACK=warn\n" in text
    problems = ["nothing reads the environment variable LTC_FALBACK; the nearest that is read is LTC_FALLBACK", "LTC_EAGER is 'on'; it may be 0 or 1"]
    assert all(f"  {problem}\n" in text for problem in problems)
    assert f"  1 programs, 8 bytes in {cache}\n" in text
    told = json.loads(info(tmp_path, "--json", **variables).stdout)
    assert (told["version"], told["abi"], told["warnings"]) == (ltc.__version__, "1.0", problems)
    assert told["variables"].items() >= variables.items() and told["folders"][0] == str(tmp_path)
    assert told["cache"] == {"folder": str(cache), "programs": 1, "bytes": 8}
    assert json.loads(info(tmp_path, "--json", LTC_CACHE="0").stdout)["cache"] is None
    one, = json.loads(info(tmp_path, "--json", "torchscript:kernels=sync").stdout)["plugins"]
    assert one == next(plugin for plugin in told["plugins"] if plugin["plugin"] == "torchscript")
    assert one["devices"] == 1 and one["options"][0].keys() == {"name", "default", "about"}
    device, = one["device_list"]
    assert device["name"] == "libtorch CPU" and device["memory_bytes"] > 0


@pytest.mark.skipif(not TEST_PLUGINS.exists(), reason="no unit tests in this build")
def test_refused_plugins_as_json(tmp_path):
    for name in ("test_exits_in_describe", "test_not_a_plugin", "test_two"):
        shutil.copy(TEST_PLUGINS / f"libltc_{name}.so", tmp_path)
    listed = info(tmp_path, "--json")
    assert listed.returncode == 0, listed.stderr
    plugins = {one["plugin"]: one for one in json.loads(listed.stdout)["plugins"]}
    assert plugins["test_exits_in_describe"]["dangerous"] and "in describe" in plugins["test_exits_in_describe"]["refused"]
    assert not plugins["test_not_a_plugin"]["dangerous"] and plugins["test_two"]["devices"] == 2


@pytest.mark.skipif(not TEST_PLUGINS.exists(), reason="no unit tests in this build")
@pytest.mark.parametrize("deed, told", [
    ("crashes", "it ended the process by signal 11, Segmentation fault, in device_open"),
    ("spins", "it gave no answer within {} s, in device_open"),
])
def test_a_device_that_no_process_survives_says_why(tmp_path, deed, told):
    shutil.copy(TEST_PLUGINS / "libltc_test_hostile.so", tmp_path)
    variables = {"LTC_TEST_HOSTILE_DEADLY": f"{deed} in device_open"}
    listed = info(tmp_path, **variables)
    assert listed.returncode == 0, listed.stderr
    assert f"  1 device\n  device 0: cannot be opened: {told.format(10)}\n" in listed.stdout
    alone = info(tmp_path, "test_hostile", "--json", "--timeout", "2", **variables)
    assert alone.returncode == 0, alone.stderr
    plugin, = json.loads(alone.stdout)["plugins"]
    assert plugin["devices"] == 1 and plugin["device_list"] == [{"refused": told.format(2)}]


@pytest.mark.skipif(not TEST_PLUGINS.exists(), reason="no unit tests in this build")
def test_a_device_that_the_plugin_refuses_says_why(tmp_path):
    shutil.copy(TEST_PLUGINS / "libltc_test_hostile.so", tmp_path)
    listed = info(tmp_path, "test_hostile", LTC_TEST_HOSTILE_FAULT="no_device_opened")
    assert listed.returncode == 0, listed.stderr
    assert "  device 0: cannot be opened: [test_hostile] device_open succeeded and gave no device" in listed.stdout
