"""The command line of strata: parses, calls, reports."""

from strata.cli import namespace

ns = namespace
