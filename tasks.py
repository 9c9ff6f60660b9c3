"""The command line of strata, as Invoke finds it; the tasks are in strata/cli."""

from pathlib import Path

from strata.cli import make_namespace

ns = make_namespace(Path(__file__).parent)
