"""The OpenCL plugin's kernels on oclgrind, a device that checks each access: places, and races between work items."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import ltc

PACKAGE = Path(ltc.__file__).parent
PLUGIN = PACKAGE / "plugins/libltc_opencl.so"
FINDING = re.compile(r"[Dd]ata race|Invalid (read|write)|OCLGRIND [A-Z]+ ERROR")

pytestmark = [
    pytest.mark.skipif(shutil.which("oclgrind") is None, reason="needs oclgrind (apt package)"),
    pytest.mark.skipif(not PLUGIN.exists(), reason="built where there were no OpenCL headers"),
]

# Names and bodies of kernels of four work items on four numbers, with a fault each.
FAULTS = {
    "two_write_one_place": "x[get_global_id(0) / 2] = get_global_id(0);",
    "one_reads_what_another_writes": "x[get_global_id(0)] = x[(get_global_id(0) + 1) % 4] + 1;",
    "writes_behind_the_end": "x[get_global_id(0) + 1] = 1;",
    "reads_behind_the_end": "int past = x[4 * get_global_id(0)]; if (past > 0) x[get_global_id(0)] = past;",
}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_it_finds_faults(tmp_path, fault):
    body = FAULTS.get(fault, "x[get_global_id(0)] = get_global_id(0);")
    (tmp_path / "kernel.cl").write_text(f"kernel void one(global int* x) {{ {body} }}\n")
    (tmp_path / "kernel.sim").write_text("kernel.cl\none\n4 1 1\n4 1 1\n<size=16 fill=1>\n")
    done = subprocess.run(["oclgrind-kernel", "--data-races", "kernel.sim"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert bool(FINDING.search(done.stdout + done.stderr)) == (fault is not None), done.stderr


def test_kernels_of_the_conformance_suite():
    """The tier `ops` takes long there: plugins/opencl/README.md has the command."""
    command = ["oclgrind", "--data-races", PACKAGE / "bin/ltc-conformance", "--backend", PLUGIN, "--tier", "memory,execute", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and "on Oclgrind Simulator" in done.stdout, done.stdout + done.stderr
    assert not FINDING.search(done.stdout + done.stderr), done.stdout + done.stderr
