"""The trainer as its users launch it: interrupted, restarted, on fewer ranks, on files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Trainer

FOLDER = Path(__file__).parent
DOCS = FOLDER.parents[1] / "docs/training.md"
STEPS = 20


@pytest.fixture(scope="module")
def journeys(trainer: Trainer) -> dict[str, Any]:
    """Launch everything once; return what came of it."""
    texts = [(FOLDER / name).read_text() for name in ("journeys.py", "trainer_parts.py")]
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    # torchrun's ranks meet at this host's name, which nothing resolves without a network.
    result = trainer.python("-c", texts[0], "{train}", texts[1], example, network="bridge")
    assert (result.code, result.left) == (0, []), result.err
    document: dict[str, Any] = json.loads(result.out)
    return document


def losses(journeys: dict[str, Any], run: str) -> list[float]:
    """Return the losses in a run's log, in the order of its lines."""
    return [float(line["loss"]) for line in journeys["logs"][run]]


def test_two_ranks_train_on_text(journeys: dict[str, Any]) -> None:
    """Under torchrun two ranks learn from a folder of text, and leave log and checkpoint."""
    assert journeys["runs"]["straight"]["code"] == 0
    found = losses(journeys, "straight")
    assert found[0] > 5.3  # the logarithm of 257 is 5.55
    assert found[STEPS - 1] < 3.2
    names = [name.partition(".")[0] for name in journeys["files"]]
    assert names == ["checkpoint", "events", "log"]


def test_the_log_has_a_line_a_step(journeys: dict[str, Any]) -> None:
    """Rank 0 alone writes the log: each step once, then the validation."""
    lines = [(int(line["step"]), line["part"]) for line in journeys["logs"]["straight"]]
    steps = [(step, "train") for step in range(1, STEPS + 1)]
    assert lines == [*steps, (STEPS, "validation")]


def test_a_killed_rank_changes_no_number(journeys: dict[str, Any]) -> None:
    """Restarted by torchrun after a SIGKILL, a run ends with the uninterrupted one's numbers."""
    run = journeys["runs"]["restarted"]
    assert run["code"] == 0
    assert run["err"].count("goes on after step 10, from restarted/checkpoint.pt") == 1
    assert losses(journeys, "restarted") == losses(journeys, "straight")


def test_a_run_goes_on_on_fewer_ranks(journeys: dict[str, Any]) -> None:
    """One process, without torchrun, goes on from two ranks' checkpoint with the same steps.

    It drops other activations than two ranks do, so the losses differ a little.
    """
    assert journeys["runs"]["alone"]["code"] == 0
    straight, alone = losses(journeys, "straight"), losses(journeys, "alone")
    assert alone[:10] == straight[:10]
    assert alone[10:] == pytest.approx(straight[10:], rel=0.02)
    assert alone[10:] != straight[10:]


def test_the_documented_program_trains_a_model_of_its_own(journeys: dict[str, Any]) -> None:
    """The example of docs/training.md runs on two ranks as it stands there, and learns."""
    run = journeys["runs"]["own"]
    assert run["code"] == 0, run["err"]
    said = re.fullmatch(r"accuracy ([0-9.]+) on (\d+) points\n", run["out"])
    assert said is not None, run["out"]
    accuracy, points = said.groups()
    assert float(accuracy) > 0.95
    assert int(points) == 200


def test_another_order_of_samples_is_refused(journeys: dict[str, Any]) -> None:
    """A checkpoint of another seed is no place to go on from; the message says what to do."""
    assert journeys["parts"]["other seed"].splitlines() == [
        "error: checkpoint.pt: is of a run with another order of samples: seed 0 -> 1",
        "  fix: give what the run began with, or another --out",
    ]


def test_the_large_models_have_their_size(journeys: dict[str, Any]) -> None:
    """ResNet-50 has the paper's parameters, the encoder BERT-base's but for the segments'.

    BERT-base has 109482240 with a pooler of 590592 and 1536 for segments; ours
    has a bias for each of 30522 tokens instead.
    """
    assert journeys["parts"]["sizes"] == {
        "resnet50": 25557032,
        "bert-base": 109482240 - 590592 - 1536 + 30522,
    }


def test_images_are_augmented_reproducibly(journeys: dict[str, Any]) -> None:
    """A folder of 20 images in 2 classes: 2 for validation, other crops in another epoch only."""
    assert journeys["parts"]["images"] == {
        "sizes": [18, 2, 2],
        "shape": [3, 32, 32],
        "repeats": True,
        "changes by epoch": True,
        "trained on": 8,
        "validated on": 2,
    }


def test_the_encoder_finds_hidden_tokens(journeys: dict[str, Any]) -> None:
    """From guessing among 257 tokens to a third of that loss."""
    first, last = journeys["parts"]["encoder"]
    assert first > 5.3
    assert last < first / 3


def test_a_full_disk_ends_the_run_and_not_the_checkpoint(journeys: dict[str, Any]) -> None:
    """A save that finds no room says which file, and the one before stays as it was."""
    found = journeys["parts"]["no space"]
    assert found["said"].startswith("could not save checkpoint.pt: ")
    assert (found["is unchanged"], found["loads"]) == (True, True)


def test_a_folder_that_cannot_be_written_is_named(journeys: dict[str, Any]) -> None:
    """A run without a place for its log ends at once, and says where and what to do."""
    said = journeys["parts"]["no folder"]
    assert said.startswith("--out images/0/0.npy/run: ")
    assert said.endswith("; give a folder that can be written")
