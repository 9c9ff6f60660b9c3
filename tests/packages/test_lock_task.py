"""`./inv lock` on the command line: its flags, what it writes, and how it ends."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from strata.errors import DefinitionError
from strata.locking import cooled
from tests.packages.records import lay_out
from tests.projects import SmallProject

ROOT = Path(__file__).parents[2]
VARIANT = "cuda118-py39"
LOCK = f"locks/{VARIANT}/conda-lock.yml"


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay the records out as a channel's folder."""
    return lay_out(tmp_path_factory.mktemp("channel"))


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    """Copy this project's definitions."""
    for name in ("images", "layers", "locks", "train"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    shutil.copyfile(ROOT / "tasks.py", tmp_path / "tasks.py")
    return SmallProject(tmp_path)


def test_a_refresh_shows_its_changes_and_a_dry_run_writes_none(
    project: SmallProject, channel: Path
) -> None:
    """A table on the console, the same in Markdown, and the lock only without --dry-run."""
    lock, table = project.root / LOCK, project.root / "changes.md"
    before = lock.read_bytes()
    project.replace(f"locks/{VARIANT}/pins.yml", "  python: 3.9.*\n", "")
    project.replace(f"locks/{VARIANT}/sources.toml", "[left_out]", '[left_out]\n40-jupyter = "-"')
    words = ["lock", "--variant", VARIANT, "--channel", str(channel), "--markdown", str(table)]

    dry = project.inv(*words, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert dry.stdout.startswith(f"{LOCK}: ")
    assert "jupyterlab" in dry.stdout
    assert lock.read_bytes() == before
    text = table.read_text()
    assert text.startswith(f"## {VARIANT}\n\n")
    assert re.search(r"^\| linux-64 \| jupyter \| - \| \d+\.\d MB \| - \|$", text, re.MULTILINE)
    assert "| linux-64 | jupyter | jupyterlab | removed | 4." in text

    stale = project.inv("lock", "--check")
    assert stale.returncode == 3
    assert f'locks/{VARIANT}/pins.yml: the lock is stale: pins.python "3.9.*" is gone' in (
        stale.stderr
    )
    done = project.inv(*words, "--cooldown", "0")
    assert done.returncode == 0, done.stderr
    assert "locks/README.md is written anew" in done.stdout
    assert lock.read_bytes() != before
    assert project.inv("lock", "--check").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["--cooldown", "soon"], 2, "error: --cooldown soon: is no number of days"),
        (
            ["--variant", "embedded", "--channel", "/nowhere"],
            2,
            "error: --channel /nowhere: the variant makes its channel on the spot",
        ),
        (["--variant", VARIANT, "--channel", "/nowhere"], 3, "error: /nowhere: is no channel for"),
        (
            ["--variant", VARIANT, "--channel", "https://$NOT_SET_HERE@h/c"],
            2,
            "needs $NOT_SET_HERE, which is not set",
        ),
        (
            ["--variant", VARIANT, "--markdown", "/nowhere/x.md"],
            2,
            "error: --markdown /nowhere/x.md: cannot be written",
        ),
        (["--variant", VARIANT, "--markdown", "/"], 2, "error: --markdown /: cannot be written"),
        (["--variant", "cuda118"], 2, 'no variant "cuda118" (did you mean "cuda118-py39"?)'),
    ],
)
def test_what_cannot_be_done_is_told(
    project: SmallProject, words: list[str], code: int, expected: str
) -> None:
    """With its exit code, and no lock is touched."""
    before = {file: file.read_bytes() for file in project.root.glob("locks/*/conda-lock.yml")}
    done = project.inv("lock", *words)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert expected in done.stderr
    assert {file: file.read_bytes() for file in before} == before


def test_a_token_of_a_mirror_is_shown_by_its_name(project: SmallProject) -> None:
    """In the middle of the path, in what the solver says of the channel; exit code 4."""
    env = {"STRATA_CHANNEL_MIRROR": "http://127.0.0.2:9/$CH_TOK/conda-forge", "CH_TOK": "s3cr3t!"}
    done = project.inv("lock", "--variant", VARIANT, env=env)
    assert done.returncode == 4
    assert "error: http://127.0.0.2:9/$CH_TOK/conda-forge/: can't be read:" in done.stderr
    assert "url (http://127.0.0.2:9/$CH_TOK/conda-forge/" in done.stderr  # linux-64 or noarch
    assert "s3cr3t" not in done.stdout + done.stderr


def test_a_platform_of_the_sources_alone_fails_the_check(project: SmallProject) -> None:
    """It would be looked for in a lock that was never solved for it."""
    sources = f"locks/{VARIANT}/sources.toml"
    project.replace(sources, '["linux/amd64"]', '["linux/amd64", "linux/arm64"]')
    project.replace(sources, '"linux/amd64" = ', '"linux/arm64" = "unset"\n"linux/amd64" = ')
    done = project.inv("lock", "--variant", VARIANT, "--check")
    assert done.returncode == 2
    assert f"those of {sources} are linux/amd64, linux/arm64" in done.stderr


def test_the_cooldown_is_counted_in_days() -> None:
    """From now, and none for zero."""
    now = datetime(2026, 11, 30, tzinfo=UTC)
    assert cooled("7", now) == datetime(2026, 11, 23, tzinfo=UTC)
    assert cooled("0", now) is None
    with pytest.raises(DefinitionError):
        cooled("-1", now)
