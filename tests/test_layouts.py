"""Networks of images large enough for a plugin to lay them out as it likes: results, gradients and strides are the CPU's."""

import pytest
import torch
from comparing import assert_same, to_device
from torch import nn


class Residual(nn.Module):
    def __init__(self, inner, after=nn.ReLU):
        super().__init__()
        self.inner, self.after = inner, after()

    def forward(self, x):
        return self.after(x + self.inner(x))


def conv(a, b, size=3, **options):
    return nn.Conv2d(a, b, size, padding=size // 2, **options)


NETWORKS = {
    "digits": lambda: [conv(3, 16), nn.ReLU(), conv(16, 24), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24 * 14 * 14, 5)],
    "without bias, strided": lambda: [conv(3, 16, bias=False, stride=2), nn.GELU(), conv(16, 8, 5, stride=2), nn.Tanh()],
    "residual with batch norm": lambda: [conv(3, 16), Residual(nn.Sequential(conv(16, 16), nn.BatchNorm2d(16), nn.ReLU(), conv(16, 16)))],
    "depthwise": lambda: [conv(3, 16, 1), conv(16, 16, groups=16), nn.SiLU(), conv(16, 8, 1), nn.AvgPool2d(2)],
    "grouped and dilated": lambda: [conv(3, 16), conv(16, 8, groups=4), nn.ReLU(), nn.Conv2d(8, 8, 3, dilation=2)],
    "transposed": lambda: [conv(3, 16), nn.ReLU(), nn.ConvTranspose2d(16, 8, 2, stride=2), conv(8, 4)],
    "overlapping pools": lambda: [conv(3, 16), nn.MaxPool2d(3, stride=2, padding=1), conv(16, 8), nn.AdaptiveAvgPool2d(5)],
    "views between": lambda: [conv(3, 16), nn.PixelShuffle(2), conv(4, 8), nn.Upsample(scale_factor=0.5), nn.Flatten(2), nn.Softmax(-1)],
}  # fmt: skip


@pytest.mark.parametrize("channels_last", [False, True], ids=["row-major", "channels-last"])
@pytest.mark.parametrize("name", NETWORKS)
def test_trains_as_on_cpu(name, channels_last):
    torch.manual_seed(0)
    model = nn.Sequential(*NETWORKS[name]()).train()
    images = torch.randn(4, 3, 28, 28)
    if channels_last:
        images = images.contiguous(memory_format=torch.channels_last)
    images.requires_grad_()
    results = []
    for device in ("cpu", "ltc"):
        own = to_device(images, device)
        model.to(device).zero_grad(set_to_none=True)
        output = model(own)
        (output * torch.linspace(0, 1, output.numel(), device=device).view(output.shape)).mean().backward()
        results.append([output, own.grad] + [parameter.grad.clone() for parameter in model.parameters()])
    assert_same(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_evaluates_as_on_cpu(name):
    torch.manual_seed(0)
    model = nn.Sequential(*NETWORKS[name]()).eval()
    images = torch.randn(4, 3, 28, 28)
    with torch.no_grad():
        expected = model(images)
        found = model.to("ltc")(images.to("ltc"))
    assert_same(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel, stride, padding, dilation, ceil", [
    (2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 1, False), ((2, 3), (3, 2), (1, 0), 1, True), (3, 3, 1, 2, True),
])  # fmt: skip
@pytest.mark.parametrize("activation", [torch.relu, torch.neg], ids=["relu", "neg"])
@pytest.mark.parametrize("size", [3, 1])
def test_pools_of_convolutions(size, activation, kernel, stride, padding, dilation, ceil):
    """Whole numbers, so that the convolution is exact: pools, their indices and gradients are the CPU's to the last bit, ties and NaN
    included, whatever the images' layout and with the relu in the pool."""
    torch.manual_seed(0)
    images = torch.randint(-2, 3, (2, 12, 33, 37)).float()
    images[0, :, 7, 9] = float("nan")
    weight = torch.randint(-1, 2, (20, 12, size, size)).float()
    results = []
    for device in ("cpu", "ltc"):
        own = [to_device(tensor, device).requires_grad_() for tensor in (images, weight)]
        pooled, where = nn.functional.max_pool2d(
            activation(nn.functional.conv2d(*own, padding=size // 2)), kernel, stride, padding, dilation, ceil, return_indices=True
        )
        gradient = torch.arange(pooled.numel(), device=device).view(pooled.shape) % 5 - 2.0
        pooled.backward(gradient)
        results.append([pooled, where, own[0].grad])
    assert_same(results[1], results[0], rtol=0, atol=0)


def test_pools_of_nothing_but_padding():
    """Windows with all taps outside of the image, behind a relu."""
    torch.manual_seed(0)
    images, weight = torch.randn(2, 12, 33, 37), torch.randn(20, 12, 3, 3)

    def pooled(device):
        image = torch.relu(nn.functional.conv2d(images.to(device), weight.to(device), padding=1))
        return nn.functional.max_pool2d(image, 2, 1, 1, 34)

    assert pooled("cpu").isinf().any()
    assert_same(pooled("ltc"), pooled("cpu"), rtol=1e-4, atol=1e-4)


def test_an_image_as_a_matrix():
    """The same elements in the same order, whether the view is one in memory or a copy."""
    torch.manual_seed(0)
    images, weight = torch.randint(-2, 3, (2, 12, 33, 37)).float(), torch.randint(-1, 2, (21, 12, 3, 3)).float()
    shapes = [(2, -1), (2, 21, -1), (42, 33, 37), (-1,), (2, 3, 7, 33, 37), (2, 21 * 33, 37, 1)]

    def views(device):
        image = nn.functional.conv2d(images.to(device), weight.to(device), padding=1)
        return [image.reshape(shape) for shape in shapes] + [image.flatten(1).view(2, 21, 33, 37) * 2]

    assert_same(views("ltc"), views("cpu"), rtol=0, atol=0)
