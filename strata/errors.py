"""Every way in which strata fails: where, what, how to fix it, and an exit code."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong: the place, the reason, and the way out."""

    where: str
    what: str
    fix: str

    def __str__(self) -> str:
        """Render as the two lines that people see."""
        return f"error: {self.where}: {self.what}\n  fix: {self.fix}"


class StrataError(Exception):
    """A failure that a user can act on.

    Carries one or more problems; its class decides the exit code.
    """

    exit_code = 1

    def __init__(self, *problems: Problem) -> None:
        """Keep the problems in the order in which they were found."""
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        """Render all problems, one after the other."""
        return "\n".join(str(problem) for problem in self.problems)

    @classmethod
    def at(cls, where: str, what: str, fix: str) -> StrataError:
        """Make an error of this class with a single problem."""
        return cls(Problem(where=where, what=what, fix=fix))


class DefinitionError(StrataError):
    """A definition or an argument is wrong."""

    exit_code = 2


class LockError(StrataError):
    """A lock is missing, stale or broken."""

    exit_code = 3


class BuildError(StrataError):
    """An image, or something that an image is made of, could not be built."""

    exit_code = 4


class LayerTestError(StrataError):
    """A layer's tests failed in a container of an image."""

    exit_code = 5


class TrainingCheckError(StrataError):
    """The training check failed in a container of an image."""

    exit_code = 6


class PublishError(StrataError):
    """An image could not be published, or was not what it should be afterwards."""

    exit_code = 7


class HostError(StrataError):
    """The host lacks something: an engine, disk space, a program, a permission."""

    exit_code = 8


def closest(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean "…"?)` for the name among `known` that is meant, or nothing."""
    match = difflib.get_close_matches(name, list(known), n=1)
    return f' (did you mean "{match[0]}"?)' if match else ""
