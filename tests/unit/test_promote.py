"""What may be pushed, and under which tag."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import strata.promote
from strata.errors import PublishError
from strata.pipeline import record_path
from strata.promote import commit_of, promote, unfit
from strata.record import ImageRecord, Outcome, write_records
from strata.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from strata.plan import PlannedImage
    from strata.record import Verdict
    from tests.projects import SmallProject

AGAIN = "./inv build --image small --variant embedded"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def outcome(name: str, verdict: Verdict) -> Outcome:
    """Return one check's outcome."""
    return Outcome(name=name, verdict=verdict, detail="", seconds=1.0, key="k")


def record_of(image: PlannedImage) -> ImageRecord:
    """Return the record of an image that was built from its plan and passed."""
    return ImageRecord(
        image=image.name,
        variant=image.variant,
        ref=image.ref,
        input_digest=f"sha256:{image.step.digest}",
        digest=f"sha256:{'a' * 64}",
        layers=(),
        facts={},
        checks=(outcome("layer 10-one", "pass"), outcome("ddp", "pass")),
        not_run={"training on GPUs": "there is none"},
        build_seconds=0.0,
        recorded="2026-11-28T23:59:59Z",
    )


@pytest.fixture
def small(project: SmallProject) -> PlannedImage:
    """Return an image of one layer, as it is planned."""
    return project.plan("small").images[0]


def test_an_image_that_passed_may_be_pushed(small: PlannedImage) -> None:
    """What could not be run here, and is no check, does not stand in the way."""
    assert unfit(small, record_of(small)) is None


def test_an_image_that_was_never_built_may_not(small: PlannedImage) -> None:
    """There is nothing that says what it is."""
    problem = unfit(small, None)
    assert problem is not None
    assert (problem.where, problem.fix) == ("strata/small:embedded", AGAIN)
    assert problem.what == "the record does not know it"


def test_an_image_of_other_definitions_may_not(small: PlannedImage) -> None:
    """It passed, but it is not what the commit describes."""
    problem = unfit(small, replace(record_of(small), input_digest=f"sha256:{'b' * 64}"))
    assert problem is not None
    assert (problem.what, problem.fix) == ("the definitions changed since it was built", AGAIN)


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ((), "none was run"),
        ((outcome("layer 10-one", "fail"), outcome("ddp", "pass")), "layer 10-one fail"),
        ((outcome("layer 10-one", "pass"), outcome("ddp", "not run")), "ddp not run"),
        (
            (outcome("layer 10-one", "not run"), outcome("ddp", "fail")),
            "layer 10-one not run, ddp fail",
        ),
    ],
)
def test_an_image_that_did_not_pass_may_not(
    small: PlannedImage, checks: tuple[Outcome, ...], reason: str
) -> None:
    """Every check that failed or was not run is named."""
    problem = unfit(small, replace(record_of(small), checks=checks))
    assert problem is not None
    assert problem.what == f"its checks did not pass ({reason})"


@pytest.fixture
def pushed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str, str]]:
    """Catch what would go to a registry: the images, their tag and the moving one."""
    sent: list[tuple[list[str], str, str]] = []

    def push(_env: object, _sdk: object, candidates: list[object], **how: str) -> list[object]:
        names = [str(candidate.image) for candidate in candidates]  # type: ignore[attr-defined]
        sent.append((names, how["tag"], how["moving_tag"]))
        return []

    engine = SimpleNamespace(env={})
    monkeypatch.setattr(strata.promote, "ensure_engine", lambda _: (engine, None))
    sdk = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(strata.promote, "client", lambda *_, **__: sdk)
    monkeypatch.setattr(strata.promote, "commit_of", lambda _: (COMMIT, False))
    monkeypatch.setattr(strata.promote, "push_images", push)
    return sent


def test_the_tag_has_the_day_of_the_record(
    project: SmallProject, pushed: list[tuple[list[str], str, str]]
) -> None:
    """The last image's, whatever the day of the push: pushed again, it is the same tag."""
    workspace, plan = Workspace.of(project.root), project.plan("small", "pair")
    days = ("2026-11-28T23:59:59Z", "2026-11-29T00:00:00Z")
    records = [
        replace(record_of(image), recorded=day)
        for image, day in zip(plan.images, days, strict=True)
    ]
    write_records(record_path(workspace), records)
    assert promote(workspace, plan, "ghcr.io/ada", dry_run=False) == []
    names = [image.name for image in plan.images]
    assert pushed == [(names, "embedded-20261129-g0123456", "embedded")]


def test_one_unfit_image_stops_the_whole_push(
    project: SmallProject, pushed: list[tuple[list[str], str, str]]
) -> None:
    """All that may not be pushed are told, and nothing is sent."""
    workspace, plan = Workspace.of(project.root), project.plan("small", "pair", "whole")
    by_name = {image.name: image for image in plan.images}
    failed = replace(record_of(by_name["pair"]), checks=(outcome("layer 20-two", "fail"),))
    write_records(record_path(workspace), [record_of(by_name["small"]), failed])
    with pytest.raises(PublishError) as refused:
        promote(workspace, plan, "ghcr.io/ada", dry_run=False)
    assert refused.value.exit_code == 7
    places = {problem.where for problem in refused.value.problems}
    assert places == {"strata/pair:embedded", "strata/whole:embedded"}
    assert pushed == []


def git(root: Path, *words: str) -> str:
    """Run git as somebody without a configuration."""
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    done = subprocess.run(
        ["git", "-C", str(root), *who, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_the_commit_is_that_which_is_checked_out(tmp_path: Path) -> None:
    """Outside git there is none; a file that git does not know is a difference."""
    assert commit_of(tmp_path) == ("", True)
    git(tmp_path, "init", "--quiet")
    with pytest.raises(PublishError) as refused:
        commit_of(tmp_path)
    assert refused.value.problems[0].fix == "push from a git clone with a commit: git log -1"
    (tmp_path / "one").touch()
    git(tmp_path, "add", "one")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert (commit_of(tmp_path), len(commit)) == ((commit, False), 40)
    (tmp_path / "two").touch()
    assert commit_of(tmp_path) == (commit, True)
