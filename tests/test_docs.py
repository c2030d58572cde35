"""The documents: a site without broken links is made of them, and the tutorial works as it is written."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from following import check_output, script
from test_how_to import IS_BUILD_OF_DEV

ROOT = Path(__file__).parents[1]
BROKEN = {"nothing.md": "[a](nothing.md)", "no-such-title": "[b](docs/README.md#no-such-title)", "here": "[c](#here)",
          "core/nothing.h": "[d](core/nothing.h)", "nothing.png": "![e](nothing.png)"}  # fmt: skip


def build(folder, builder, site):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder, "-c", "docs", ".", str(site)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_site_has_all_pages_and_no_broken_link(tmp_path):
    run = build(ROOT, "html", tmp_path)
    assert run.returncode == 0, run.stderr
    pages = [path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.html")]
    files = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert {name.removesuffix(".md") for name in files} - set(pages) == {"core/ops/opset_intro"}
    loaded = re.compile(r"""<(?:script|img|link|iframe)[^>]*(?:src|href)=["']?(?:https?:)?//|@import|url\(["']?(?:https?:)?//""")
    for path in (*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")):
        assert not loaded.search(path.read_text()), f"{path} needs a network"


def test_broken_links_are_found(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=lambda _, names: set(names) - {"conf.py", "site.css"})
    (tmp_path / "docs/README.md").write_text("# Documents\n\n## Use\n\n[page](page.md)\n")
    (tmp_path / "docs/page.md").write_text("# A title\n\n[itself](#a-title) [front](../README.md#ltc) [source](conf.py)\n")
    (tmp_path / "README.md").write_text("# ltc\n\n[title](docs/page.md#a-title)\n")
    run = build(tmp_path, "dummy", tmp_path / "site")
    assert run.returncode == 0, run.stderr
    (tmp_path / "README.md").write_text("# ltc\n\n" + "\n\n".join(BROKEN.values()))
    run = build(tmp_path, "dummy", tmp_path / "site")
    assert run.returncode != 0
    for target in BROKEN:
        assert re.search(rf"README\.md.*: WARNING: .*{target}", run.stderr), run.stderr


@pytest.mark.skipif(not IS_BUILD_OF_DEV or sys.platform != "linux", reason="the tutorial runs the release build")
def test_the_tutorial(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LTC_") and name != "PYTHONPATH"}
    environment.update(TMPDIR=str(tmp_path), LTC_CACHE_DIR=str(tmp_path / "cache"), COLUMNS="160")  # pytest-xdist has 80
    run = subprocess.run(["bash", "-euo", "pipefail", "-c", script(ROOT / "docs/tutorial.md")], cwd=ROOT, env=environment,
                         capture_output=True, text=True)  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("printed, is_right", [("3 steps, 120 us, 0.5\nend\n", True), ("3 steps, 7.5 ms, 0.25\nmore\nend\n", True),
                                               ("4 steps, 120 us, 0.5\nend\n", False), ("3 steps, 120 us, 0.5\n", False)])  # fmt: skip
def test_a_wrong_output_is_found(printed, is_right):
    shown = "3 steps, 130 ms, 0.75\n...end\n"
    if is_right:
        check_output(shown, printed)
    else:
        with pytest.raises(AssertionError):
            check_output(shown, printed)
