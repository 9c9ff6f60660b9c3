"""What docs/ddp-check.md says is what there is."""

import re
from pathlib import Path

import pytest

from ddp.arguments import parse
from ddp.phases import FAULTS, SPECS

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docs/ddp-check.md").read_text()
# The modules that set variables for the ranks.
SETTERS = ("agent.py", "compiling.py")


def rows(head: str) -> list[list[str]]:
    """Return the cells of the table that has this first column, without its head."""
    table = TEXT.split(f"\n| {head} |", 1)[1].split("\n\n", 1)[0]
    lines = table.splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_argument_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """The table has what --help has, and no more."""
    with pytest.raises(SystemExit):
        parse(["--help"])
    shown = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    told = {name for row in rows("argument") for name in re.findall(r"--[a-z-]+", row[0])}
    assert told == shown


def test_every_phase_is_explained_in_order() -> None:
    """The table of the phases is the program's own."""
    assert [row[0].strip("`") for row in rows("phase")] == [spec.name for spec in SPECS]


def test_every_fault_is_explained_with_its_phase() -> None:
    """The table has what --inject takes, and says where it is found."""
    told = [
        (fault, row[2].strip("`"))
        for row in rows("fault")
        for fault in re.findall(r"`([a-z-]+)`", row[0])
    ]
    assert sorted(told) == sorted((fault, spec.name) for spec in SPECS for fault in spec.faults)
    assert len(told) == len(FAULTS)


def test_every_variable_that_the_ranks_are_given_is_explained() -> None:
    """What the agent and the compiler's preparation set is in the table of the environment."""
    sources = "".join((ROOT / "train/ddp" / name).read_text() for name in SETTERS)
    given = set(re.findall(r'"((?:CUBLAS|GLOO|NCCL|OMP|TORCH|TORCHINDUCTOR)_[A-Z_]+)"', sources))
    told = {name for row in rows("variable") for name in re.findall(r"`([A-Z_]+)`", row[0])}
    assert {"OMP_NUM_THREADS", "TORCHINDUCTOR_CACHE_DIR"} <= given
    assert given - told == set()
