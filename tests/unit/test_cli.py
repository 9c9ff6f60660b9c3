"""The command line: task names and flags are a contract, and the README tells them."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strata.cli import make_namespace
from strata.cli.private_engine import act, intent
from strata.engine.private import PrivateStatus
from strata.errors import (
    BuildError,
    DefinitionError,
    HostError,
    LayerTestError,
    LockError,
    PublishError,
    TrainingCheckError,
)
from strata.workspace import Workspace
from tests.projects import NOWHERE

if TYPE_CHECKING:
    from tests.projects import SmallProject

ROOT = Path(__file__).parents[2]
STARTS = (
    *("image", "variant", "port", "public", "gpus", "work", "user", "shm", "name", "env"),
    "dry-run",
)
FLAGS = {
    "list": set(),
    "plan": {"image", "variant", "platform", "json", "explain"},
    "build": {"image", "variant", "no-check", "from", "dry-run"},
    "fetch": {"image", "variant", "to", "dry-run"},
    "pin": {"variant", "dry-run"},
    "check": {"image", "variant", "nproc", "nodes", "gpus", "force", "dry-run"},
    "lock": {"variant", "check", "channel", "cooldown", "markdown", "dry-run"},
    "push": {"image", "variant", "registry", "dry-run"},
    "engine": {"action", "purge", "dry-run"},
    "clean": {"dry-run"},
    "bench": {"repeat", "dry-run"},
    "test": {"only", "dry-run"},
    "run": {*STARTS},
    "jupyter": {*STARTS, "stop"},
    "ssh": {*STARTS, "stop", "key", "config"},
}


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


def test_help_tells_what_each_flag_means() -> None:
    """`./inv build --help` shows the texts of the flags, as `invoke build --help` does."""
    argv = [sys.executable, "-m", "strata", "--search-root", str(ROOT), "build", "--help"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)

    assert "--dry-run                 say what would be done, and do nothing" in done.stdout
    assert "an image; may repeat; without it, all images" in done.stdout


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


def test_a_dry_run_of_the_tests_runs_none(project: SmallProject) -> None:
    """It says what pytest would be given."""
    done = project.inv("test", "--dry-run", "--only", "tests/unit", env={"DOCKER_HOST": NOWHERE})
    assert (done.returncode, done.stdout) == (0, "would run pytest tests/unit\n"), done.stderr


def test_a_dry_run_of_the_engine_says_what_it_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To start one that does not run, and to stop it with all it has."""
    monkeypatch.setattr("strata.cli.private_engine.start_private", pytest.fail)
    act(Workspace.of(tmp_path), "start", purge=False, dry_run=True)
    place = tmp_path / "build/engine"
    would = "would start one at unix:///run/strata-[0-9a-f]{8}/docker.sock, with its images in "
    assert re.fullmatch(f"{would}{place}\n", capsys.readouterr().out)
    status = PrivateStatus(
        is_running=True, host="unix:///x", pid=7, data_root=place, log=place / "log"
    )
    assert intent(status, "start", purge=False) == "it runs already: DOCKER_HOST=unix:///x"
    assert intent(status, "stop", purge=True) == "would stop it, pid 7"
    place.mkdir(parents=True)
    assert intent(status, "stop", purge=True) == f"would stop it, pid 7; would remove {place}"
    assert intent(replace(status, is_running=False), "stop", purge=False) == "it does not run"
