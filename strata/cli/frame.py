"""What every task shares: where the project is, how errors end, options that repeat."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke import task

from strata.errors import StrataError
from strata.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130
IMAGES = "an image; may repeat; without it, all"
VARIANT = "a set of pins in locks/"


def workspace() -> Workspace:
    """Return the workspace of the project whose tasks are running."""
    return Workspace.of(Path(__file__).parents[2])


def strata_task(
    body: Callable[..., None] | None = None, **options: Any  # noqa: ANN401 - Invoke's options
) -> Any:  # noqa: ANN401 - Invoke has no types
    """Make an Invoke task whose failures print their fix and end with their exit code."""
    if body is None:
        return functools.partial(strata_task, **options)

    @functools.wraps(body)
    def framed(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as the task has them
        try:
            body(*args, **kwargs)
        except StrataError as error:
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            print("interrupted: what was built before stays usable", file=sys.stderr)
            sys.exit(INTERRUPTED)

    return task(framed, **options)
