"""What a new lock changes, as a table for the console and as Markdown for a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.lock.changes import downloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strata.lock.changes import Download, LockChange, Solved

CHANGE_COLUMNS = ("platform", "layer", "package", "change", "before", "after", "download")
LAYER_COLUMNS = ("platform", "layer", "packages", "download before", "download after")
NUMBERS = ("packages", "download", "download before", "download after")
KINDS = ("added", "removed", "up", "down", "rebuilt", "moved")
NOTHING = "-"
MEGABYTE = 1_000_000


def change_rows(changes: Sequence[LockChange]) -> list[tuple[str, ...]]:
    """Return one row of texts a change, in the order of `CHANGE_COLUMNS`."""
    return [
        (
            change.platform,
            change.layer,
            change.name,
            change.kind,
            change.before or NOTHING,
            change.after or NOTHING,
            NOTHING if change.size is None else f"{change.size / MEGABYTE:.1f} MB",
        )
        for change in changes
    ]


def layer_rows(solved: Solved) -> list[tuple[str, ...]]:
    """Return one row of texts a layer and platform, in the order of `LAYER_COLUMNS`."""
    was, now = downloads(solved.before), downloads(solved.after)
    return [
        (*key, _count(now.get(key)), _text(was.get(key)), _text(now.get(key)))
        for key in sorted(was.keys() | now.keys())
    ]


def summary(changes: Sequence[LockChange]) -> str:
    """Return how many changes there are of each kind, in one line."""
    counts = {kind: sum(change.kind == kind for change in changes) for kind in KINDS}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "no changes"


def print_changes(title: str, solved: Solved) -> None:
    """Print what changed; of a lock that was not there before, the layers alone."""
    from rich.table import Table  # noqa: PLC0415 - only reports need it
    from rich.text import Text  # noqa: PLC0415 - only reports need it

    from strata.report import make_console  # noqa: PLC0415 - only reports need it

    console = make_console()
    console.print(f"{title}: {summary(solved.changes)}", highlight=False, markup=False)
    shown = solved.changes if solved.before else ()
    parts = ((CHANGE_COLUMNS, change_rows(shown)), (LAYER_COLUMNS, layer_rows(solved)))
    for columns, rows in parts:
        if not rows or not solved.changes:
            continue
        table = Table()
        for name in columns:
            table.add_column(name, justify="right" if name in NUMBERS else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)


def markdown_changes(title: str, solved: Solved) -> str:
    """Return what changed as GitHub's Markdown, the packages folded away."""
    lines = [f"## {title}", "", f"{summary(solved.changes)}", ""]
    if solved.changes:
        lines += [*markdown_table(LAYER_COLUMNS, layer_rows(solved)), ""]
        lines += ["<details><summary>packages</summary>", ""]
        lines += [
            *markdown_table(CHANGE_COLUMNS, change_rows(solved.changes)),
            "",
            "</details>",
            "",
        ]
    return "\n".join(lines)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in GitHub's Markdown, numbers to the right."""
    rules = ["---:" if column in NUMBERS else "---" for column in columns]
    return [f"| {' | '.join(cells)} |" for cells in (columns, rules, *rows)]


def _text(download: Download | None) -> str:
    return str(download) if download else NOTHING


def _count(download: Download | None) -> str:
    return str(download.packages) if download else NOTHING
