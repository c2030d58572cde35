"""Each command of the README, CONTRIBUTING and docs/how-to works as it is written there.

A block that begins with ```sh is run in the root of the repository, all blocks of a page in order, with an empty folder in $TMP. Blocks
that take long, or write into the repository, begin with ```sh norun: REASON.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ltc

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
BLOCK = re.compile(r"^( *)```sh([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
IS_BUILD_OF_DEV = Path(ltc.__file__).absolute().is_relative_to(ROOT / "build" / "release")


def blocks(page):
    """The words behind ```sh on its line, and the commands without the indentation of a list."""
    for indent, note, commands in BLOCK.findall(page.read_text()):
        yield note.strip(), re.sub(rf"^{indent}", "", commands, flags=re.MULTILINE)


def test_pages_have_commands():
    assert sum(not note for page in PAGES for note, _ in blocks(page)) > 15


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_not_run_says_why(page):
    for note, _ in blocks(page):
        assert not note or re.fullmatch(r"norun: \S.*", note)


@pytest.mark.skipif(not IS_BUILD_OF_DEV or sys.platform != "linux", reason="./dev runs the release build")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands(page, tmp_path):
    commands = [block for note, block in blocks(page) if not note]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LTC_") and name != "PYTHONPATH"}
    environment.update(TMP=str(tmp_path), LTC_CACHE_DIR=str(tmp_path / "cache"))
    run = subprocess.run(["bash", "-euo", "pipefail"], input="\n".join(commands), cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
