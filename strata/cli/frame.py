"""What every task shares: where the project is, how failures end."""

from __future__ import annotations

import functools
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke import task

from strata.errors import StrataError
from strata.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE
IMAGES = "an image; may repeat; without it, all images"
VARIANT = "a set of pins: a folder of locks/"
DRY_RUN = "say what would be done, and do nothing"


def workspace_of(context: Any) -> Workspace:
    """Return the workspace of the project whose tasks.py is running."""
    return Workspace.of(Path(context.config.strata.root))


def take_every_text() -> None:
    """Make stdout and stderr show `?` for what the locale lacks, such as ✓, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _use_mirrors(context: Any) -> None:
    from strata.upstream.mirrors import use_mirrors

    use_mirrors(workspace_of(context).root)


def strata_task(**options: Any) -> Callable[[Callable[..., None]], Any]:
    """Make an Invoke task whose failures print their fix and end with their exit code."""

    def decorate(body: Callable[..., None]) -> Any:
        @functools.wraps(body)
        def framed(*args: Any, **kwargs: Any) -> None:
            take_every_text()
            try:
                _use_mirrors(args[0])
                body(*args, **kwargs)
            except StrataError as error:
                print(error, file=sys.stderr)
                sys.exit(error.exit_code)
            except BrokenPipeError:
                # Whoever read our output has enough of it (`./inv plan | head`).
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(PIPE_CLOSED)
            except KeyboardInterrupt:
                print("interrupted; what was built before stays usable", file=sys.stderr)
                sys.exit(INTERRUPTED)

        return task(framed, **options)

    return decorate
