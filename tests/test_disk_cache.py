"""Programs that are kept on disk: a second process compiles nothing, whatever happens to the files."""

import os
import struct
import subprocess
import sys
import textwrap
import zlib

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
    """The values that the program computes, its compiles, and its programs from the disk."""
    values, counts = output_of(program, LTC_CACHE_DIR=str(folder), **{"LTC_CACHE": "1"} | env).splitlines()
    return (values, *map(int, counts.split()))


def ltc_command(folder, *args):
    command = [sys.executable, "-c", "import ltc_cli; ltc_cli.main()", "cache", *args]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LTC_CACHE_DIR": str(folder)})


def test_a_reader_that_has_enough_ends_the_list_quietly(tmp_path):
    run(tmp_path)
    command = [sys.executable, "-u", "-c", "import time, ltc_cli; time.sleep(0.5); ltc_cli.main()", "cache", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "LTC_CACHE_DIR": str(tmp_path)}) as listing:
        listing.stdout.close()
        assert listing.stderr.read() == b""


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


def test_sound_files_of_programs_that_do_not_fit_are_compiled_again(tmp_path):
    """Files whose checksum is right: a program with a byte too many, one cut short, one of nothing."""
    values, compiles, _ = run(tmp_path)
    for i, path in enumerate(sorted(tmp_path.iterdir())):
        body = path.read_bytes()[24:]
        rest = body
        for _ in range(2):  # two texts come before the program
            rest = rest[8 + int.from_bytes(rest[:8], "little"):]
        begin, program = body[:len(body) - len(rest)], rest[8:]
        program = [program + b"x", program[:len(program) // 2], b""][i % 3]
        body = begin + len(program).to_bytes(8, "little") + program
        path.write_bytes(struct.pack("<8sIIQ", b"ltcprog\n", 1, zlib.crc32(body), len(body)) + body)
    assert ltc_command(tmp_path, "verify").returncode == 0
    result = run_program(PROGRAM, LTC_CACHE_DIR=str(tmp_path), LTC_CACHE="1")
    assert result.stdout.splitlines() == [values, f"{compiles} 0"]
    assert result.stderr.count("a file of the program cache is ignored") == compiles
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


def test_a_folder_that_others_may_write_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    values, compiles, _ = run(tmp_path)
    result = run_program(PROGRAM, LTC_CACHE_DIR=str(tmp_path), LTC_CACHE="1")
    assert not list(tmp_path.iterdir()) and compiles > 0
    assert result.stdout.splitlines() == [values, f"{compiles} 0"]
    assert result.stderr.count("no programs are kept on disk: ") == 1
    assert f"{tmp_path}: others than its owner may write it (mode 0777)" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["folder", "files"])
def test_what_somebody_else_has_written_is_not_run(tmp_path, what):
    values, compiles, _ = run(tmp_path)
    for path in [tmp_path] if what == "folder" else tmp_path.iterdir():
        os.chown(path, 65534, 65534)
    result = run_program(PROGRAM, LTC_CACHE_DIR=str(tmp_path), LTC_CACHE="1")
    assert result.stdout.splitlines() == [values, f"{compiles} 0"]
    assert "user 65534 owns it, and this process is of user 0" in result.stderr


def test_files_are_for_their_owner_alone(tmp_path):
    folder = tmp_path / "made"
    run(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_neither_fifos_nor_holes_nor_links_are_read(tmp_path):
    values, compiles, _ = run(tmp_path)
    for i, path in enumerate(sorted(tmp_path.iterdir())):
        head = path.read_bytes()[:16]
        path.unlink()
        if i % 3 == 0:
            os.mkfifo(path, 0o600)
        elif i % 3 == 1:
            path.symlink_to("/dev/zero")
        else:
            path.write_bytes(head + ((200 << 30) - 24).to_bytes(8, "little"))
            os.truncate(path, 200 << 30)
    assert ltc_command(tmp_path, "verify").returncode in (0, 1)
    result = run_program(PROGRAM, LTC_CACHE_DIR=str(tmp_path), LTC_CACHE="1")
    assert result.stdout.splitlines() == [values, f"{compiles} 0"]
    assert run(tmp_path) == (values, 0, compiles)


def test_the_command_leaves_what_is_not_its_own(tmp_path):
    foreign = {"notes.ltc": b"ltcprog\n", "thesis.tmp": b"x", "a" * 32 + ".ltc": b"mine", "b" * 32 + ".ltc.1.2.tmp": b"ltcprog\n"}
    own = {"c" * 32 + ".ltc": b"ltcprog\n", "c" * 32 + ".ltc." + "0" * 16 + ".tmp": b""}
    for name, content in {**foreign, **own}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / ("d" * 32 + ".ltc")).symlink_to(tmp_path / "thesis.tmp")
    os.mkfifo(tmp_path / ("e" * 32 + ".ltc"))
    assert ltc_command(tmp_path, "list").returncode == 0
    assert "2 files deleted" in ltc_command(tmp_path, "clear").stdout
    assert {path.name for path in tmp_path.iterdir()} == {*foreign, "d" * 32 + ".ltc", "e" * 32 + ".ltc"}
    assert (tmp_path / "thesis.tmp").read_bytes() == b"x"
    tmp_path.chmod(0o777)
    verified = ltc_command(tmp_path, "verify")
    assert verified.returncode == 1 and "others than its owner may write it; no programs are taken from it" in verified.stdout


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


# ---- folders that are only read


def test_a_script_warms_a_folder_for_others(tmp_path):
    """A process that has this folder beside its own one finds the compiled programs, as another user too."""
    script, shared, own = tmp_path / "train.py", tmp_path / "image" / "cache", tmp_path / "own"
    script.write_text("import sys\n" + textwrap.dedent(PROGRAM) + "sys.exit(len(sys.argv))\n")
    command = [sys.executable, "-c", "import ltc_cli; ltc_cli.main()", "cache", "warm", "--to", str(shared), str(script), "an", "argument"]
    warmed = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LTC_CACHE_DIR": str(own)})
    assert warmed.returncode == 3, warmed.stderr
    count = len(list(shared.iterdir()))
    assert f"the script uses {count} programs and kernels" in warmed.stderr and f"{count} are new" in warmed.stderr
    assert {path.stat().st_mode & 0o777 for path in shared.iterdir()} == {0o644} and shared.stat().st_mode & 0o777 == 0o755
    assert not own.exists()
    values, compiles = warmed.stdout.splitlines()
    assert run(own, LTC_CACHE_SHARED=f"{tmp_path / 'nowhere'}:{shared}") == (values, 0, int(compiles.split()[0]))
    assert not own.exists()


def test_a_script_that_is_not_there_warms_nothing(tmp_path):
    missing = ltc_command(tmp_path / "cache", "warm", str(tmp_path / "no.py"))
    assert missing.returncode == 2 and missing.stderr == f"ltc run: no script {tmp_path / 'no.py'}\n"
