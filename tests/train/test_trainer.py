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


def test_sigterm_to_one_rank_stops_all_with_a_checkpoint(journeys: dict[str, Any]) -> None:
    """The step is finished and saved, and each rank ends with 143: no success to torchrun."""
    run = journeys["runs"]["stopped"]
    assert run["code"] == 1  # torchrun's, for ranks that fail
    ends = sorted(re.findall(r"rank (\d) ends with (\d+)", run["err"]))
    assert ends == [("0", "143"), ("1", "143")]
    said = "stopped by SIGTERM after step 13; the same command goes on from stopped/checkpoint.pt"
    assert run["err"].count(said) == 1
    assert "step 14 of" not in run["err"]


def test_a_stopped_run_goes_on_bit_by_bit(journeys: dict[str, Any]) -> None:
    """Started again, it ends with the uninterrupted run's numbers, each step logged once."""
    run = journeys["runs"]["stopped again"]
    assert run["code"] == 0
    assert run["err"].count("goes on after step 13, from stopped/checkpoint.pt") == 1
    assert losses(journeys, "stopped") == losses(journeys, "straight")


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


def test_what_one_host_refuses_is_refused_on_all(journeys: dict[str, Any]) -> None:
    """A folder or checkpoint that is bad on one host ends both at once, each with the reason."""
    assert journeys["runs"]["hosts"]["code"] == 0, journeys["runs"]["hosts"]["err"]
    first, second = journeys["hosts"]
    fix = "  fix: give a folder, or `generated`"
    assert first["no folder"].splitlines() == ["error: --data: rank 1: nowhere is no folder", fix]
    assert second["no folder"].splitlines() == ["error: --data: nowhere is no folder", fix]
    assert first["damaged"].startswith(
        "error: hosts/damaged/checkpoint.pt: rank 1: can't be read: "
    )
    assert second["damaged"].startswith("error: hosts/damaged/checkpoint.pt: can't be read: ")


@pytest.mark.parametrize(
    ("case", "folder"), [("other names", "hosts/1"), ("other sizes", "hosts/2")]
)
def test_other_files_of_as_many_samples_are_refused(
    journeys: dict[str, Any], case: str, folder: str
) -> None:
    """Names and sizes of all files are compared, also where an encoder's tokens are hidden."""
    for said, seen in zip(journeys["hosts"], ("hosts/0", folder), strict=True):
        assert said[case].splitlines() == [
            f"error: --data: rank 1 finds other files in {seen} than rank 0: 22 samples and 22",
            "  fix: give every host the same files under the same path",
        ]


def test_another_model_is_refused(journeys: dict[str, Any]) -> None:
    """The message names a parameter with both shapes."""
    problem, fix = journeys["parts"]["other model"].splitlines()
    assert problem == (
        "error: checkpoint.pt: is of another model: 28 parameters differ, "
        "token.weight has the shape (257, 32) there and (257, 64) here"
    )
    assert fix == (
        "  fix: give the --model, --length and data that the run began with, or another --out"
    )


def test_files_that_are_no_checkpoint_are_refused(journeys: dict[str, Any]) -> None:
    """Text, nothing, half a checkpoint and another program's file each get a message."""
    said = journeys["parts"]["other files"]
    assert said["text"].startswith(
        "error: text.pt: can't be read: it is no file of torch.save, or holds more than data\n"
    )
    for name in ("text", "empty", "half"):
        problem, fix = said[name].splitlines()
        assert problem.startswith(f"error: {name}.pt: can't be read: ")
        assert fix == "  fix: give another --out, or take the file away"
    for name in ("another's", "a tensor"):
        assert said[name].splitlines() == [
            f"error: {name}.pt: is no checkpoint of strata.trainer/1",
            "  fix: give another --out",
        ]


def test_a_lost_run_leaves_the_last_good_checkpoint(journeys: dict[str, Any]) -> None:
    """The loss is looked at before each save, however seldom it is logged."""
    assert journeys["parts"]["lost"] == {
        "said": "the loss is nan at step 2; try a smaller --lr, or more --warmup",
        "step": 1,
        "is finite": True,
    }


def test_an_image_that_is_none_is_named(journeys: dict[str, Any]) -> None:
    """The run ends with the file and what is wrong, and its loading worker with it."""
    shape, damaged = journeys["parts"]["bad images"]
    told = r"bad/class/\d\.npy holds uint8 of shape \(4, 5\); give \(height, width, 3\) uint8"
    assert re.fullmatch(told, shape)
    assert re.fullmatch(r"bad/class/\d\.npy can't be read: .+", damaged)


def test_parameters_that_are_no_numbers_are_not_saved(journeys: dict[str, Any]) -> None:
    """A step whose loss was good and whose gradient was not leaves the checkpoint before."""
    found = journeys["parts"]["poisoned"]
    assert found["said"].startswith("parameter bias has values that are no numbers after step 160")
    assert found["is unchanged"] is True


def test_too_many_ranks_for_the_gpus_are_refused_on_each(journeys: dict[str, Any]) -> None:
    """The first rank refuses too, although there is a GPU for it: else it waits for the second."""
    assert journeys["parts"]["too many ranks"].splitlines() == [
        "error: torchrun --nproc-per-node: 2 ranks on 1 GPU: NCCL takes one rank a GPU",
        "  fix: give at most 1, or `gpu`; to train on the CPU, set CUDA_VISIBLE_DEVICES=",
    ]


def test_each_host_says_once_why_it_refuses(journeys: dict[str, Any]) -> None:
    """Of the second host's ranks the first speaks; both end with 2."""
    first, second = journeys["parts"]["who speaks"]
    assert first.startswith("2: error: --epochs: 0 makes no sense\n")
    assert second == "2: "
