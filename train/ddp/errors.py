"""How ddp-check says no: where, what, and how to fix it."""

from __future__ import annotations

DONE = 0
BAD_ARGUMENTS = 2
FAILED = 6


class Refused(Exception):  # noqa: N818 - it refuses to start: no check has been made
    """The arguments make no sense, or not on this machine."""

    def __init__(self, where: str, what: str, fix: str) -> None:
        """Keep the three parts that people see."""
        super().__init__(where, what, fix)
        self.where = where
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        """Render as the two lines that people see."""
        return f"error: {self.where}: {self.what}\n  fix: {self.fix}"


class PhaseFailed(Exception):  # noqa: N818 - the outcome of a phase, not an error in the program
    """A phase has found that something is not what it must be; its text is the reason."""


class PhaseNotRun(Exception):  # noqa: N818 - the outcome of a phase, not an error in the program
    """A phase can't be asked here; its text is the reason.  Never a pass."""
