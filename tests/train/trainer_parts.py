"""What the trainer's parts do by themselves, in one process, as one JSON document.

Launched by journeys.py in a folder with `images`.
"""

import json
import resource
from pathlib import Path

import torch

from ddp.errors import Refused
from trainer.arguments import Config
from trainer.checkpoint import NotSavedError, load, save
from trainer.data import VOCABULARY, GeneratedTokens, Loader, Masked, make_data
from trainer.group import Group, join
from trainer.main import train
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


def no_folder(group: Group) -> str:
    """Train where no log can be written; return what that says."""
    out = Path("images/0/0.npy/run")  # below a file
    config = Config(samples=8, length=8, batch_size=8, epochs=1, workers=0, out=out)
    try:
        train(config, group)
    except NotSavedError as error:
        return str(error)
    return ""


def main() -> None:
    """Print the document."""
    group = join(timeout=60.0, threads=1)
    run, losses = encoder(group)
    document = {
        "sizes": sizes(),
        "images": images(group),
        "encoder": [losses[0], losses[-1]],
        "no space": no_space(run),
        "other seed": other_seed(group),
        "no folder": no_folder(group),
    }
    print(json.dumps(document))


main()
