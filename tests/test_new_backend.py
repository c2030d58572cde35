"""`ltc new-backend` of an installed package, from an empty folder: the project builds and passes its tests as it is."""

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ltc

ROOT = Path(__file__).parents[1]
PACKAGE = Path(ltc.__file__).parents[1]
BUILD = PACKAGE.parent
SECONDS = 60  # from nothing to the first green tiers

pytestmark = pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason="only a build can be installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The contents of a wheel: the packages of pyproject.toml, and CMake's install rules; beside it the command."""
    site = tmp_path_factory.mktemp("site")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", site], check=True, capture_output=True)
    shutil.copytree(ROOT / "core/python/ltc", site / "ltc", dirs_exist_ok=True)
    shutil.copytree(ROOT / "conformance/report", site / "ltc_conformance")
    shutil.copytree(ROOT / "core/python/ltc_graphs", site / "ltc_graphs")
    for file in "ltc_autoload.py", "ltc_cache.py", "ltc_cli.py", "ltc_completion.py", "ltc_run.py":
        shutil.copy(ROOT / "core/python" / file, site)
    command = site / "bin" / "ltc"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, '{site}')\nimport ltc_cli\nltc_cli.main()\n"
                       "assert 'torch' not in sys.modules\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return site


def run(site, folder, *command, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LTC_", "PYTHONPATH"))}
    environment.update(PATH=f"{site / 'bin'}:{os.environ['PATH']}", **variables)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def good(site, folder, *command, **variables):
    done = run(site, folder, *command, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PROGRAM = "import torch, ltc; print((torch.ones(3, device='ltc') + 1).tolist())"


@pytest.mark.parametrize("args", [[], ["--cpp"]], ids=["c", "cpp"])
def test_a_new_backend_builds_and_passes(site, tmp_path, args):
    begin = time.monotonic()
    good(site, tmp_path, "ltc", "new-backend", "my-chip", *args)
    project = tmp_path / "my-chip"
    good(site, project, "cmake", "-B", "build")
    good(site, project, "cmake", "--build", "build")
    assert "100% tests passed, 0 tests failed out of 1" in good(site, project, "ctest", "--test-dir", "build", "--output-on-failure")
    seconds = time.monotonic() - begin
    assert seconds < SECONDS
    files = {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file() and "build" not in path.parts}
    assert files == {"CMakeLists.txt", "README.md", ".gitignore", ".github/workflows/ci.yml", "plugin.cpp" if args else "plugin.c"}
    assert not any("@" in (project / file).read_text().replace("actions/checkout@", "").replace("setup-python@", "") for file in files)
    library = project / "build/plugins/libltc_my-chip.so"
    assert good(site, project, sys.executable, "-c", PROGRAM, LTC_BACKEND=str(library), PYTHONPATH=str(PACKAGE)) == "[2.0, 2.0, 2.0]\n"
    print(f"{seconds:.1f} s from nothing to the first green tiers")


@pytest.mark.parametrize("args, why", [
    (["My Chip"], "'My Chip' cannot be the name of a backend"),
    (["../chip"], "cannot be the name"),
    (["chip-"], "cannot be the name"),
    (["--c"], "cannot be the name"),
    ([], "usage: ltc new-backend"),
    (["a", "b"], "usage: ltc new-backend"),
    (["there"], "there exists already"),
])
def test_what_cannot_be_made_is_said(site, tmp_path, args, why):
    (tmp_path / "there").mkdir()
    done = run(site, tmp_path, "ltc", "new-backend", *args)
    assert done.returncode == 1 and why in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["there"] and not any((tmp_path / "there").iterdir())


def test_the_sdk_of_the_package(site, tmp_path):
    """find_package and pkg-config find what `ltc sdk` names."""
    sdk = Path(good(site, tmp_path, "ltc", "sdk").strip())
    assert sdk == site / "ltc" / "sdk"
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES C)\n"
                                             "find_package(LtcSdk 1.0 REQUIRED)\nltc_add_plugin(mine SOURCES mine.c)\n")
    shutil.copy(ROOT / "samples/null_plugin/null_plugin.c", tmp_path / "mine.c")
    good(site, tmp_path, "cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={sdk}")
    good(site, tmp_path, "cmake", "--build", "build")
    good(site, tmp_path, "ltc", "conformance", "--backend", "build/plugins/libltc_mine.so", "--tier", "loader", "--json", "mine.json")
    assert ": no level\n" in good(site, tmp_path, "ltc", "conformance", "levels", "mine.json")
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config")
    good(site, tmp_path, "sh", "-c", "cc -std=c99 mine.c $(pkg-config --cflags --libs ltc-sdk) -o libltc_mine.so",
         PKG_CONFIG_PATH=str(sdk / "lib/pkgconfig"))
    good(site, tmp_path, "ltc", "conformance", "--backend", "libltc_mine.so", "--tier", "loader")
