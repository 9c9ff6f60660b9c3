"""A command in a container of its own, in this terminal."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from strata.pipeline import open_store
from strata.run import become
from strata.start.facts import local_engine
from strata.start.prepare import prepare_start, tell
from strata.start.settings import run_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strata.start.options import StartOptions
    from strata.workspace import Workspace

SHELL = ("bash",)


def words_after_dashes(argv: Sequence[str]) -> tuple[str, ...]:
    """Return what follows the first `--`, word by word (Invoke itself joins it with spaces)."""
    words = list(argv)
    return tuple(words[words.index("--") + 1 :]) if "--" in words else ()


def foreground(argv: Sequence[str], command: Sequence[str], *, has_terminal: bool) -> list[str]:
    """Return the `docker run` of a command that is waited for: a shell, if it is empty."""
    terminal = ["--tty"] if has_terminal else []
    return ["docker", "run", "--rm", "--interactive", *terminal, *argv, *(command or SHELL)]


def run_command(
    workspace: Workspace, options: StartOptions, command: Sequence[str], *, dry_run: bool
) -> None:
    """Run a command in a container of an image; this process becomes `docker run`.

    So stdin, terminal, signals and the exit code are the command's own.
    """
    engine = local_engine(workspace)
    with open_store(engine) as store:
        prepared = prepare_start(workspace, engine, store.sdk, options)
    tell(prepared)
    # Where stdin is closed Python has none.
    has_terminal = bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())
    argv = foreground(run_arguments(prepared.settings), command, has_terminal=has_terminal)
    if dry_run:
        print(shlex.join(argv))
        return
    become(argv, env=engine.env, where="docker run", fix="install docker's command line")
