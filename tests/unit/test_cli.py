"""The command line: task names and flags are a contract, and the README tells them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strata.cli import make_namespace
from strata.errors import (
    BuildError,
    DefinitionError,
    HostError,
    LayerTestError,
    LockError,
    PublishError,
    TrainingCheckError,
)

ROOT = Path(__file__).parents[2]
FLAGS = {
    "list": set(),
    "plan": {"image", "variant", "platform", "json", "explain"},
    "build": {"image", "variant", "no-check", "from", "dry-run"},
    "fetch": {"image", "variant", "to", "dry-run"},
    "pin": {"variant", "dry-run"},
    "check": {"image", "variant", "nproc", "nodes", "gpus", "force", "dry-run"},
    "lock": {"variant", "check", "channel", "cooldown", "markdown", "dry-run"},
    "push": {"image", "variant", "registry", "dry-run"},
}


# Parsed once: a task gives its flags' help away only the first time.
CONTEXTS = {context.name: context.args for context in make_namespace(ROOT).to_contexts()}


def tasks() -> dict[str, set[str]]:
    """Return the flags of each task, by the task's name."""
    return {
        name: {argument.name.strip("_").replace("_", "-") for argument in args.values()}
        for name, args in CONTEXTS.items()
    }


@pytest.mark.parametrize("task", FLAGS)
def test_a_task_has_the_flags_of_the_contract(task: str) -> None:
    """Each task of the contract takes exactly its flags."""
    assert tasks()[task] == FLAGS[task]


def test_the_readme_names_every_task() -> None:
    """The README's table has a row for each task, and for nothing else."""
    table = (ROOT / "README.md").read_text().split("## Tasks")[1].split("Exit codes")[0]
    rows = re.findall(r"^\| `([a-z]+)", table, flags=re.MULTILINE)

    assert set(rows) == set(tasks())


def test_every_task_says_what_it_does() -> None:
    """Each task has a first line of help, and each of its flags has a text."""
    for name, args in CONTEXTS.items():
        assert make_namespace(ROOT)[name].__doc__, name
        assert {argument.name for argument in args.values() if not argument.help} == set(), name


def test_exit_codes_are_the_contract() -> None:
    """Each kind of failure has the exit code that the README tells."""
    codes = {
        DefinitionError: 2,
        LockError: 3,
        BuildError: 4,
        LayerTestError: 5,
        TrainingCheckError: 6,
        PublishError: 7,
        HostError: 8,
    }
    assert {kind: kind.exit_code for kind in codes} == codes
