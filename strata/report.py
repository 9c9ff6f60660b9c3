"""Shows the records: a table on the console, and the same in GitHub's step summary."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strata.record import ImageRecord

COLUMNS = ("image", "variant", "digest", "pull", "unpacked", "facts", "checks", "seconds")
SUMMARY = "GITHUB_STEP_SUMMARY"
MEGABYTE = 1_000_000


def rows(records: Sequence[ImageRecord]) -> list[tuple[str, ...]]:
    """Return one row of texts an image, in the order of `COLUMNS`."""
    return [
        (
            record.image,
            record.variant,
            record.digest.removeprefix("sha256:")[:12],
            f"{record.compressed / MEGABYTE:.0f} MB",
            f"{record.unpacked / MEGABYTE:.0f} MB",
            "\n".join(f"{name} {value}" for name, value in record.facts.items()),
            "\n".join(_checks(record)) or "not checked",
            f"{record.build_seconds + sum(check.seconds for check in record.checks):.0f}",
        )
        for record in records
    ]


def not_run(records: Sequence[ImageRecord]) -> list[str]:
    """Return one line for each thing that was left out or not checked, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for what, why in record.not_run.items():
            reasons.setdefault((what, why), []).append(record.image)
    return [f"{what} ({', '.join(names)}): {why}" for (what, why), names in reasons.items()]


def print_report(records: Sequence[ImageRecord]) -> None:
    """Print the table, and what was not run; in GitHub Actions, write the summary too."""
    from rich.console import Console  # noqa: PLC0415 - only reports need it
    from rich.table import Table  # noqa: PLC0415

    console = Console()
    table = Table(title="strata", show_lines=True)
    for column in COLUMNS:
        right = column in ("pull", "unpacked", "seconds")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows(records):
        table.add_row(*row)
    console.print(table)
    for line in not_run(records):
        console.print(f"not run: {line}", highlight=False, markup=False)
    if summary := os.environ.get(SUMMARY):
        with Path(summary).open("a") as file:
            file.write(markdown(records))


def markdown(records: Sequence[ImageRecord]) -> str:
    """Return the report as GitHub's Markdown."""
    lines = ["## strata", "", f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    for row in rows(records):
        cells = (cell.replace("|", r"\|").replace("\n", "<br>") for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- not run: {line}" for line in not_run(records)), ""]
    return "\n".join(lines) + "\n"


def _checks(record: ImageRecord) -> list[str]:
    signs = {"pass": "✓", "fail": "✗", "not run": "–"}
    return [
        f"{signs[check.verdict]} {check.name}: {check.detail.splitlines()[0]}"
        for check in record.checks
    ]
