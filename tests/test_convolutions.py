"""Convolutions that the torchscript plugin computes in its own ways: divided among its threads, or by Winograd's."""

import copy
import re

import pytest
import torch

from comparing import output_of

# Convolutions of the CPU and of the device side by side, with and without a bias, row-major and channels-last.
PROGRAM = """
import torch, ltc
import torch.nn.functional as F
torch.set_num_threads({threads})
for count, channels, outputs, side, options in [
    (4, 32, 64, 26, dict()), (5, 32, 64, 20, dict(padding=1, stride=2)), (2, 64, 64, 24, dict(groups=4, padding=2)),
    (3, 32, 48, 26, dict(dilation=2)), (1, 32, 64, 26, dict()), (40, 32, 64, 26, dict()),
]:
    for dtype in (torch.float32, torch.float64):
        for to in (torch.contiguous_format, torch.channels_last):
            images = torch.randn(count, channels, side, side, dtype=dtype).contiguous(memory_format=to)
            weight = torch.randn(outputs, channels // options.get("groups", 1), 3, 3, dtype=dtype)
            for bias in (None, torch.randn(outputs, dtype=dtype)):
                made = F.conv2d(images.to("ltc"), weight.to("ltc"), bias if bias is None else bias.to("ltc"), **options)
                expected = F.conv2d(images, weight, bias, **options)
                torch.testing.assert_close(made.cpu(), expected, rtol=1e-4, atol=1e-3)
                assert (2 * made).sum(1).cpu().isfinite().all()
print("right")
"""


