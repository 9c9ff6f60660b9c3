"""What people see of a record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from strata.record import ImageRecord, Outcome, RecordedLayer
from strata.report import COLUMNS, facts, markdown, not_run, plots, print_report, rows

if TYPE_CHECKING:
    from pathlib import Path

    from strata.record import Verdict

CHECKS = COLUMNS.index("checks")


def outcome(name: str, verdict: Verdict, detail: str, seconds: float = 1.0) -> Outcome:
    """Return one check."""
    return Outcome(name=name, verdict=verdict, detail=detail, seconds=seconds, key="k")


RECORD = ImageRecord(
    image="train",
    variant="embedded",
    ref="strata/train:embedded",
    input_digest="sha256:1",
    digest=f"sha256:{'0123456789ab' * 5}0000",
    layers=(
        RecordedLayer(
            digest="sha256:3", compressed=100_400_000, unpacked=300_000_000, cause="base"
        ),
        RecordedLayer(digest="sha256:4", compressed=1_000_000, unpacked=2_000_000, cause="10-one"),
    ),
    facts={"python": "3.11.2"},
    checks=(
        outcome("layer 10-one", "pass", "2 passed"),
        outcome("layer 20-two", "pass", "1 passed"),
        outcome("ddp", "pass", "CPU, gloo, 2 ranks", 9.0),
    ),
    not_run={"training on GPUs": "there is none"},
    build_seconds=2.5,
    recorded="2026-11-30T00:00:00Z",
)


def test_a_row_tells_an_image() -> None:
    """Sizes in megabytes, layers' tests as a count, the training check with what it ran on."""
    assert dict(zip(COLUMNS, *rows([RECORD]), strict=True)) == {
        "image": "strata/train:embedded",
        "digest": "0123456789ab",
        "layers": "2",
        "pull": "101 MB",
        "unpacked": "302 MB",
        "checks": "✓ layers 2/2\n✓ ddp: CPU, gloo, 2 ranks",
        "seconds": "11",
    }


@pytest.mark.parametrize(("verdict", "sign"), [("fail", "✗"), ("not run", "-")])
def test_what_did_not_pass_is_told_and_not_counted(verdict: Verdict, sign: str) -> None:
    """A check that was not run is no pass, and no failure either."""
    checks = (
        outcome("layer 10-one", "pass", "2 passed"),
        outcome("layer 20-two", verdict, "1 passed, 1 other\nsecond line"),
    )
    (row,) = rows([replace(RECORD, checks=checks)])
    assert row[CHECKS] == f"{sign} layers 1/2\n{sign} layer 20-two: 1 passed, 1 other"


def test_a_failed_check_beside_one_that_was_not_run_is_a_failure() -> None:
    """The worst is what stands in front."""
    checks = (outcome("layer 10-one", "not run", "x"), outcome("layer 20-two", "fail", ""))
    (row,) = rows([replace(RECORD, checks=checks)])
    assert row[CHECKS].startswith("✗ layers 0/2")


def test_an_unchecked_image_says_so() -> None:
    """Nothing is not a pass."""
    (row,) = rows([replace(RECORD, checks=())])
    assert row[CHECKS] == "not checked"


def test_facts_name_their_images_where_these_differ() -> None:
    """What all have is told once."""
    other = replace(RECORD, image="lab", facts={"python": "3.11.2", "jupyterlab": "4.5"})
    assert facts([RECORD, other]) == ["python 3.11.2", "jupyterlab 4.5 (lab)"]


def test_what_was_not_run_is_told_with_its_reason() -> None:
    """Left-out layers and skipped tests, each with the images that it concerns."""
    skipped = outcome("layer 20-two", "not run", "1 not run\ntest_x: no device")
    other = replace(RECORD, image="lab", checks=(skipped,))
    assert not_run([RECORD, other]) == [
        "training on GPUs: there is none (train, lab)",
        "layer 20-two: 1 not run; test_x: no device (lab)",
    ]


def test_a_plot_is_named_with_those_who_share_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Images of the same digest were measured once; a check without a plot names none."""
    drawn = replace(outcome("ddp", "pass", ""), plot="checks/embedded-train/plot.svg")
    records = [replace(RECORD, image=name, checks=(drawn,)) for name in ("train", "lab")]
    assert plots([RECORD, *records]) == ["checks/embedded-train/plot.svg (train, lab)"]
    print_report(records)
    told = "plot, beside the record: checks/embedded-train/plot.svg (train, lab)"
    assert told in capsys.readouterr().out.splitlines()


def test_the_console_shows_every_text_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program said is never taken for markup, nor cut off."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    said = outcome("ddp", "fail", "[/b] ended [red]with[/red] 1")
    print_report([replace(RECORD, checks=(said,), facts={"os": "[bold]"}, not_run={"a": "[/b]"})])
    out = capsys.readouterr().out
    assert "✗ ddp: [/b] ended [red]with[/red] 1" in out
    assert "fact: os [bold]" in out
    assert "not run: a: [/b] (train)" in out
    assert "strata/train:embedded" in out


def test_github_gets_the_same_as_markdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is added to the step summary, whose earlier lines stay."""
    summary = tmp_path / "summary.md"
    summary.write_text("earlier\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    print_report([RECORD])
    assert summary.read_text(encoding="utf-8") == "earlier\n" + markdown([RECORD])
    assert "strata/train:embedded" in capsys.readouterr().out


def test_markdown_cells_stay_in_their_cells() -> None:
    """Neither a line's end nor a bar breaks the table."""
    lines = markdown([replace(RECORD, checks=(outcome("ddp", "fail", "a|b"),))]).splitlines()
    assert lines[2] == f"| {' | '.join(COLUMNS)} |"
    assert lines[4].count(" | ") == len(COLUMNS) - 1
    assert r"a\|b" in lines[4]
    assert "- not run: training on GPUs: there is none (train)" in lines
