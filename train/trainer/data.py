"""Data sets, generated from a seed: nothing to download, and the right answer is known.

Every data set has `classes`, the number of different targets; `set_epoch`, for
those that augment; and items (inputs, targets).  An item depends on the seed,
the epoch and its number alone: whichever rank or worker loads it, and however
often a run is interrupted, it is the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader

from ddp.errors import Refused
from trainer.files import ImageFolder, TextFolder
from trainer.preemption import leave_to_rank
from trainer.sampler import Marked, StepSampler
from trainer.seeding import generator, mix

if TYPE_CHECKING:
    from trainer.arguments import Config
    from trainer.group import Group

BYTES = 256
MASK = BYTES  # the token that hides another one from an encoder
VOCABULARY = BYTES + 1
IGNORED = -100  # a target that does not count, as cross_entropy has it
MASKED_PART = 0.15  # as BERT does
SYMBOLS = 32
IMAGE_CLASSES = 10
NOISE = 0.5


class GeneratedTokens:
    """Sequences in which each symbol follows from the one before, by a rule of the seed."""

    classes = VOCABULARY

    def __init__(self, size: int, length: int, seed: int, part: str) -> None:
        """Make `size` samples of `length` tokens; `part` names an independent set."""
        self._size = size
        self._length = length
        self._key = (seed, "tokens", part)
        self._follows = torch.randperm(SYMBOLS, generator=generator(seed, "rule")).tolist()

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._size

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: the samples are the same in every epoch."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return `length` tokens and the `length` tokens that follow each of them."""
        tokens = [mix(*self._key, index) % SYMBOLS]
        for _ in range(self._length):
            tokens.append(self._follows[tokens[-1]])
        row = torch.tensor(tokens)
        return row[:-1], row[1:]


class GeneratedImages:
    """Images of ten classes: a pattern of the seed for each, under noise."""

    classes = IMAGE_CLASSES

    def __init__(self, size: int, pixels: int, seed: int, part: str) -> None:
        """Make `size` float32 images of shape (3, pixels, pixels)."""
        self._size = size
        self._key = (seed, "images", part)
        shape = (IMAGE_CLASSES, 3, pixels, pixels)
        self._patterns = torch.randn(shape, generator=generator(seed, "patterns"))

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._size

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: the samples are the same in every epoch."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return an image and its class."""
        own = generator(*self._key, index)
        label = torch.randint(IMAGE_CLASSES, (), generator=own)
        pattern = self._patterns[label]
        return pattern + NOISE * torch.randn(pattern.shape, generator=own), label


class Masked:
    """Token sequences for an encoder: some tokens are hidden and have to be found."""

    classes = VOCABULARY

    def __init__(self, data: Any, seed: int) -> None:  # noqa: ANN401 - a data set of tokens
        """Hide tokens of the items of `data`; other ones in each epoch."""
        self._data = data
        self._seed = seed
        self._epoch = 0
        self.listing = listing_of(data)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._data)

    def set_epoch(self, epoch: int) -> None:
        """Choose which tokens are hidden."""
        self._epoch = epoch

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return the tokens with some hidden, and those some with all others ignored."""
        tokens = self._data[index][0]
        own = generator(self._seed, "mask", self._epoch, index)
        is_hidden = torch.rand(tokens.shape, generator=own) < MASKED_PART
        is_hidden[int(torch.randint(len(tokens), (), generator=own))] = True  # one at least
        return (
            tokens.masked_fill(is_hidden, MASK),
            tokens.masked_fill(~is_hidden, IGNORED),
        )


def listing_of(data: Any) -> list[tuple[str, int]]:  # noqa: ANN401 - a data set
    """Return what tells a data set of files from one of others; nothing of generated data."""
    listing: list[tuple[str, int]] = getattr(data, "listing", [])
    return listing


def make_data(config: Config) -> tuple[Any, Any]:
    """Return the data sets for training and for validation that the model needs.

    Raises `Refused` for a folder that is not there or holds nothing of use.
    """
    if config.model == "resnet50":
        return _part(config, "train"), _part(config, "validation")
    train, validation = _part(config, "train"), _part(config, "validation")
    if config.model == "bert-base":
        return Masked(train, config.seed), Masked(validation, config.seed)
    return train, validation


def _part(config: Config, part: str) -> Any:  # noqa: ANN401 - a data set
    if config.data == "generated":
        size = config.samples if part == "train" else max(1, config.samples // 10)
        if config.model == "resnet50":
            return GeneratedImages(size, config.image_size, config.seed, part)
        return GeneratedTokens(size, config.length, config.seed, part)
    folder = Path(config.data)
    if not folder.is_dir():
        raise Refused("--data", f"{folder} is no folder", "give a folder, or `generated`")
    if config.model == "resnet50":
        return ImageFolder(folder, config.image_size, config.seed, part)
    return TextFolder(folder, config.length, part)


class Loader:
    """One rank's batches of a data set, epoch by epoch, reproducibly."""

    def __init__(
        self,
        config: Config,
        group: Group,
        data: Any,  # noqa: ANN401 - a data set
        *,
        shuffle: bool = True,
    ) -> None:
        """Load with `config.workers` processes; memory is pinned for a GPU."""
        self.sampler = StepSampler(
            data,
            config.batch_size,
            group.rank,
            group.world_size,
            accumulate=config.accumulate,
            seed=config.seed,
            shuffle=shuffle,
        )
        self._data = data
        self._key = (config.seed, "workers", group.rank)
        self._generator = torch.Generator()
        self._loader = DataLoader(
            Marked(data),
            batch_sampler=self.sampler,
            num_workers=config.workers,
            pin_memory=group.device.type == "cuda",
            # Each worker seeds Python, NumPy and torch with a number drawn from
            # this generator plus its own number.
            generator=self._generator,
            worker_init_fn=leave_to_rank,
        )

    def begin(self, epoch: int, start: int = 0) -> Any:  # noqa: ANN401 - an iterator
        """Return an iterator over the micro-batches from step `start` of the epoch on."""
        self.sampler.set_epoch(epoch, start)
        # Workers are forked with the data set below, so they see the epoch.
        self._data.set_epoch(epoch)
        self._generator.manual_seed(mix(*self._key, epoch))
        return iter(self._loader)
