"""The samples of training in several processes, started as their user starts them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ranks import aborted_at_exit

SAMPLES = Path(__file__).parents[1] / "samples" / "distributed"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
EPOCHS = ("--epochs", "2")

# Runs a script after torchvision's import, which transformers' needs.
WITH_TORCHVISION = f"""
import runpy, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from models import vision
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(*arguments, **env):
    """Returns the output. Runs once more where a rank was aborted at its end."""
    try:
        return run_once(*arguments, **env)
    except AssertionError as error:
        if not aborted_at_exit(str(error)):
            raise
    return run_once(*arguments, **env)


def run_once(*arguments, **env):
    """On failure, no process that it started is left."""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", **env}
    command = [sys.executable, *map(str, arguments)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, errors = process.communicate(timeout=200)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors[-6000:]
    return out


def losses(tmp_path, *arguments, **env):
    """Returns the output, and the loss of each step."""
    file = tmp_path / "losses"
    out = run(*arguments, "--losses", file, **env)
    return out, [float(line) for line in file.read_text().split()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The losses of training on the device that nothing interrupts."""
    return losses(tmp_path_factory.mktemp("undisturbed"), *TORCHRUN, SAMPLES / "train_torchrun.py", *EPOCHS)[1]


def test_torchrun_trains_as_on_the_cpu(tmp_path, undisturbed):
    """Training in single precision amplifies the last digit, so later losses differ more than the first ones."""
    _, on_cpu = losses(tmp_path, *TORCHRUN, SAMPLES / "train_torchrun.py", *EPOCHS, "--device", "cpu")
    assert undisturbed[:4] == pytest.approx(on_cpu[:4], rel=1e-5)
    assert undisturbed == pytest.approx(on_cpu, rel=1e-2)
    assert undisturbed[-1] < undisturbed[0] / 2


def test_torchrun_goes_on_from_the_checkpoint(tmp_path, undisturbed):
    flags = ("--checkpoint", tmp_path / "state.pt", "--kill-in-epoch", "2")
    restarted = (*TORCHRUN, "--max-restarts", "1", SAMPLES / "train_torchrun.py", *EPOCHS, *flags)
    out, found = losses(tmp_path, *restarted, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    assert [line[:9] for line in out.splitlines()] == ["epoch 1/2", "epoch 2/2"]
    assert found == undisturbed


def test_torchrun_without_a_restart_fails(tmp_path):
    with pytest.raises(AssertionError, match=r"Signal 9 \(SIGKILL\)"):
        run(*TORCHRUN, SAMPLES / "train_torchrun.py", "--epochs", "1", "--kill-in-epoch", "1")


def test_ray_goes_on_from_the_checkpoint(tmp_path, undisturbed):
    pytest.importorskip("ray.train", exc_type=ImportError)
    flags = ("--storage", tmp_path, "--kill-in-epoch", "2")
    # Ray keeps a token in the home folder.
    _, found = losses(tmp_path, SAMPLES / "train_ray.py", *EPOCHS, *flags, HOME=str(tmp_path), RAY_USAGE_STATS_ENABLED="0")
    assert found == undisturbed
    assert len(list(tmp_path.glob("ray_train_run*/checkpoint_*/state.pt"))) == 2, "epoch 1 was trained again"


@pytest.mark.patch("libraries")
@pytest.mark.parametrize("engine, ranks", [((), 1), (TORCHRUN, 2)], ids=["alone", "torchrun"])
def test_trainer_chooses_the_device(tmp_path, engine, ranks):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    start = tmp_path / "start.py"
    start.write_text(WITH_TORCHVISION)
    command = (*engine, start, SAMPLES / "train_trainer.py", "--steps", "10")
    (out, on_device), (_, on_cpu) = losses(tmp_path, *command), losses(tmp_path, *command, "--cpu")
    assert re.search(rf"^device ltc:0, ranks {ranks}, ", out, re.MULTILINE), out
    assert on_device == pytest.approx(on_cpu, rel=1e-4)
    assert on_device[-1] < on_device[0]
