"""The line that `ltc conformance` draws on a terminal while checks run."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

import ltc

SUITE = Path(ltc.__file__).parent / "bin" / "ltc-conformance"
HOSTILE = Path(ltc.__file__).parents[2] / "tests" / "plugins" / "libltc_test_hostile.so"
ERASED = "\r\x1b[K"

pytestmark = pytest.mark.skipif(not SUITE.exists() or not HOSTILE.exists(), reason="no suite or no unit tests in this build")


def run(timeout, stderr=subprocess.PIPE, terminal="xterm"):
    """The tier loader of a plugin whose description never ends: the suite waits for `timeout` seconds and gives up."""
    environment = {**os.environ, "LTC_TEST_HOSTILE_DEADLY": "spins in describe", "TERM": terminal}
    return subprocess.run([SUITE, "--backend", HOSTILE, "--tier", "loader", "--timeout", str(timeout)], env=environment,
                          stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=60)


def drawn(timeout, **how):
    """The text on a terminal that is the standard error."""
    terminal, end = pty.openpty()
    try:
        done = run(timeout, stderr=end, **how)
    finally:
        os.close(end)
    text = b""
    try:
        while chunk := os.read(terminal, 4096):
            text += chunk
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    return done, text.decode()


def test_a_terminal_shows_the_running_check_and_is_left_clean():
    done, text = drawn(4)
    lines = text.split(ERASED)
    assert done.returncode == 1 and "hangs: no end within 4 s" in done.stdout
    shown = [re.fullmatch(r"loader  (\d+) of \d+, (\d+) s: Loader[A-Z]*\w*\.[\w/]+", line) for line in lines[1:-1] if line]
    assert len(shown) >= 2 and all(shown), lines
    assert [int(line[2]) for line in shown] == sorted(int(line[2]) for line in shown) and int(shown[0][2]) >= 2
    assert lines[0] == lines[-1] == "" and all(len(line) < 80 for line in lines)


def test_a_short_run_shows_nothing():
    assert drawn(1)[1] == ""


@pytest.mark.parametrize("terminal", ["dumb", ""])
def test_a_terminal_that_cannot_erase_shows_nothing(terminal):
    assert drawn(4, terminal=terminal)[1] == ""


def test_nothing_goes_to_what_is_no_terminal():
    assert run(4).stderr == ""
