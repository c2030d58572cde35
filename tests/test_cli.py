"""The command `ltc`: help, errors and exit codes of each command, scripts that it runs, JSON and completion."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ltc
import ltc_cli

PACKAGE = Path(ltc.__file__).parent


def command(*args, module="ltc_cli", cwd=None, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-m", module, *map(str, args)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60)


def rows(row=ltc_cli.ROOT, *words):
    yield words, row
    for one in row.commands:
        yield from rows(one, *words, one.name)


ROWS = list(rows())
OPTIONS = [(words, option) for words, row in ROWS for option in row.options()]


@pytest.mark.parametrize("words, row", ROWS, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_each_command_has_help_with_exit_codes(words, row):
    helped = command(*words, "--help")
    assert helped.returncode == 0 and not helped.stderr
    assert helped.stdout.startswith("usage: ltc") and "exit code:" in helped.stdout.lower()
    assert all(option in helped.stdout for option in row.options() if option != "--help")
    assert all(f"  {one.name} " in helped.stdout and one.help in helped.stdout for one in row.commands)


def test_the_readme_has_the_exit_codes():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    for line in ltc_cli.EXIT_CODES.splitlines()[1:4]:
        code, meaning = line.split(maxsplit=1)
        assert f"| {code} | {meaning}" in readme


@pytest.mark.parametrize("words, wrong, nearest", [
    (["inf"], "no command 'inf'", "'info'"),
    (["cache", "verfy"], "no command 'verfy'", "'verify'"),
    (["conformance", "levls"], "no command 'levls'", "'levels'"),
    (["completion", "bsh"], "'bsh'", "'bash'"),
    (["cache"], "a command is missing", "list, verify, clear"),
    (["run"], "SCRIPT", ""),
    (["sdk", "more"], "an argument too many: 'more'", ""),
    (["info", "a", "b"], "usage: ltc info", ""),
    (["info", "--timeout", "soon"], "usage: ltc info", ""),
])
def test_wrong_use_ends_with_2_and_names_what_is_near(words, wrong, nearest):
    refused = command(*words)
    assert refused.returncode == 2 and not refused.stdout
    assert wrong in refused.stderr and nearest in refused.stderr


@pytest.mark.parametrize("words, option", OPTIONS, ids=lambda value: " ".join(value) if isinstance(value, tuple) else value)
def test_a_misspelt_option_is_named_with_the_nearest(words, option):
    wrong = option[:3] + option[4:]
    refused = command(*words, *(["name"] if words == ("new-backend",) else []), wrong)
    assert refused.returncode == (1 if words == ("new-backend",) else 2) and not refused.stdout
    assert f"no option '{wrong}'; the nearest is '{option}'" in refused.stderr


# ---- ltc run

FACTS = """
import atexit, os, signal, sys
print(sys.argv, sys.path[0], __file__, __name__, __package__, signal.getsignal(signal.SIGPIPE))
atexit.register(lambda: print(sys.modules["__main__"].__dict__["__name__"], "ends"))
if sys.argv[1:2] == ["raise"]:
    raise ValueError("wrong")
sys.exit({"text": "a text", "number": 7}.get(sys.argv[-1]))
"""


@pytest.fixture
def scripts(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "folder").mkdir()
    for path in "facts.py", "folder/facts.py", "package/__main__.py":
        (tmp_path / path).write_text(FACTS)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "link.py").symlink_to("folder/facts.py")
    return tmp_path


@pytest.mark.parametrize("args", [
    ["facts.py"], ["folder/facts.py", "--help", "--", "--json", "-m"], ["link.py", "number"], ["facts.py", "text"], ["facts.py", "raise"],
    ["broken.py"], ["-m", "package", "--summary", "number"], ["-m", "folder.facts"],
], ids=" ".join)
def test_a_script_runs_as_python_runs_it(scripts, args):
    expected = subprocess.run([sys.executable, *args], cwd=scripts, capture_output=True, text=True)
    done = command("run", *args, cwd=scripts)
    assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout)
    assert done.stderr == expected.stderr


def test_a_folder_with_a_main_runs(scripts):
    done = command("run", "package", "number", cwd=scripts)
    assert done.returncode == 7 and f"{scripts}/package __main__" in done.stdout.replace("/__main__.py", "")


@pytest.mark.parametrize("args, why", [(["no/such.py"], "no script no/such.py"), (["-m", "no.such"], "no module 'no.such'")])
def test_a_script_that_is_not_there_is_named(tmp_path, args, why):
    refused = command("run", *args, cwd=tmp_path)
    assert refused.returncode == 2 and refused.stderr == f"ltc run: {why}\n"


TRAINS = """
import os, sys, torch
x = torch.ones(4).to("ltc")
for _ in range(3):
    x = x + 1
    sys.modules["ltc"].mark_step()
