"""Programs that are compiled in the background, LTC_BACKGROUND_COMPILE=1: the host computes their steps meanwhile."""

import pytest
from comparing import BAD_INDEX, output_of

PROGRAM = """
import time
import torch, ltc
from torch.nn import functional as F

count = ltc.metrics.counter_value

def train(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4)).to(device)
    x, labels = torch.randn(32, 8).to(device), torch.arange(32).remainder(4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(1)
    for _ in range(10):
        loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ltc.mark_step()
    return loss.cpu()

losses, interim = [], []
end = time.monotonic() + 120
while time.monotonic() < end and (len(interim) < 2 or interim[-1] > interim[-2]):
    losses.append(train("ltc"))
    interim.append(count("InterimRuns"))
torch.testing.assert_close(losses, losses[-1:] * len(losses), rtol=1e-5, atol=1e-6)
print(len(losses) > 1, interim[0] > 0, count("BackgroundCompile") > 0)
print(count("BackgroundCompile") == count("UncachedCompile"), ltc.metrics.fallbacks())
"""


def test_the_host_computes_what_the_device_does():
    assert output_of(PROGRAM, LTC_BACKGROUND_COMPILE="1", LTC_CACHE="0").splitlines() == ["True True True", "True []"]


def test_without_the_setting_nothing_is_computed_meanwhile():
    assert output_of(PROGRAM, LTC_BACKGROUND_COMPILE=None, LTC_CACHE="0").splitlines() == ["True False False", "False []"]


def test_programs_on_disk_are_not_compiled_again(tmp_path):
    settings = {"LTC_BACKGROUND_COMPILE": "1", "LTC_CACHE": "1", "LTC_CACHE_DIR": str(tmp_path)}
    output_of(PROGRAM, **settings)
    program = PROGRAM.split("losses, interim =")[0] + "train('ltc'); print(count('InterimRuns'), count('DiskCacheHits') > 0)"
    assert output_of(program, **settings).split() == ["0", "True"]


def test_a_bad_index_names_the_line():
    output = output_of(BAD_INDEX, LTC_BACKGROUND_COMPILE="1", LTC_CACHE="0")
    assert output.startswith("<string>:4: ")
    assert "index 7 is out of bounds for dimension 0 with size 4" in output


@pytest.mark.parametrize("thread", ["ltc_compile", "ltc_prefetch"])
def test_no_thread_holds_a_lock_when_the_process_forks(thread, tmp_path):
    program = f"""
import os, time

def threads():
    names = [open(f"/proc/self/task/{{task}}/comm").read().strip() for task in os.listdir("/proc/self/task")]
    return {thread!r} in names

os.register_at_fork(before=lambda: print(threads(), flush=True))  # such a function runs after those of later ones
import torch, ltc
x = torch.ones(4, device="ltc")
value, end = (x + 1).sum().item(), time.monotonic() + 20
while not threads() and time.monotonic() < end:  # it names itself when it begins
    time.sleep(0.01)
print(value, threads(), flush=True)
child = os.fork()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x * 3).sum().item())
"""
    settings = {"LTC_CACHE": "1", "LTC_CACHE_DIR": str(tmp_path), "LTC_BACKGROUND_COMPILE": None}
    if thread == "ltc_compile":
        settings["LTC_BACKGROUND_COMPILE"] = "1"
    else:  # something to read ahead that this program does not want
        output_of("import torch, ltc; print(torch.ones(3, device='ltc').sin().tolist())", **settings)
    assert output_of(program, **settings).splitlines() == ["8.0 True", "False", "7 12.0"]


def test_a_fork_and_the_end_of_the_process_find_the_thread_alive():
    program = """
import os, sys, torch, ltc
x = torch.ones(4, device="ltc")
assert (x + 1).sum().item() == 8
child = os.fork()
if child == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x * 3).sum().item())
y = x
for _ in range(100):  # is being compiled when the program ends
    y = y.sin()
ltc.mark_step()
"""
    assert output_of(program, LTC_BACKGROUND_COMPILE="1", LTC_CACHE="0") == "7 12.0\n"
