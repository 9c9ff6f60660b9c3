"""`build/record.json`: what each image is, what was checked, and what was not."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from strata.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date
    from pathlib import Path

SCHEMA = "strata.record/1"
Verdict = Literal["pass", "fail", "not run"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one check of an image ended.

    `key` is the digest of what was run (tests, options); together with the
    image's digest it tells whether the check need be run again.  `seconds` is
    the time that it took when it ran.  `plot` is the drawing of what it measured,
    by its path from the record's folder; "" where it measured nothing to draw.
    """

    name: str
    verdict: Verdict
    detail: str
    seconds: float
    key: str
    plot: str = ""


@dataclass(frozen=True, kw_only=True)
class RecordedLayer:
    """One blob of an image: bytes as pulled, bytes of its files, and the layer that made it."""

    digest: str
    compressed: int
    unpacked: int
    cause: str


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a build took of this machine, all in bytes.

    `memory` is the most that strata itself had resident, `program_memory` the most
    that any one program had that it ran (the client, a converter of wheels).
    `cache` is the disk that the cache folder takes afterwards, `engine` what the
    engine counts as its own then: all layers and its build cache (`docker system df`).
    """

    memory: int
    program_memory: int
    cache: int
    engine: int


@dataclass(frozen=True, kw_only=True)
class ImageRecord:
    """Everything that is known of one image of one variant.

    `not_run` says what was left out or not checked, and why; `build_seconds`
    is the time of the bake call that made it, 0 where nothing was to be done.
    `recorded` is when it was last built or checked (UTC, ISO 8601).
    `resources` are those of the last run that built something; None where none
    has, or where it was recorded before they were.
    """

    image: str
    variant: str
    ref: str
    input_digest: str
    digest: str
    layers: tuple[RecordedLayer, ...]
    facts: Mapping[str, str]
    checks: tuple[Outcome, ...]
    not_run: Mapping[str, str]
    build_seconds: float
    recorded: str
    resources: Resources | None = None

    @property
    def compressed(self) -> int:
        """Bytes to pull, all layers together."""
        return sum(layer.compressed for layer in self.layers)

    @property
    def unpacked(self) -> int:
        """Bytes of the files of all layers together."""
        return sum(layer.unpacked for layer in self.layers)

    @property
    def day(self) -> date:
        """The (UTC) day on which it was recorded."""
        return datetime.fromisoformat(self.recorded).date()

    @property
    def has_passed(self) -> bool:
        """Whether it was checked, and every check that was run passed."""
        return bool(self.checks) and all(check.verdict == "pass" for check in self.checks)

    def passed(self, name: str, key: str) -> Outcome | None:
        """Return the outcome of a check that passed with this key, if there is one."""
        found = (c for c in self.checks if (c.name, c.key, c.verdict) == (name, key, "pass"))
        return next(found, None)


Records = dict[tuple[str, str], ImageRecord]


def read_records(path: Path) -> Records:
    """Return the records by variant and image; none where there is no file.

    Raises `DefinitionError` for a file that is no record of ours.
    """
    if not path.is_file():
        return {}
    try:
        by_schema = {
            found["schema"]: found for found in [json.loads(path.read_text(encoding="utf-8"))]
        }
        records = [_image(entry) for entry in by_schema[SCHEMA]["images"]]
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        raise DefinitionError.at(
            str(path), f"is not a record of {SCHEMA}: {broken!r}", f"rm {path}, then ./inv build"
        ) from None
    return {(record.variant, record.image): record for record in records}


def write_records(path: Path, records: Iterable[ImageRecord]) -> None:
    """Write the records in one piece: a reader sees the old file or the new one."""
    images = sorted(records, key=lambda record: (record.variant, record.image))
    document = {
        "schema": SCHEMA,
        "images": [
            {**asdict(r), "compressed": r.compressed, "unpacked": r.unpacked} for r in images
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _image(entry: Mapping[str, Any]) -> ImageRecord:
    fields = {k: v for k, v in entry.items() if k not in ("compressed", "unpacked")}
    fields["layers"] = tuple(RecordedLayer(**layer) for layer in entry["layers"])
    fields["checks"] = tuple(Outcome(**check) for check in entry["checks"])
    took = entry.get("resources")
    fields["resources"] = Resources(**took) if took else None
    record = ImageRecord(**fields)
    record.day  # noqa: B018 - a record without a day is none
    return record
