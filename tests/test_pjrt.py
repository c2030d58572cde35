"""The plugin pjrt with XLA's library for the CPU: what only programs show, saved executables and two devices among it."""

import os
import sysconfig
from pathlib import Path

import pytest

import ltc
from comparing import BAD_INDEX, output_of

PACKAGE = Path(ltc.__file__).parent
LIBRARIES = ("lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so")
INSTALLED = [path for name in LIBRARIES if (path := Path(sysconfig.get_path("purelib"), name)).exists()]
LIBRARY = os.environ.get("LTC_PJRT_LIBRARY") or next(map(str, INSTALLED), "")

pytestmark = pytest.mark.skipif(
    not LIBRARY or not (PACKAGE / "plugins" / "libltc_pjrt.so").exists(), reason="no library of PJRT, or no header when it was built"
)

TRAINING = """
import torch, ltc
from torch.nn import functional as F

def train(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Flatten(), torch.nn.Linear(32, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    words, labels = torch.randint(10, (32, 4)), torch.randint(4, (32,))
    model, words, labels = model.to(device), words.to(device), labels.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(10):
        loss = F.cross_entropy(model(words), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if device != "cpu":
            ltc.mark_step()
    return float(loss)

expected = train("cpu")
for i in range(torch.ltc.device_count()):
    assert abs(train(f"ltc:{i}") - expected) < 1e-3 * expected
print(torch.ltc.device_count(), ltc.metrics.fallbacks(), ltc.metrics.counter_value("UncachedCompile"))
"""


def run(program, **environment):
    settings = {"LTC_BACKEND": "pjrt", "LTC_PJRT_LIBRARY": LIBRARY, "PYTHONPATH": str(PACKAGE.parent)}
    return output_of(program, **settings, **environment)


def test_training_is_as_on_the_cpu_and_compiled_once(tmp_path):
    first, second = (run(TRAINING, LTC_CACHE="1", LTC_CACHE_DIR=str(tmp_path)).split() for _ in range(2))
    assert first[:2] == second[:2] == ["1", "[]"]
    assert int(first[2]) > 0
    assert int(second[2]) == 0, "the executables were kept"


def test_two_devices_of_one_library():
    assert run(TRAINING, LTC_PJRT_CPU_DEVICES="2").split()[:2] == ["2", "[]"]


def test_the_host_computes_what_is_being_compiled():
    program = TRAINING + 'print(ltc.metrics.counter_value("InterimRuns") > 0)'
    devices, fallbacks, _, interim = run(program, LTC_BACKGROUND_COMPILE="1", LTC_CACHE="0").split()
    assert (devices, fallbacks, interim) == ("1", "[]", "True")


def test_a_bad_index_names_the_line():
    output = run(BAD_INDEX)
    assert output.startswith("<string>:4: ")
    assert "index 7 is out of bounds for dimension 0 with size 4" in output
