"""Data sets from folders: images by class, and text as bytes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ddp.errors import Refused
from trainer.seeding import generator

if TYPE_CHECKING:
    from pathlib import Path

ARRAY = ".npy"  # NumPy reads it
PICTURES = (".bmp", ".jpeg", ".jpg", ".png", ".webp")  # Pillow reads them
# The mean and deviation of ImageNet's red, green and blue, which models are used to.
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
SMALLEST_CROP = 0.5  # of either side
VALIDATION = 10  # one sample of so many is for validation


class UnreadableError(Exception):
    """A file of the data is not what it must be: found by one rank, in the middle of a run."""

    def __str__(self) -> str:
        """Return the text alone: torch puts a loading worker's traceback before it."""
        name = f"{__name__}.{type(self).__name__}: "
        return super().__str__().rstrip().rpartition("\n")[2].removeprefix(name)


def is_of(part: str, number: int) -> bool:
    """Whether the sample of this number belongs to "train" or to "validation"."""
    return (number % VALIDATION == VALIDATION - 1) == (part == "validation")


class ImageFolder:
    """Images in one folder a class, brought to one size; cropped and mirrored for training."""

    def __init__(self, folder: Path, pixels: int, seed: int, part: str) -> None:
        """List the images; raises `Refused` when there are none, or no library for them."""
        names = sorted(path.name for path in folder.iterdir() if path.is_dir())
        found = [
            (path, label)
            for label, name in enumerate(names)
            for path in sorted((folder / name).rglob("*"))
            if path.suffix.lower() in (ARRAY, *PICTURES)
        ]
        self.classes = len(names)
        # Not their sizes: to ask for those of a million files takes long on a shared disk.
        self.listing = [(str(path.relative_to(folder)), label) for path, label in found]
        self.items = [item for number, item in enumerate(found) if is_of(part, number)]
        if not self.items:
            raise Refused(
                "--data",
                f"{folder} holds {len(found)} images, none is left for {part}",
                f"give at least {VALIDATION}, in one folder a class: cat/1.jpg, dog/2.jpg, ...",
            )
        needs_pillow = any(path.suffix.lower() != ARRAY for path, _ in self.items)
        if needs_pillow and find_spec("PIL") is None:
            raise Refused(
                "--data",
                f"{self.items[0][0].name} is read with Pillow, which is not installed",
                "pip install pillow as root in a child image, or save the images as .npy"
                " (height, width, 3; uint8)",
            )
        self._pixels = pixels
        self._seed = seed
        self._is_augmented = part == "train"
        self._epoch = 0

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.items)

    def set_epoch(self, epoch: int) -> None:
        """Choose how images are cropped and mirrored."""
        self._epoch = epoch

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return a float32 image of shape (3, pixels, pixels), and its class."""
        path, label = self.items[index]
        image = torch.from_numpy(_read(path)).permute(2, 0, 1).float() / 255
        if self._is_augmented:
            image = _augment(image, generator(self._seed, "crop", self._epoch, index))
        image = torch.nn.functional.interpolate(
            image[None], size=(self._pixels, self._pixels), mode="bilinear", antialias=True
        )[0]
        return (image - MEAN) / DEVIATION, torch.tensor(label)


def _read(path: Path) -> Any:  # noqa: ANN401 - an array (height, width, 3) of uint8
    try:
        if path.suffix.lower() == ARRAY:
            array = np.load(path, allow_pickle=False)
        else:
            from PIL import Image  # noqa: PLC0415 - not in every image

            with Image.open(path) as picture:
                array = np.array(picture.convert("RGB"))
    except (EOFError, OSError, ValueError) as error:  # what NumPy and Pillow raise
        raise UnreadableError(f"{path} can't be read: {error}") from error
    if array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8:  # noqa: PLR2004
        raise UnreadableError(
            f"{path} holds {array.dtype} of shape {array.shape}; give (height, width, 3) uint8"
        )
    return array


def _augment(image: Any, own: Any) -> Any:  # noqa: ANN401 - tensor and generator
    _, height, width = image.shape
    part, down, right, mirror = torch.rand(4, generator=own).tolist()
    part = SMALLEST_CROP + (1 - SMALLEST_CROP) * part
    rows, columns = max(1, int(height * part)), max(1, int(width * part))
    top, left = int((height - rows) * down), int((width - columns) * right)
    image = image[:, top : top + rows, left : left + columns]
    return image.flip(2) if mirror < 0.5 else image  # noqa: PLR2004 - as often as not


class TextFolder:
    """The bytes of all *.txt files below a folder, in blocks; each byte's target is the next."""

    classes = 257  # the bytes, and the token that hides one

    def __init__(self, folder: Path, length: int, part: str) -> None:
        """List the blocks of `length` bytes; raises `Refused` when there are too few."""
        self.files = sorted(folder.rglob("*.txt"))
        sizes = [path.stat().st_size for path in self.files]
        names = [str(path.relative_to(folder)) for path in self.files]
        self.listing = sorted(zip(names, sizes))  # noqa: B905 - Python 3.9
        blocks = [
            (number, first)
            for number, size in enumerate(sizes)
            for first in range(0, size - length, length)
        ]
        self.items = [item for number, item in enumerate(blocks) if is_of(part, number)]
        if not self.items:
            raise Refused(
                "--data",
                f"the {len(self.files)} files *.txt below {folder} hold {len(blocks)} blocks of "
                f"{length} bytes, none is left for {part}",
                f"give at least {VALIDATION}, or a smaller --length",
            )
        self._length = length

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.items)

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: the blocks are the same in every epoch."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return `length` bytes as int64, and the `length` bytes that follow each of them."""
        number, first = self.items[index]
        with self.files[number].open("rb") as file:
            file.seek(first)
            row = torch.frombuffer(bytearray(file.read(self._length + 1)), dtype=torch.uint8)
        return row[:-1].long(), row[1:].long()
