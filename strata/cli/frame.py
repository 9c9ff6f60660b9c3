"""What every task shares: where the project is, how failures end."""

from __future__ import annotations

import functools
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke import Task, task

from strata.errors import StrataError
from strata.oserror import host_error
from strata.secrets import hide
from strata.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE
IMAGES = "an image; may repeat; without it, all images"
VARIANT = "a set of pins: a folder of locks/"
DRY_RUN = "say what would be done, and do nothing"


class HelpfulTask(Task):  # type: ignore[misc]  # Invoke has no types
    """A task that can be asked for its flags more than once.

    Invoke's own gives the texts of its flags away the first time, and has none
    left for `--help`.
    """

    help: dict[str, str]

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Any]:
        """Return the task's flags, each with its text."""
        texts = dict(self.help)
        try:
            return list(super().get_arguments(ignore_unknown_help))
        finally:
            self.help = texts


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
                print(hide(str(error)), file=sys.stderr)
                sys.exit(error.exit_code)
            except BrokenPipeError:
                # Whoever read our output has enough of it (`./inv plan | head`).
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(PIPE_CLOSED)
            except OSError as error:
                failed = host_error(error)
                print(hide(str(failed)), file=sys.stderr)
                sys.exit(failed.exit_code)
            except KeyboardInterrupt:
                print("interrupted; what was built before stays usable", file=sys.stderr)
                sys.exit(INTERRUPTED)

        return task(framed, klass=HelpfulTask, **options)

    return decorate
