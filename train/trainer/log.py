"""What rank 0 tells: a progress bar, a CSV file, and event files for TensorBoard."""

from __future__ import annotations

import csv
import os
import sys
import time
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from trainer.events import EventFile

if TYPE_CHECKING:
    from pathlib import Path

BAR = 24  # characters


@dataclass(frozen=True)
class Line:
    """One line of the log; means are over all ranks' real samples since the line before."""

    step: int
    epoch: int
    part: str  # "train" or "validation"
    loss: float
    accuracy: float
    rate: float
    samples_per_second: float  # of all ranks together; of a validation 0


class Log:
    """The log of one run; make it on rank 0 only."""

    def __init__(self, folder: Path, step: int, steps: int) -> None:
        """Go on with the log in `folder` from `step` on; lines of later steps are void."""
        self._steps = steps
        self._started = time.monotonic()
        self._first = step
        file = folder / "log.csv"
        keep_until(file, step)
        self._stream = file.open("a", newline="")
        self._csv = csv.DictWriter(self._stream, [field.name for field in fields(Line)])
        if self._stream.tell() == 0:
            self._csv.writeheader()
        self._events = EventFile(folder, step + 1)

    def write(self, line: Line) -> None:
        """Add a line to the files, and show it."""
        self._csv.writerow(asdict(line))
        self._stream.flush()
        values = {"loss": line.loss, "accuracy": line.accuracy}
        if line.part == "train":
            values.update(rate=line.rate, samples_per_second=line.samples_per_second)
        tags = {f"{line.part}/{name}": value for name, value in values.items()}
        self._events.write(line.step, tags)
        self._say(
            f"step {line.step} of {self._steps}, epoch {line.epoch}, {line.part}: "
            f"loss {line.loss:.4f}, accuracy {line.accuracy:.4f}"
            + (f", {line.samples_per_second:.0f} samples/s" if line.part == "train" else "")
        )

    def progress(self, step: int) -> None:
        """Redraw the progress bar, where stderr is a terminal."""
        if sys.stderr.isatty():
            elapsed = time.monotonic() - self._started
            left = elapsed / max(1, step - self._first) * (self._steps - step)
            sys.stderr.write(f"\r{draw_bar(step, self._steps)} {left:.0f} s left \x1b[K")
            sys.stderr.flush()

    def close(self) -> None:
        """Close the files, and leave the line of the progress bar."""
        if sys.stderr.isatty():
            sys.stderr.write("\n")
        self._stream.close()
        self._events.close()

    def _say(self, text: str) -> None:
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{start}{text}\n")
        sys.stderr.flush()


def draw_bar(step: int, steps: int) -> str:
    """Return the progress bar: as much of it as `step` is of `steps`."""
    done = BAR * step // max(1, steps)
    return f"[{'#' * done}{'.' * (BAR - done)}] {step}/{steps}"


def keep_until(file: Path, step: int) -> None:
    """Take the lines of later steps than `step` out of a CSV file, if it is there."""
    if not file.exists():
        return
    with file.open(newline="") as stream:
        rows = list(csv.reader(stream))
    # A run that was killed may have left half a line.
    whole = [row for row in rows[1:] if len(row) == len(rows[0])]
    kept = [*rows[:1], *(row for row in whole if int(row[0]) <= step)]
    part = file.with_name(f"{file.name}.part")
    with part.open("w", newline="") as stream:
        csv.writer(stream).writerows(kept)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)
