"""The command line, as one frozen value: every knob of a run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ddp.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

MODELS = ("transformer", "resnet50", "bert-base")


@dataclass(frozen=True)
class Config:
    """What to train, on what, and how; sizes in samples, times in seconds."""

    model: str = "transformer"
    data: str = "generated"  # or a folder: of one folder a class of images, or of *.txt files
    out: Path = Path("run")  # checkpoint, CSV and event files; on several hosts a shared folder
    epochs: int = 5
    max_steps: int = 0  # stop after so many steps; 0: after all epochs
    samples: int = 4096  # of generated data
    length: int = 64  # tokens a sample
    image_size: int = 64  # pixels, both ways
    batch_size: int = 64  # of all ranks together, so that a step is the same on any number
    accumulate: int = 1  # parts that a rank takes its share of a batch in, to save memory
    lr: float = 1e-3
    warmup: int = 20  # steps from 0 to `lr`; a cosine brings it back to 0
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient; 0: as it is
    dropout: float = 0.1
    bf16: bool = False  # autocast to bfloat16
    compile: bool = False  # torch.compile, which needs a C++ compiler on the machine
    deterministic: bool = False  # the same bits every time on GPUs too, where that is slower
    seed: int = 0
    workers: int = 2  # processes a rank that load data; 0: the rank itself
    threads: int = 0  # a rank; 0: the usable cores divided by the ranks of this host
    log_every: int = 10  # steps
    save_every: int = 100  # steps
    timeout: float = 600.0  # that a rank waits for the others


HELP = {
    "model": "what to train",
    "data": "`generated`, a folder with one folder of images a class, or a folder of *.txt files",
    "out": "where checkpoint, CSV and event files are, to go on from; all hosts must share it",
    "epochs": "times through the data",
    "max_steps": "stop after so many steps; 0: after all epochs",
    "samples": "size of the generated data",
    "length": "tokens a sample of text",
    "image_size": "pixels that images are brought to, both ways",
    "batch_size": "samples a step, of all ranks together: the same steps on any number of ranks",
    "accumulate": "parts that a rank takes its share of a batch in, to save memory",
    "lr": "largest learning rate",
    "warmup": "steps from 0 to the largest learning rate",
    "weight_decay": "AdamW's",
    "clip": "largest norm of the gradient; 0: no limit",
    "dropout": "part of the activations that the transformers drop",
    "bf16": "autocast to bfloat16",
    "compile": "use torch.compile; it needs a C++ compiler",
    "deterministic": "the same bits in every run, on GPUs too",
    "seed": "of the parameters, the order, the augmentation and the generated data",
    "workers": "processes a rank that load data; 0: the rank itself",
    "threads": "threads a rank; 0: the usable cores divided by the ranks of this host",
    "log_every": "steps between two lines of the log",
    "save_every": "steps between two checkpoints",
    "timeout": "seconds that a rank waits for the others",
}
POSITIVE = ("epochs", "samples", "length", "batch_size", "accumulate", "log_every", "save_every")
NOT_NEGATIVE = ("max_steps", "warmup", "weight_decay", "clip", "seed", "workers", "threads")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused("trainer", message, "python -m trainer --help shows every argument")


def parse(argv: Sequence[str]) -> Config:
    """Return what `argv` asks for; raises `Refused` when it makes no sense."""
    parser = _Parser(
        prog="trainer",
        description="Train data-parallel; launch it with torchrun, one process a GPU.",
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for field in fields(Config):
        flag = f"--{field.name.replace('_', '-')}"
        if isinstance(field.default, bool):
            parser.add_argument(flag, action="store_true", help=HELP[field.name])
        else:
            parser.add_argument(
                flag,
                type=type(field.default) if field.name != "out" else Path,
                default=field.default,
                choices=MODELS if field.name == "model" else None,
                metavar=None if field.name == "model" else field.name.upper(),
                help=HELP[field.name],
            )
    config = Config(**vars(parser.parse_args(argv)))
    check(config)
    return config


def check(config: Config) -> None:
    """Raise `Refused` for numbers that no run can have."""
    for name in (*POSITIVE, *NOT_NEGATIVE):
        least = 1 if name in POSITIVE else 0
        if not getattr(config, name) >= least:
            _refuse(config, name, f"a number from {least} on")
    if not 0.0 <= config.dropout < 1.0:
        _refuse(config, "dropout", "a part from 0 to below 1")
    if config.image_size < 32:  # noqa: PLR2004 - ResNet halves it five times
        _refuse(config, "image_size", "at least 32 pixels")
    for name in ("lr", "timeout"):
        if not 0.0 < getattr(config, name) < float("inf"):
            _refuse(config, name, "a number above 0")


def _refuse(config: Config, name: str, fix: str) -> NoReturn:
    flag = f"--{name.replace('_', '-')}"
    raise Refused(flag, f"{getattr(config, name)} makes no sense", f"give {fix}")
