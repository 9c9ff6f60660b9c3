"""ResNet-50 (He et al. 2015, arXiv:1512.03385), with the stride in the 3x3 convolution."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WIDTHS = (64, 128, 256, 512)
DEPTHS = (3, 4, 6, 3)
EXPANSION = 4


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return [convolution, nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):  # type: ignore[misc]  # torch is not typed here
    """1x1, 3x3 and 1x1 convolutions beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        """Make a block that gives `EXPANSION * width` channels."""
        super().__init__()
        outputs = EXPANSION * width
        self.body = nn.Sequential(
            *_convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, outputs, 1),
        )
        self.shortcut = nn.Sequential(
            *(_convolution(inputs, outputs, 1, stride) if inputs != outputs else [])
        )

    def forward(self, images: Any) -> Any:  # noqa: ANN401 - tensors
        """Return (batch, outputs, height / stride, width / stride)."""
        return torch.relu(self.body(images) + self.shortcut(images))


class ResNet(nn.Module):  # type: ignore[misc]  # torch is not typed here
    """Images (batch, 3, height, width) to logits (batch, classes)."""

    def __init__(self, classes: int) -> None:
        """Make the 50 layers; 25557032 parameters for 1000 classes."""
        super().__init__()
        blocks: list[nn.Module] = []
        inputs = WIDTHS[0]
        for stage, (width, depth) in enumerate(zip(WIDTHS, DEPTHS)):  # noqa: B905 - Python 3.9
            for number in range(depth):
                stride = 2 if number == 0 and stage > 0 else 1
                blocks.append(Bottleneck(inputs, width, stride))
                inputs = EXPANSION * width
        self.stem = nn.Sequential(
            *_convolution(3, WIDTHS[0], 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)
        )
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, images: Any) -> Any:  # noqa: ANN401 - tensors
        """Return the logits of the classes."""
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))
