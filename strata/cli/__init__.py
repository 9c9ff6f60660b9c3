"""The tasks: each parses its arguments, calls, and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invoke import Collection

from strata.cli import host, make, prove, show, start, upkeep

if TYPE_CHECKING:
    from pathlib import Path


def make_namespace(root: Path) -> Collection:
    """Return the tasks of the project at `root`."""
    namespace = Collection()
    for module in (show, make, start, prove, host, upkeep):
        for task in Collection.from_module(module).tasks.values():
            namespace.add_task(task)
    namespace.configure({"strata": {"root": str(root)}})
    return namespace
