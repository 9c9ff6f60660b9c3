"""Computer vision: images become tensors, models are built, metrics count."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

COMPUTE = """
import io, json
import cv2, kornia, numpy, timm, torch, torchmetrics, torchvision
from PIL import Image
from torchvision.transforms import v2

picture = Image.new("RGB", (8, 6), (255, 0, 0))
file = io.BytesIO()
picture.save(file, "PNG")
read = cv2.imdecode(numpy.frombuffer(file.getvalue(), numpy.uint8), cv2.IMREAD_COLOR)
tensor = v2.functional.to_image(picture)
boxes = torch.tensor([[0., 0., 10., 10.], [1., 1., 10., 10.], [20., 20., 30., 30.]])
kept = torchvision.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]), 0.5)
model = timm.create_model("resnet18", pretrained=False, num_classes=3).eval()
with torch.no_grad():
    scores = model(torch.zeros(1, 3, 64, 64))
accuracy = torchmetrics.classification.MulticlassAccuracy(num_classes=2, average="micro")
print(json.dumps({
    "shape": list(tensor.shape),
    "blue green red": read[0, 0].tolist(),
    "kept": kept.tolist(),
    "scores": list(scores.shape),
    "grey": round(float(kornia.color.rgb_to_grayscale(torch.ones(1, 3, 2, 2)).mean()), 4),
    "accuracy": float(accuracy(torch.tensor([0, 1, 1, 1]), torch.tensor([0, 1, 1, 0]))),
}))
"""


@pytest.fixture(scope="module")
def computed(layer: Layer) -> dict[str, Any]:
    """Import all of the layer's packages once, and let each compute."""
    done = layer.host.run("HOME=/tmp python -c %s", COMPUTE)
    assert done.rc == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_pictures_become_tensors(computed: dict[str, Any]) -> None:
    """What Pillow writes, OpenCV reads, and torchvision turns into channels, height, width."""
    assert computed["blue green red"] == [0, 0, 255]
    assert computed["shape"] == [3, 6, 8]


def test_torchvisions_own_operators_run(computed: dict[str, Any]) -> None:
    """Its compiled part is built for this PyTorch: two boxes overlap, and the better one stays."""
    assert computed["kept"] == [0, 2]


def test_models_are_built(computed: dict[str, Any]) -> None:
    """A model of timm gives one score a class."""
    assert computed["scores"] == [1, 3]


def test_colours_and_metrics(computed: dict[str, Any]) -> None:
    """The weights of kornia add up to one, and torchmetrics counts three of four."""
    assert (computed["grey"], computed["accuracy"]) == (1.0, 0.75)
