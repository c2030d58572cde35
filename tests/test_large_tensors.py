"""Recording takes no memory of the tensors' sizes: tensors that no machine holds are recorded, and never computed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import ltc
import pytest

# Prints by how many MiB the process has grown. It ends at once: a step that is cut would compute them.
PROGRAM = """
import os, resource, sys, warnings
import torch, ltc
import torch.nn.functional as F
warnings.simplefilter("ignore")
SIDE = 1 << 19
x = torch.empty(SIDE, SIDE, device="ltc")  # 2^40 bytes
flags, rows = x > 0, torch.empty(SIDE, dtype=torch.int64, device="ltc")
images, kernels = torch.empty(1 << 16, 64, 256, 256, device="ltc"), torch.empty(64, 64, 3, 3, device="ltc")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
BODY
print(round(peak() - before), "sympy" in sys.modules)
sys.stdout.flush()
os._exit(0)
"""

CALLS = """[
    x.roll(3, 0), x.flip(0), x.cumsum(0), x.sort(), x.topk(5), x.median(1), torch.cat([x, x]), x[rows], x.index_put((rows,), x[0]),
    x.masked_fill(flags, -1e30), torch.where(flags, x, 0.0), x.softmax(1), x.log_softmax(0), x.relu(), F.gelu(x), F.layer_norm(x, (SIDE,)),
    x.tril(), x @ x, x.mean(), x.std(1), F.pad(x, (1, 1)), F.dropout(x), F.cross_entropy(x, rows), torch.randn(SIDE, SIDE, device="ltc"),
    torch.cdist(x[:, :8], x[:, :8]), torch.arange(1 << 38, device="ltc"), F.conv2d(images, kernels), F.conv_transpose2d(images, kernels),
    F.max_pool2d(images, 2), F.avg_pool2d(images, 2), F.batch_norm(images, None, None, training=True), F.group_norm(images, 8),
    F.interpolate(images, scale_factor=2), x.clone().mul_(2).t_().cumsum_(0), torch.add(x, x, out=torch.empty(0, device="ltc")),
    torch.cumsum(x, 0, out=torch.empty(0, device="ltc")), x.clone().requires_grad_().cumsum(0).sum().backward(),
    F.scaled_dot_product_attention(*[torch.empty(64, 16, 1 << 15, 64, device="ltc")] * 3),
]"""


def test_peak_of_recording():
    program = PROGRAM.replace("BODY", f"results = {CALLS}")
    # Not forked from a process that has imported more.
    grown, imports = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert int(grown) < 64
    assert imports == "False"  # as PyTorch's shape functions in Python do


# They read a value, or have sizes that depend on one, or are a mistake at such a size; eigenvalues of no matrices want room to work in.
REFUSED = set("""
argwhere bincount histogramdd istft linalg_lstsq linalg_lstsq_grad_oriented masked_select multinomial nn_functional_gaussian_nll_loss
nn_functional_one_hot nonzero normal to_sparse
""".split()) | {f"{name} backward" for name in """
cumprod istft linalg_eig linalg_eigvals linalg_lstsq linalg_lstsq_grad_oriented linalg_vander masked_cumprod masked_select
max_reduction_no_dim median min_reduction_no_dim nanmedian nn_functional_embedding_bag nn_functional_gaussian_nll_loss normal prod
""".split()}  # fmt: skip
PARTS = 2  # processes, which may run side by side


@pytest.mark.parametrize("part", range(PARTS))
def test_operators_of_the_database(part, tmp_path):
    answer, tests = tmp_path / "answer.json", Path(__file__).parent
    path = f"{Path(ltc.__file__).parent.parent}:{tests}"
    subprocess.run([sys.executable, tests / "large_calls.py", answer, f"{part}/{PARTS}"], env={**os.environ, "PYTHONPATH": path}, check=True)
    found = json.loads(answer.read_text())
    assert found["wrong"] == []
    assert {name: why for name, why in found["refused"].items() if name not in REFUSED} == {}
    assert len(found["recorded"]) > 300
