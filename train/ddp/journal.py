"""What each rank has done so far, kept so that it outlives the rank."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddp.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def journal_file(folder: Path, rank: int) -> Path:
    """Return where the rank keeps its journal."""
    return folder / f"rank-{rank}.jsonl"


def journal_files(folder: Path) -> dict[int, Path]:
    """Return the journals that are in the folder, by rank."""
    files = folder.glob("rank-*.jsonl")
    return {int(file.stem.partition("-")[2]): file for file in files}


class Journal:
    """One rank's journal; every entry is in the file before the rank goes on."""

    def __init__(self, file: Path) -> None:
        """Open a new journal; `file` must not exist."""
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._waits_for: str | None = None

    def _note(self, event: str, **values: object) -> None:
        entry = json.dumps({"t": time.monotonic(), "event": event, **values})
        os.write(self._descriptor, f"{entry}\n".encode())

    @property
    def is_waiting(self) -> bool:
        """Whether the rank is in something that ends only with the other ranks."""
        return self._waits_for is not None

    def begins(self, phase: str) -> None:
        """Note that a phase begins."""
        self._note("begin", phase=phase)

    def passed(self, phase: str, finding: Finding) -> None:
        """Note that a phase has passed, and what it has found."""
        self._note("pass", phase=phase, detail=finding.detail, data=dict(finding.data))

    def not_run(self, phase: str, reason: str) -> None:
        """Note that a phase can't be asked here, and why."""
        self._note("not run", phase=phase, reason=reason)

    def device(self, facts: dict[str, Any]) -> None:
        """Note which device the rank uses."""
        self._note("device", facts=facts)

    def failed(self, reason: str) -> None:
        """Note why the rank gives up."""
        self._note("fail", reason=reason)

    def done(self) -> None:
        """Note that the rank has come to its end."""
        self._note("done")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Mark a stretch that ends only when the other ranks come to it too.

        When it raises, the rank stays marked as waiting: the cause is probably
        another rank.
        """
        self._waits_for = what
        self._note("wait", what=what)
        yield
        self._waits_for = None
        self._note("go")


@dataclass(frozen=True)
class RankState:
    """How far a rank has come, as its journal tells.

    Times are in seconds of the monotonic clock.  `position` grows by one when
    the rank begins to wait for others and by one when it goes on; `last` is
    what it waits for or last waited for.
    """

    rank: int
    position: int = 0
    last: str | None = None
    since: float | None = None
    began: dict[str, float] = field(default_factory=dict)
    passed: dict[str, tuple[float, Finding]] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)
    failure: str | None = None
    failed_at: float | None = None
    device: dict[str, Any] | None = None
    is_done: bool = False
    host: str | None = None
    is_lost: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether the rank waits, or waited when it ended."""
        return self.position % 2 == 1

    @property
    def phase(self) -> str | None:
        """The phase that the rank has begun last."""
        return next(reversed(self.began), None)


def read_journal(file: Path, rank: int) -> RankState:
    """Return how far the rank has come; a missing file means not even begun."""
    lines = file.read_text().split("\n") if file.exists() else [""]
    values: dict[str, Any] = {"began": {}, "passed": {}, "not_run": {}, "position": 0}
    for line in lines[:-1]:  # what follows the last line end is an entry cut short, or nothing
        _enter(values, json.loads(line))
    return RankState(rank=rank, **values)


def _enter(values: dict[str, Any], entry: dict[str, Any]) -> None:
    """Bring the values of a `RankState` up to date with one entry."""
    event, now = entry["event"], entry["t"]
    if event == "begin":
        values["began"][entry["phase"]] = now
    elif event == "pass":
        seconds = now - values["began"][entry["phase"]]
        values["passed"][entry["phase"]] = (seconds, Finding(entry["detail"], entry["data"]))
    elif event == "not run":
        values["not_run"][entry["phase"]] = entry["reason"]
    elif event == "wait":
        values.update(position=values["position"] + 1, last=entry["what"])
    elif event == "go":
        values["position"] += 1
    elif event == "device":
        values["device"] = entry["facts"]
    elif event == "fail":
        values.update(failure=entry["reason"], failed_at=now)
    elif event == "done":
        values["is_done"] = True
    if event in ("begin", "wait", "go"):
        values["since"] = now