def images_per_call(program_output):
    """How many images each of oneDNN's convolutions with 32 channels into 64 computed."""
    return [int(n) for n in re.findall(r"onednn_verbose,.*,exec,cpu,convolution,.*,mb(\d+)_ic32oc64_ih26", program_output)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_divided_convolutions_are_right(threads):
    assert output_of(PROGRAM.format(threads=threads), LTC_TORCHSCRIPT_KERNELS="sync").splitlines()[-1] == "right"


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this libtorch has no oneDNN")
@pytest.mark.parametrize("threads, count, pieces", [(1, 4, [4]), (2, 4, [2, 2]), (2, 3, [1, 2]), (3, 8, [8]), (2, 1, [1])])
def test_images_are_divided(threads, count, pieces):
    """Eight images of this size are too large a result to be joined."""
    program = f"""
import torch, ltc
torch.set_num_threads({threads})
torch.conv2d(torch.ones({count}, 32, 26, 26, device="ltc"), torch.ones(64, 32, 5, 5, device="ltc"), padding=2).cpu()
"""
    assert sorted(images_per_call(output_of(program, ONEDNN_VERBOSE="1"))) == pieces


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this libtorch has no oneDNN")
def test_weights_are_packed_once():
    def reorders(weights, runs):
        program = f"""
import torch, ltc
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(32, 64, 3, stride=2, bias=False), torch.nn.BatchNorm2d(64)).eval()
model[1].running_mean.uniform_(), model[1].running_var.uniform_(0.5, 2)
images = torch.randn(4, 32, 27, 27)
with torch.no_grad():
    expected, on_device = model(images), model.to("ltc")
    for _ in range({runs}):
        torch.testing.assert_close(on_device(images.to("ltc")).cpu(), expected, rtol=1e-4, atol=1e-4)
"""
        lines = output_of(program, ONEDNN_VERBOSE="1", LTC_TORCHSCRIPT_WEIGHTS=weights).splitlines()
        return sum(",exec,cpu,reorder," in line for line in lines)

    assert reorders("packed", 4) == reorders("packed", 12)
    assert reorders("plain", 12) - reorders("plain", 4) >= 8


WINOGRAD = [((4, 32, 26, 26), 64, 0), ((2, 64, 15, 17), 32, 1), ((3, 16, 20, 9), 48, (2, 1)), ((1, 160, 16, 16), 80, "same")]


def gradients(device, shape, results, padding, dtype):
    """A convolution's result and gradients on the device, of the same numbers for every type."""
    torch.manual_seed(0)
    images, layer = torch.randn(shape), torch.nn.Conv2d(shape[1], results, 3, padding=padding)
    images, layer = images.to(device, dtype).requires_grad_(), layer.to(device, dtype)
    result = layer(images)
    result.backward(torch.linspace(-1, 1, result.numel()).view(result.shape).to(device, dtype))
    return [tensor.detach().cpu() for tensor in (result, images.grad, layer.weight.grad, layer.bias.grad)]


@pytest.mark.parametrize("shape, results, padding", WINOGRAD)
def test_winograd_is_exact(shape, results, padding):
    """Beside double precision, no farther than twice what the CPU's float32 is."""
    exact = gradients("cpu", shape, results, padding, torch.float64)
    cpu = gradients("cpu", shape, results, padding, torch.float32)
    made = gradients("ltc", shape, results, padding, torch.float32)
    for expected, theirs, ours in zip(exact, cpu, made):
        assert ours.shape == expected.shape and ours.dtype == torch.float32
        error = lambda found: (found - expected).norm() / expected.norm()  # noqa: E731
        assert error(ours) <= 2 * error(theirs) + 1e-7


def test_winograd_keeps_nan_where_it_belongs():
    images, weight = torch.randn(2, 16, 20, 20), torch.randn(32, 16, 3, 3)
    images[0, 3, 7, 8] = images[1, 0, 0, 19] = float("nan")
    made = torch.conv2d(images.to("ltc"), weight.to("ltc"), padding=1).cpu()
    assert torch.equal(made.isnan(), torch.conv2d(images, weight, padding=1).isnan())


# shape, results, window, options
WIDE = [
    ((2, 8, 24, 24), 8, (15, 15), dict(padding=7)),
    ((2, 8, 26, 30), 8, (3, 29), dict(padding=(1, 5), stride=(1, 2))),
    ((3, 6, 20, 40), 4, (2, 17), dict(dilation=2, groups=2)),
    ((4, 32, 32, 32), 24, (16, 16), dict(stride=2, bias=False)),
    ((2, 3, 40, 40), 8, (15, 15), dict(padding=3)),  # few channels
    ((2, 8, 24, 24), 8, (3, 3), dict(padding=5)),  # windows beside the images
]


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this libtorch has no oneDNN")
@pytest.mark.parametrize("shape, results, window, options", WIDE)
def test_windows_of_many_columns(shape, results, window, options):
    """oneDNN leaves the gradient of a wide window's channels-last weight to its reference kernel. Frozen inputs and weights too."""
    torch.manual_seed(0)
    images, layer = torch.randn(shape), torch.nn.Conv2d(shape[1], results, window, **options)
    for frozen in (), ("images",), ("weight",):
        found = []
        for device in ("cpu", "ltc"):
            own, on_device = images.to(device, copy=True), copy.deepcopy(layer).to(device)
            own.requires_grad_("images" not in frozen)
            on_device.weight.requires_grad_("weight" not in frozen)
            result = on_device(own)
            result.backward(torch.linspace(-1, 1, result.numel()).view(result.shape).to(device))
            found.append([result, own.grad, *(parameter.grad for parameter in on_device.parameters())])
        for ours, theirs in zip(*reversed(found)):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-3, atol=1e-3 * theirs.detach().abs().max().item())


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this libtorch has no oneDNN")
def test_no_convolution_is_left_to_the_reference_kernel():
    program = """
import torch, ltc
for window, padding in ((15, 7), ((2, 30), (1, 8)), (14, 0), (3, 5)):
    layer = torch.nn.Conv2d(16, 16, window, padding=padding).to("ltc")
    layer(torch.ones(2, 16, 32, 32, device="ltc", requires_grad=True)).square().sum().backward()
    layer.weight.grad.cpu()
"""
    calls = re.findall(r"onednn_verbose,.*,exec,cpu,convolution,([\w:+]*),", output_of(program, ONEDNN_VERBOSE="1"))
    assert len(calls) >= 12 and "ref:any" not in calls, calls