torch.linalg.eigvals(x.diag()).cpu()
print(os.environ["LTC_BACKEND"], x.tolist())
sys.exit(5)
"""


def test_the_summary_tells_the_counters(tmp_path):
    (tmp_path / "trains.py").write_text(TRAINS)
    variables = {"LTC_BACKEND": "torchscript", "LTC_LOG": "error"}
    quiet = command("run", "trains.py", cwd=tmp_path, **variables)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (5, "torchscript [4.0, 4.0, 4.0, 4.0]\n", "")
    told = command("run", "--backend", "minimal", "--summary", "--json", "--json-metrics", "metrics.json", "trains.py", cwd=tmp_path, **variables)
    assert (told.returncode, told.stdout) == (5, "minimal [4.0, 4.0, 4.0, 4.0]\n")
    summary = json.loads(told.stderr)
    assert summary["steps"] == 3 and summary["compiled"] > 0 and summary["cache_hits"] > 0 and summary["seconds"] > 0
    assert summary["bytes_to_device"] >= 16 and summary["bytes_from_device"] >= 16
    assert [(one["op"], one["count"]) for one in summary["fallbacks"]] == [("aten::_linalg_eigvals", 1)]
    assert json.loads((tmp_path / "metrics.json").read_text()) == summary
    text = command("run", "--backend=minimal", "--summary", "trains.py", cwd=tmp_path, **variables).stderr
    assert text.startswith("ltc: steps 3, ") and "fallbacks 1 (aten::_linalg_eigvals 1)" in text and text.count("\n") == 1


# ---- JSON


def test_the_cache_as_json(tmp_path):
    damaged = tmp_path / ("a" * 32 + ".ltc")
    damaged.write_bytes(b"ltcprog\n")
    variables = {"LTC_CACHE_DIR": str(tmp_path)}
    listed = json.loads(command("cache", "list", "--json", **variables).stdout)
    assert listed["folder"] == str(tmp_path) and listed["bytes"] == 8
    assert [(one["file"], one["bytes"], one["fault"]) for one in listed["programs"]] == [(damaged.name, 8, "no file of this cache")]
    verified = command("cache", "verify", "--json", **variables)
    assert verified.returncode == 1
    assert json.loads(verified.stdout) == {"folder": str(tmp_path), "folder_fault": "", "sound": 0,
                                           "faults": [{"file": damaged.name, "fault": "no file of this cache"}]}
    assert json.loads(command("cache", "clear", "--json", **variables).stdout) == {"folder": str(tmp_path), "deleted": 1}


def test_the_sdk_as_json_and_the_package_as_a_program():
    plain, as_json = command("sdk", module="ltc"), command("sdk", "--json")
    assert json.loads(as_json.stdout) == {"sdk": plain.stdout.rstrip("\n")} and Path(plain.stdout.rstrip("\n")).samefile(PACKAGE / "sdk")


def test_a_long_check_shows_a_progress_bar_on_a_terminal_only(tmp_path):
    for digit in "abcd":
        (tmp_path / (digit * 32 + ".ltc")).write_bytes(b"ltcprog\n")
    program = [sys.executable, "-c", "import ltc_cache; ltc_cache.PATIENCE_S = -1; ltc_cache.verify(False)"]
    ours, theirs = pty.openpty()
    settings = {"env": {**os.environ, "LTC_CACHE_DIR": str(tmp_path)}, "stdout": subprocess.PIPE, "text": True}
    on_terminal = subprocess.run(program, stderr=theirs, **settings)
    shown = os.read(ours, 10000).decode()
    assert f"[{'#' * 20}{'.' * 20}] 2 of 4" in shown and shown.endswith("\r\x1b[K")
    piped = subprocess.run(program, stderr=subprocess.PIPE, **settings)
    assert not piped.stderr and piped.stdout == on_terminal.stdout


# ---- completion


@pytest.mark.parametrize("words, expected", [
    (["inf"], ["info"]),
    (["co"], ["conformance", "compile", "completion"]),
    (["cache", ""], ["list", "verify", "clear", "warm"]),
    (["cache", "list", "--"], ["--help", "--json"]),
    (["conformance", "--tie"], ["--tier"]),
    (["completion", "b"], ["bash"]),
    (["run", "--b"], ["--backend"]),
    (["run", ""], []),
], ids=str)
def test_bash_completes(words, expected):
    program = f"""
        source <({sys.executable} -m ltc_cli completion bash)
        COMP_WORDS=(ltc "$@") COMP_CWORD=$#
        _ltc
        [ ${{#COMPREPLY[@]}} = 0 ] || printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-uc", program, "bash", *words], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.split() == expected


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
def test_zsh_accepts_its_completion(tmp_path):
    script = command("completion", "zsh").stdout
    assert "'info:list the plugins" in script
    assert subprocess.run(["zsh", "-n"], input=script, capture_output=True, text=True).stderr == ""
    program = "autoload -Uz compinit; compinit -u -d dump; source /dev/stdin; print $_comps[ltc]"
    assert subprocess.run(["zsh", "-fc", program], input=script, cwd=tmp_path, capture_output=True, text=True).stdout == "_ltc\n"
