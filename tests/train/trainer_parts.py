"""What the trainer's parts do by themselves, in one process, as one JSON document.

Launched by journeys.py in a folder with `images`.
"""

import io
import json
import os
import resource
from contextlib import redirect_stderr
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from ddp.errors import Refused
from trainer.arguments import Config
from trainer.checkpoint import NotSavedError, load, save
from trainer.data import VOCABULARY, GeneratedTokens, Loader, Masked, make_data
from trainer.files import UnreadableError
from trainer.group import Group, join
from trainer.main import LostError, main, train
from trainer.models import Shape, Transformer, make_model
from trainer.steps import Run, evaluate, start_run, train_steps


def sizes() -> dict[str, int]:
    """Return how many parameters the large models have."""
    with torch.device("meta"):
        models = {
            name: make_model(Config(model=name), classes)
            for name, classes in (("resnet50", 1000), ("bert-base", 257))
        }
    return {
        name: sum(parameter.numel() for parameter in model.parameters())
        for name, model in models.items()
    }


def images(group: Group) -> dict[str, object]:
    """Train ResNet-50 for one step on a folder of images, and validate."""
    config = Config(model="resnet50", data="images", image_size=32, batch_size=8, workers=0)
    data, validation = make_data(config)
    data.set_epoch(0)
    first, again = data[0][0], data[0][0]
    data.set_epoch(1)
    other = data[0][0]
    run = start_run(config, group, lambda: make_model(config, data.classes), data)
    trained = next(train_steps(run)).reduce(group)
    validated = evaluate(run, Loader(config, group, validation, shuffle=False))
    return {
        "sizes": [len(data), len(validation), data.classes],
        "shape": list(first.shape),
        "repeats": torch.equal(first, again),
        "changes by epoch": not torch.equal(first, other),
        "trained on": trained.samples,
        "validated on": validated.samples,
    }


def encoder(group: Group) -> tuple[Run, list[float]]:
    """Train a small encoder to find hidden tokens; return the run and its losses."""
    config = Config(samples=64, length=8, batch_size=16, epochs=40, warmup=2, lr=1e-2, workers=0)
    data = Masked(GeneratedTokens(64, 8, 0, "train"), 0)
    shape = Shape(VOCABULARY, 8, width=32, heads=2, depth=2)
    run = start_run(config, group, lambda: Transformer(shape, is_causal=False, dropout=0.0), data)
    return run, [sums.reduce(group).loss for sums in train_steps(run)]


def no_space(run: Run) -> dict[str, object]:
    """Save where only half of a checkpoint has room, over one that is there."""
    file = Path("checkpoint.pt")
    save(file, run)
    before = file.read_bytes()
    unlimited = resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, unlimited))
    said = ""
    try:
        save(file, run)
    except NotSavedError as error:
        said = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
    return {"said": said, "is unchanged": file.read_bytes() == before, "loads": load(file, run)}


def other_seed(group: Group) -> str:
    """Go on from a checkpoint with another seed; return what that says."""
    config = Config(samples=64, length=8, batch_size=16, epochs=40, seed=1, workers=0)
    data = GeneratedTokens(64, 8, 1, "train")
    run = start_run(config, group, lambda: make_model(config, data.classes), data)
    try:
        load(Path("checkpoint.pt"), run)
    except Refused as refused:
        return str(refused)
    return ""


def other_model(run: Run) -> str:
    """Go on with a wider model from the encoder's checkpoint; return what that says."""
    shape = Shape(VOCABULARY, 8, width=64, heads=2, depth=1)
    data = Masked(GeneratedTokens(64, 8, 0, "train"), 0)
    other = start_run(
        run.config, run.group, lambda: Transformer(shape, is_causal=False, dropout=0.0), data
    )
    return refusal(other, Path("checkpoint.pt"))


