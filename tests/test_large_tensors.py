"""Recording takes no memory of the tensors' sizes: tensors that no machine holds are recorded, and never computed."""

from comparing import output_of

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
torch.empty(1 << 26, device="ltc").roll(1, 0)  # what PyTorch's shape functions import
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
BODY
print(round(peak() - before))
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
    assert int(output_of(PROGRAM.replace("BODY", f"results = {CALLS}"))) < 64
