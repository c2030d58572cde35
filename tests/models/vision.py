"""torchvision's image classifiers, and a small denoiser of the kind that diffusion trains."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from models.row import Model, classify, regress

# torchvision's C++ ops do not load against every build of PyTorch. Its import describes the shapes of two of them, for which
# declarations are enough; no model here calls them.
try:
    import torchvision.models
except RuntimeError:
    _DECLARED = torch.library.Library("torchvision", "DEF")
    _DECLARED.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _DECLARED.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision.models


def _images(batch, size):
    return lambda: {"x": torch.randn(batch, 3, size, size), "target": torch.randint(0, 10, (batch,))}


class SelfAttention(nn.Module):
    """Attention between the pixels of a feature map."""

    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.GroupNorm(4, channels), nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, 3, self.heads, c // self.heads, h * w).transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(n, c, h, w))


class Residual(nn.Module):
    """Two convolutions with the time step added between them."""

    def __init__(self, inputs, outputs, time, dropout):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time, self.dropout = nn.Linear(time, outputs), nn.Dropout(dropout)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.conv2(self.dropout(F.silu(self.norm2(y)))) + self.skip(x)


class UNet(nn.Module):
    """Predicts the noise in an image at a time step."""

    def __init__(self, dropout, width=8, time=16):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.inlet = nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.halve = Residual(width, width, time, dropout), nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2 = Residual(width, 2 * width, time, dropout)
        self.middle, self.attention = Residual(2 * width, 2 * width, time, dropout), SelfAttention(2 * width, 2)
        self.up2 = Residual(4 * width, width, time, dropout)
        self.widen = nn.Conv2d(width, width, 3, padding=1)
        self.up1 = Residual(2 * width, width, time, dropout)
        self.norm, self.outlet = nn.GroupNorm(4, width), nn.Conv2d(width, 3, 3, padding=1)

    def embed(self, step):
        half = self.width // 2
        rates = torch.exp(torch.arange(half, device=step.device) * (-math.log(10000) / half))
        angles = step[:, None].float() * rates
        return self.time(torch.cat([angles.sin(), angles.cos()], -1))

    def forward(self, x, step):
        time = self.embed(step)
        first = self.down1(self.inlet(x), time)
        second = self.down2(self.halve(first), time)
        y = self.attention(self.middle(second, time))
        y = self.up2(torch.cat([y, second], 1), time)
        y = self.widen(F.interpolate(y, scale_factor=2, mode="nearest"))
        y = self.up1(torch.cat([y, first], 1), time)
        return self.outlet(F.silu(self.norm(y)))


def _noisy():
    noise = torch.randn(2, 3, 16, 16)
    return {"x": torch.randn(2, 3, 16, 16) + noise, "step": torch.randint(0, 1000, (2,)), "noise": noise}


def _gently(parameters):
    """At three times the rate another order of adding moves ResNet-18's fifth loss by 2e-3, here by 1e-4; at fifteen times, last bits of the
    images move the CPU's by 1 %; with two images, the number of threads by a seventh."""
    return torch.optim.SGD(parameters, lr=0.0003, momentum=0.9)


ROWS = [
    Model("torchvision ResNet-18", lambda dropout: torchvision.models.resnet18(num_classes=10), _images(16, 32), classify, _gently),
    Model("torchvision MobileNetV3 small", lambda dropout: torchvision.models.mobilenet_v3_small(num_classes=10, dropout=dropout),
          _images(8, 32), classify, _gently),
    Model("diffusion UNet", UNet, _noisy, regress),
]  # fmt: skip