def other_files(run: Run) -> dict[str, str]:
    """Go on from files that the trainer has not written; return what each says."""
    half = Path("checkpoint.pt").read_bytes()[:10000]
    contents = {"text": b"no checkpoint", "empty": b"", "half": half}
    said = {}
    for name, content in contents.items():
        file = Path(f"{name}.pt")
        file.write_bytes(content)
        said[name] = refusal(run, file)
    for name, value in (("another's", {"epoch": 3}), ("a tensor", torch.zeros(2))):
        file = Path(f"{name}.pt")
        torch.save(value, file)
        said[name] = refusal(run, file)
    return said


def refusal(run: Run, file: Path) -> str:
    """Go on from `file`; return what that says."""
    try:
        load(file, run)
    except Refused as refused:
        return str(refused)
    return ""


def lost(group: Group) -> dict[str, object]:
    """Train until there are no numbers left; return what that says, and what was saved."""
    config = Config(
        samples=64, length=8, batch_size=16, workers=0, out=Path("lost"), lr=1e30, save_every=1,
        log_every=50,
    )  # fmt: skip
    said = ""
    try:
        train(config, group)
    except LostError as error:
        said = str(error)
    state = torch.load("lost/checkpoint.pt", weights_only=True)
    finite = all(bool(value.isfinite().all()) for value in state["model"].values())
    return {"said": said, "step": state["progress"]["step"], "is finite": finite}


def bad_images(group: Group) -> list[str]:
    """Train on images that are none, read in a worker and in the rank; return what each says."""
    said = []
    folder = Path("bad/class")
    folder.mkdir(parents=True)
    for number in range(10):
        np.save(folder / f"{number}.npy", np.zeros((4, 5), np.uint8))
    for workers in (1, 0):
        config = Config(
            model="resnet50", data="bad", image_size=32, workers=workers, out=Path("bad-run")
        )
        try:
            train(config, group)
        except UnreadableError as error:
            said.append(str(error))
        for file in folder.iterdir():
            file.write_bytes(b"no image")
    return said


def poisoned(run: Run) -> dict[str, object]:
    """Save a model with a parameter that is no number; return what that says."""
    file = Path("checkpoint.pt")
    before = file.read_bytes()
    with torch.no_grad():
        run.model.bias[3] = torch.nan
    said = ""
    try:
        save(file, run)
    except NotSavedError as error:
        said = str(error)
    return {"said": said, "is unchanged": file.read_bytes() == before}


def too_many_ranks() -> str:
    """Join as the first of two ranks of a host with one GPU; return what that says."""
    with (
        mock.patch.dict(os.environ, LOCAL_RANK="0", LOCAL_WORLD_SIZE="2"),
        mock.patch.multiple(torch.cuda, is_available=lambda: True, device_count=lambda: 1),
    ):
        try:
            join(timeout=60.0, threads=1)
        except Refused as refused:
            return str(refused)
    return ""


def who_speaks() -> list[str]:
    """Return what the second host's two ranks write of an argument that makes no sense."""
    said = []
    for local_rank in ("0", "1"):
        ranks = {"RANK": f"1{local_rank}", "LOCAL_RANK": local_rank}
        with mock.patch.dict(os.environ, ranks), redirect_stderr(io.StringIO()) as stream:
            code = main(["--epochs", "0"])
        said.append(f"{code}: {stream.getvalue()}")
    return said


def no_folder(group: Group) -> str:
    """Train where no log can be written; return what that says."""
    out = Path("images/0/0.npy/run")  # below a file
    config = Config(samples=8, length=8, batch_size=8, epochs=1, workers=0, out=out)
    try:
        train(config, group)
    except NotSavedError as error:
        return str(error)
    return ""


def show() -> None:
    """Print the document."""
    group = join(timeout=60.0, threads=1)
    run, losses = encoder(group)
    document = {
        "sizes": sizes(),
        "images": images(group),
        "encoder": [losses[0], losses[-1]],
        "no space": no_space(run),
        "other seed": other_seed(group),
        "other model": other_model(run),
        "other files": other_files(run),
        "no folder": no_folder(group),
        "lost": lost(group),
        "bad images": bad_images(group),
        "poisoned": poisoned(run),
        "too many ranks": too_many_ranks(),
        "who speaks": who_speaks(),
    }
    print(json.dumps(document))


show()
