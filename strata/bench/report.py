"""Shows a bench: a table on the console, and `bench/results.json`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from strata.bench.model import ROWS, ratio, value
from strata.bench.recipes import RECIPES, STRATA

if TYPE_CHECKING:
    from pathlib import Path

    from strata.bench.measure import Bench
    from strata.bench.model import Row
    from strata.workspace import Workspace

SCHEMA = "strata.bench/1"
MEGABYTE = 1_000_000
TITLE = "The same image three ways: PyTorch and JupyterLab for the CPU, on Debian"
# Said beside every table, for the figures mean nothing without it.
CONDITIONS = (
    "Each recipe runs in an engine of its own that has neither images nor build cache.",
    "Made before the clock starts: wheels, conda channel (strata), base.",
    "The base is a tarball for strata, an image in the engine for the others: its bytes are equal.",
    "All three images were asked in a container, and hold the same packages in the same versions.",
    "Debian packages come from the machine's mirror, within the clock of all three.",
)


def results_path(workspace: Workspace) -> Path:
    """Return where the results are kept."""
    return workspace.root / "bench" / "results.json"


def document(bench: Bench) -> dict[str, Any]:
    """Return the results: medians and single runs in seconds and bytes, ratios to strata."""
    reference = bench.of(STRATA)
    return {
        "schema": SCHEMA,
        "started": bench.started,
        "load_before": round(bench.load_before, 2),
        "machine": asdict(bench.runs[0].machine),
        "repeats": len(reference),
        "packages": len(bench.runs[0].content),
        "conditions": list(CONDITIONS),
        "rows": {row.field: {"means": row.text, "unit": row.unit} for row in ROWS},
        "recipes": {
            recipe.name: {
                "title": recipe.title,
                "dockerfile": recipe.dockerfile or None,
                "choices": list(recipe.choices),
                "median": {row.field: rounded(value(bench.of(recipe), row), row) for row in ROWS},
                "ratio": {
                    row.field: round(ratio(bench.of(recipe), reference, row), 3) for row in ROWS
                },
                "runs": [
                    {row.field: rounded(getattr(run, row.field), row) for row in ROWS}
                    for run in bench.of(recipe)
                ],
            }
            for recipe in RECIPES
        },
    }


def rounded(amount: float, row: Row) -> float:
    """Return milliseconds as a part of a second, and whole bytes."""
    return round(amount, 3) if row.unit == "s" else round(amount)


def write_bench(path: Path, bench: Bench) -> None:
    """Write the results in one piece."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(document(bench), indent=1, ensure_ascii=False) + "\n")
    partial.replace(path)


def cells(bench: Bench, row: Row) -> tuple[str, ...]:
    """Return the texts of a row, a recipe a cell; all but strata's with the ratio to it."""
    reference = bench.of(STRATA)
    texts = []
    for recipe in RECIPES:
        runs = bench.of(recipe)
        amount = value(runs, row)
        text = f"{amount:.1f} s" if row.unit == "s" else f"{amount / MEGABYTE:.1f} MB"
        times = "" if recipe is STRATA else f" ({ratio(runs, reference, row):.2f}x)"
        texts.append(f"{text}{times}")
    return tuple(texts)


def print_recipes() -> None:
    """Print what would be measured, and how."""
    for line in (*CONDITIONS, *_choices()):
        print(line)


def print_bench(bench: Bench) -> None:
    """Print the table, what it stands for, and what was decided for each recipe."""
    from rich.console import Console  # noqa: PLC0415 - only reports need it
    from rich.table import Table  # noqa: PLC0415

    console = Console()
    table = Table(title=TITLE)
    table.add_column("")
    for recipe in RECIPES:
        table.add_column(recipe.title, justify="right")
    for row in ROWS:
        table.add_row(row.text, *cells(bench, row))
    console.print(table)
    machine = bench.runs[0].machine
    runs = len(bench.of(STRATA))
    lines = [
        f"Medians of {runs} runs." if runs > 1 else "One run.",
        f"{machine.processor or 'unknown processor'}, {machine.cores} cores.",
        f"Docker {machine.engine}, buildx {machine.buildx}.",
        f"Load average before the bench: {bench.load_before:.1f}.",
        *CONDITIONS,
        *_choices(),
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _choices() -> list[str]:
    return [f"{recipe.title}: {choice}." for recipe in RECIPES for choice in recipe.choices]
