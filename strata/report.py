"""Shows the records: a table on the console, and the same in GitHub's step summary."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from strata.record import ImageRecord, Outcome

COLUMNS = ("image", "digest", "layers", "pull", "unpacked", "checks", "seconds")
NUMBERS = ("layers", "pull", "unpacked", "seconds")
SUMMARY = "GITHUB_STEP_SUMMARY"
MEGABYTE = 1_000_000
NEWLINE = "\n"
LOG_WIDTH = 200  # columns


def rows(records: Sequence[ImageRecord]) -> list[tuple[str, ...]]:
    """Return one row of texts an image, in the order of `COLUMNS`."""
    return [
        (
            record.ref,
            record.digest.removeprefix("sha256:")[:12],
            str(len(record.layers)),
            f"{record.compressed / MEGABYTE:.0f} MB",
            f"{record.unpacked / MEGABYTE:.0f} MB",
            _checks(record.checks),
            f"{sum(check.seconds for check in record.checks):.0f}",
        )
        for record in records
    ]


def facts(records: Sequence[ImageRecord]) -> list[str]:
    """Return the versions that were read in the images, one line each, with who has them."""
    found: dict[str, list[str]] = {}
    for record in records:
        for name, value in record.facts.items():
            found.setdefault(f"{name} {value}", []).append(record.image)
    return [
        fact if len(names) == len(records) else f"{fact} ({', '.join(names)})"
        for fact, names in found.items()
    ]


def not_run(records: Sequence[ImageRecord]) -> list[str]:
    """Return one line for each thing that was left out or not checked, and why."""
    reasons: dict[str, list[str]] = {}
    for record in records:
        lines = [f"{what}: {why}" for what, why in record.not_run.items()]
        lines += [
            f"{check.name}: {check.detail.replace(chr(10), '; ')}"
            for check in record.checks
            if check.verdict == "not run"
        ]
        for line in lines:
            reasons.setdefault(line, []).append(record.image)
    return [f"{line} ({', '.join(names)})" for line, names in reasons.items()]


def plots(records: Sequence[ImageRecord]) -> list[str]:
    """Return one line for each drawing of what a check measured, and whose it is."""
    found: dict[str, list[str]] = {}
    for record in records:
        for check in record.checks:
            if check.plot:
                found.setdefault(check.plot, []).append(record.image)
    return [f"{plot} ({', '.join(names)})" for plot, names in found.items()]


def make_console() -> Console:
    """Return the console for tables: as wide as a log's lines where nobody watches."""
    from rich.console import Console  # noqa: PLC0415 - only reports need it

    # rich would fold a log at 80 columns.
    is_log = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(soft_wrap=True, width=LOG_WIDTH if is_log else None)


def print_report(records: Sequence[ImageRecord]) -> None:
    """Print the table, facts, plots and what was not run; in GitHub Actions, the summary too."""
    from rich.table import Table  # noqa: PLC0415 - only reports need it
    from rich.text import Text  # noqa: PLC0415 - only reports need it

    console = make_console()
    table = Table()
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in NUMBERS else "left", overflow="fold")
    for row in rows(records):
        table.add_row(*map(Text, row))  # what programs said is no markup
    console.print(table)
    for fact in facts(records):
        console.print(f"fact: {fact}", highlight=False, markup=False)
    for plot in plots(records):
        console.print(f"plot, beside the record: {plot}", highlight=False, markup=False)
    for line in not_run(records):
        console.print(f"not run: {line}", highlight=False, markup=False)
    if summary := os.environ.get(SUMMARY):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(markdown(records))


def markdown(records: Sequence[ImageRecord]) -> str:
    """Return the report as GitHub's Markdown."""
    lines = ["## strata", "", f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    for row in rows(records):
        cells = (cell.replace("|", r"\|").replace("\n", "<br>") for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- {fact}" for fact in facts(records))]
    lines += [f"- not run: {line}" for line in not_run(records)]
    return "\n".join(lines) + "\n"


def _checks(outcomes: Sequence[Outcome]) -> str:
    """Return a cell: how many layers' tests passed, and each other check with its label."""
    if not outcomes:
        return "not checked"
    signs = {"pass": "✓", "fail": "✗", "not run": "-"}
    layers = [outcome for outcome in outcomes if outcome.name.startswith("layer ")]
    passed = sum(outcome.verdict == "pass" for outcome in layers)
    verdicts = {outcome.verdict for outcome in layers}
    worst = next((v for v in ("fail", "not run") if v in verdicts), "pass")
    told = [outcome for outcome in layers if outcome.verdict != "pass"]
    told += [outcome for outcome in outcomes if outcome not in layers]
    lines = [f"{signs[o.verdict]} {o.name}: {o.detail.partition(NEWLINE)[0]}" for o in told]
    return NEWLINE.join([f"{signs[worst]} layers {passed}/{len(layers)}", *lines])
