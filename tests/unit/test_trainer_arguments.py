"""The trainer's command line."""

from dataclasses import fields
from pathlib import Path

import pytest

from ddp.errors import Refused
from trainer.arguments import HELP, Config, parse


def test_nothing_given_is_the_default() -> None:
    """Without arguments a run has the defaults of `Config`."""
    assert parse([]) == Config()


def test_arguments_have_their_types() -> None:
    """Numbers, paths and flags come as such."""
    config = parse(["--lr", "0.1", "--bf16", "--out", "x", "--max-steps", "3"])
    assert (config.lr, config.bf16, config.out, config.max_steps) == (0.1, True, Path("x"), 3)


def test_every_knob_is_explained() -> None:
    """There is help for each field, and for nothing else."""
    assert set(HELP) == {field.name for field in fields(Config)}


@pytest.mark.parametrize(
    ("argv", "where"),
    [
        (["--batch-size", "0"], "--batch-size"),
        (["--accumulate", "0"], "--accumulate"),
        (["--max-steps", "-1"], "--max-steps"),
        (["--dropout", "1"], "--dropout"),
        (["--dropout", "nan"], "--dropout"),
        (["--clip", "nan"], "--clip"),
        (["--lr", "nan"], "--lr"),
        (["--lr", "inf"], "--lr"),
        (["--timeout", "0"], "--timeout"),
        (["--image-size", "31"], "--image-size"),
        (["--model", "resnet"], "trainer"),
        (["--epoch", "3"], "trainer"),
        (["--epochs", "many"], "trainer"),
    ],
)
def test_senseless_arguments_are_refused(argv: list[str], where: str) -> None:
    """The message names the argument, and has a fix."""
    with pytest.raises(Refused) as refused:
        parse(argv)
    assert refused.value.where == where
    assert refused.value.fix
