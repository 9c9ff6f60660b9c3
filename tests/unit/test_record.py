"""The record: what is kept of an image, and read again."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from strata.errors import DefinitionError
from strata.record import (
    ImageRecord,
    Outcome,
    RecordedLayer,
    Resources,
    read_records,
    write_records,
)

if TYPE_CHECKING:
    from pathlib import Path

PASSED = Outcome(name="layer 10-one", verdict="pass", detail="2 passed", seconds=1.5, key="k1")
TRAINED = Outcome(
    name="ddp",
    verdict="pass",
    detail="CPU, gloo, 2 ranks",
    seconds=9.0,
    key="k2",
    plot="checks/embedded-train/plot.svg",
)
RECORD = ImageRecord(
    image="train",
    variant="embedded",
    ref="strata/train:embedded",
    input_digest="sha256:1",
    digest="sha256:2",
    layers=(
        RecordedLayer(digest="sha256:3", compressed=10, unpacked=30, cause="base"),
        RecordedLayer(digest="sha256:4", compressed=1, unpacked=2, cause="10-one"),
    ),
    facts={"python": "3.11.2", "note": "é"},
    checks=(PASSED, TRAINED),
    not_run={"training on GPUs": "there is none"},
    build_seconds=2.5,
    recorded="2026-11-30T00:00:00Z",
    resources=Resources(memory=1, program_memory=2, cache=3, engine=4),
)
NO_DAY = json.dumps(
    {"schema": "strata.record/1", "images": [{**asdict(RECORD), "recorded": "yesterday"}]}
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Value by value, by variant and image."""
    path = tmp_path / "build" / "record.json"
    other = replace(RECORD, image="lab", checks=())
    write_records(path, [RECORD, other])
    assert read_records(path) == {("embedded", "lab"): other, ("embedded", "train"): RECORD}


def test_the_file_holds_the_sums_and_names_its_schema(tmp_path: Path) -> None:
    """For those who read it without us."""
    path = tmp_path / "record.json"
    write_records(path, [RECORD])
    document = json.loads(path.read_text())
    assert document["schema"] == "strata.record/1"
    (image,) = document["images"]
    assert (image["compressed"], image["unpacked"]) == (11, 32)
    assert image["checks"][1]["detail"] == "CPU, gloo, 2 ranks"
    assert [check["plot"] for check in image["checks"]] == ["", "checks/embedded-train/plot.svg"]


def test_a_record_of_before_there_were_plots_is_read(tmp_path: Path) -> None:
    """An outcome without the key has no plot: what passed is not checked again for it."""
    path = tmp_path / "record.json"
    write_records(path, [RECORD])
    document = json.loads(path.read_text())
    del document["images"][0]["checks"][1]["plot"]
    path.write_text(json.dumps(document))
    record = read_records(path)["embedded", "train"]
    assert record.passed("ddp", "k2") == replace(TRAINED, plot="")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_record_of_before_resources_were_measured_is_read(
    tmp_path: Path,
    is_there: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Without the key, or where nothing was built since: nothing is known of them."""
    path = tmp_path / "record.json"
    write_records(path, [replace(RECORD, resources=None)])
    document = json.loads(path.read_text())
    if not is_there:
        del document["images"][0]["resources"]
        path.write_text(json.dumps(document))
    assert read_records(path)["embedded", "train"] == replace(RECORD, resources=None)


def test_no_file_is_no_records(tmp_path: Path) -> None:
    """The first run finds nothing."""
    assert read_records(tmp_path / "record.json") == {}


def test_a_reader_never_sees_half_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that dies before its end leaves the old file as it was."""
    path = tmp_path / "record.json"
    write_records(path, [RECORD])
    before = path.read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_records(path, [])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": "strata.record/0", "images": []}',
        '{"schema": "strata.record/1"}',
        '{"schema": "strata.record/1", "images": [{"image": "x"}]}',
        '{"schema": "strata.record/1", "images": ["x"]}',
        NO_DAY,
        '{"schema": "strata.record/1", "images": [{"layers": [], "checks": [], "more": 1}]}',
    ],
)
def test_a_file_that_is_no_record_is_told(tmp_path: Path, text: str) -> None:
    """With the way out; it is no traceback."""
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(DefinitionError, match="is not a record") as failure:
        read_records(path)
    assert f"rm {path}" in str(failure.value)


def test_only_images_whose_checks_all_passed_have_passed() -> None:
    """An unchecked image has not, nor one of which a check failed or was not run."""
    assert RECORD.has_passed
    assert not replace(RECORD, checks=()).has_passed
    for verdict in ("fail", "not run"):
        assert not replace(RECORD, checks=(PASSED, replace(TRAINED, verdict=verdict))).has_passed


def test_a_record_has_the_day_on_which_it_was_made() -> None:
    """In UTC, to its last second."""
    late = replace(RECORD, recorded="2026-11-30T23:59:59Z")
    assert (RECORD.day, late.day) == (date(2026, 11, 30), date(2026, 11, 30))


def test_a_check_is_known_by_its_name_and_key() -> None:
    """Other tests, another check, or one that failed, count for nothing."""
    assert RECORD.passed("ddp", "k2") == TRAINED
    assert RECORD.passed("ddp", "k1") is None
    assert RECORD.passed("layer 10-one", "k2") is None
    failed = replace(RECORD, checks=(replace(TRAINED, verdict="fail"),))
    assert failed.passed("ddp", "k2") is None
