"""Tasks that prove strata itself: test, bench."""

from __future__ import annotations

import sys
from typing import Any

from strata.cli.frame import DRY_RUN, strata_task, workspace_of


@strata_task(
    name="test",
    iterable=["only"],
    help={
        "only": "hand this to pytest instead of the whole suite; may repeat",
        "dry-run": DRY_RUN,
    },
)
def suite(c: Any, only: list[str], dry_run: bool = False) -> None:
    """Run the whole test suite, setting up what it needs."""
    from strata.check.options import CheckOptions
    from strata.pipeline import build_images, prepare
    from strata.report import print_report
    from strata.testing import FOLDERS, run_tests

    workspace = workspace_of(c)
    plan = None if only else prepare(workspace, [], "embedded")
    if dry_run:
        from strata.cli.show import print_plan

        if plan:
            print_plan(workspace, plan)
        print(f"would run pytest {' '.join(only or FOLDERS)}")
        return
    if plan:
        build_images(workspace, plan, CheckOptions(), print_report)
    sys.exit(run_tests(workspace, only))


@strata_task(
    help={
        "repeat": "how often each way is measured; the median is shown",
        "dry-run": DRY_RUN,
    },
)
def bench(c: Any, repeat: int = 1, dry_run: bool = False) -> None:
    """Measure strata beside other ways to the same image; write bench/results.json."""
    from strata.bench import print_bench, print_recipes, results_path, run_bench, write_bench

    workspace = workspace_of(c)
    if dry_run:
        print_recipes()
        return
    measured = run_bench(workspace, repeat)
    print_bench(measured)
    write_bench(results_path(workspace), measured)
