"""docs/write-a-plugin.md, followed to the letter, leads from an empty folder to the level Silver.

The resulting project equals samples/interpreter.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from following import edited, script

import ltc
from ltc_conformance import levels, results

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "samples/interpreter"
PACKAGE = Path(ltc.__file__).absolute().parents[1]


def level(path):
    """The level of a result, as if the suite had been built from a clean tree: a developer's is not."""
    plugin, = results.read([str(path)])
    plugin.result["host"]["clean"] = True
    return levels.assess(plugin)[0]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LTC_")}
    environment.update(PATH=f"{python.parent}:{PACKAGE / 'bin'}:{environment['PATH']}", PYTHONPATH=str(PACKAGE),
                       LTC_CACHE_DIR=str(folder / "cache"))
    if shutil.which("ccache"):  # the same files in another folder
        environment.update(CMAKE_CXX_COMPILER_LAUNCHER="ccache", CCACHE_BASEDIR=str(folder), CCACHE_NOHASHDIR="1")
    if not shutil.which("ltc", path=environment["PATH"]):
        pytest.skip("no command ltc")
    commands = folder / "commands.sh"
    commands.write_text(script(ROOT / "docs/write-a-plugin.md"))
    run = subprocess.run(["bash", "-euxo", "pipefail", commands], stdin=subprocess.DEVNULL, cwd=folder, env=environment,
                         capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]
    return folder / "mine"


def test_the_skeleton_is_bronze(project):
    assert level(project / "bronze.json") == "Bronze"


def test_a_few_ops_are_not_silver(project):
    """So Silver at the end says something."""
    failed = [check for check in json.loads((project / "first.json").read_text())["checks"] if check["outcome"] == "failed"]
    assert {check["tier"] for check in failed} == {"ops", "programs"} and len(failed) > 250
    assert level(project / "first.json") == "Bronze"


def test_the_end_is_silver(project):
    assert level(project / "build/silver.json") == "Silver"


def test_an_obsolete_list_is_a_failure(project):
    text = (project / "obsolete.txt").read_text()
    assert "FAILED  Ops.convolution_f32" in text and "DOES NOT CONFORM" in text


def test_the_end_is_the_sample(project):
    """The same files, but for the plugin's name and what is the reader's own."""
    for path in SAMPLE.iterdir():
        text = path.read_text()
        if path.name == "plugin.cpp":
            text = re.sub(r'(?<=[" ])interpreter(?=["-]|: )', "mine", text)
        assert path.name in ("README.md", "CMakeLists.txt") or (project / path.name).read_text() == text, path.name


def test_the_samples_own_build_has_all_files():
    text = (SAMPLE / "CMakeLists.txt").read_text()
    assert sorted(re.findall(r"\w+\.cpp", text)) == sorted(path.name for path in SAMPLE.glob("*.cpp"))


@pytest.mark.parametrize("how, place, result", [
    ("instead of", "  b {", "a;\n-\nc(d,\ne);\n"),
    ("instead of", "c(d", "a;\n  b {\n    x;\n  }\n-\n"),
    ("above", "c(d", "a;\n  b {\n    x;\n  }\n-\nc(d,\ne);\n"),
    ("below", "a;", "a;\n-\n  b {\n    x;\n  }\nc(d,\ne);\n"),
])
def test_edits(how, place, result):
    assert edited("a;\n  b {\n    x;\n  }\nc(d,\ne);\n", how, place, "-\n") == result
    for text in ("", f"{place}\n" * 2):  # no place, and more than one
        with pytest.raises(AssertionError):
            edited(text, how, place, "-\n")
