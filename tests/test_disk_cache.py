"""Programs that are kept on disk: a second process compiles nothing, whatever happens to the files."""

import os
import subprocess
import sys

import pytest

from comparing import output_of, run_program

PROGRAM = """
    import torch, ltc
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to("ltc")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(6, 4).to("ltc")).square().mean()
        loss.backward()
        optimizer.step()
        ltc.mark_step()
    x = torch.randn(3, device="ltc")
    print(loss.item(), torch.linalg.inv(torch.eye(3, device="ltc") * 2 + x.outer(x)).sum().item())
    print(ltc.metrics.counter_value("UncachedCompile"), ltc.metrics.counter_value("DiskCacheHits"))
"""


def run(folder, program=PROGRAM, **env):
    """What the program computes, its compiles, and its programs from the disk."""
    values, counts = output_of(program, LTC_CACHE_DIR=str(folder), **{"LTC_CACHE": "1"} | env).splitlines()
    return (values, *map(int, counts.split()))


def ltc_command(folder, *args):
    command = [sys.executable, "-c", "import ltc_cli; ltc_cli.main()", "cache", *args]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LTC_CACHE_DIR": str(folder)})


def test_a_second_process_compiles_nothing(tmp_path):
    values, compiles, hits = run(tmp_path)
    assert compiles > 0 and hits == 0
    assert run(tmp_path) == (values, 0, compiles)
    assert run(tmp_path, LTC_CLAIMS="minimal")[1] > 0


def test_it_can_be_switched_off(tmp_path):
    run(tmp_path, LTC_CACHE="0")
    assert not list(tmp_path.iterdir())


def test_files_of_all_kinds_of_damage_are_ignored(tmp_path):
    values, compiles, _ = run(tmp_path)
    files = sorted(tmp_path.iterdir())
    for i, path in enumerate(files):
        data = path.read_bytes()
        path.write_bytes([b"", data[:len(data) // 2], data[:-1] + b"?", b"something else"][i % 4])
    damaged = run_program(PROGRAM, LTC_CACHE_DIR=str(tmp_path), LTC_CACHE="1")
    assert damaged.stdout.splitlines()[0] == values
    assert damaged.stderr.count("a file of the program cache is ignored") == compiles
    assert run(tmp_path) == (values, 0, compiles)


def test_two_processes_at_once(tmp_path):
    env = {**os.environ, "LTC_CACHE_DIR": str(tmp_path), "LTC_CACHE": "1"}
    source = "\n".join(line[4:] for line in PROGRAM.splitlines())
    both = [subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True, env=env) for _ in range(2)]
    outputs = [process.communicate(timeout=300)[0].splitlines()[0] for process in both]
    assert outputs[0] == outputs[1]
    assert all(path.suffix == ".ltc" for path in tmp_path.iterdir())
    assert run(tmp_path)[:2] == (outputs[0], 0)


@pytest.mark.parametrize("folder", ["/dev/full", "/proc/self"])
def test_a_disk_that_takes_nothing_is_no_error(folder):
    run(folder)


def test_the_command(tmp_path):
    compiles = run(tmp_path)[1]
    listed = ltc_command(tmp_path, "list")
    assert listed.stdout.count("torchscript, ") == compiles and f"{compiles} programs" in listed.stdout
    assert ltc_command(tmp_path, "verify").returncode == 0
    damaged = next(tmp_path.iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    verified = ltc_command(tmp_path, "verify")
    assert verified.returncode == 1 and f"{damaged}: damaged" in verified.stdout
    assert ltc_command(tmp_path, "clear").returncode == 0
    assert not list(tmp_path.iterdir())
    assert ltc_command(tmp_path, "no such").returncode == 2
