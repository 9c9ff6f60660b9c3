"""What `./inv engine` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.engine.private import private_status, start_private, stop_private
from strata.errors import DefinitionError

if TYPE_CHECKING:
    from strata.workspace import Workspace

ACTIONS = ("start", "stop", "status")


def act(workspace: Workspace, action: str, *, purge: bool, dry_run: bool) -> None:
    """Start, stop or show the private engine; raises `DefinitionError` for another word."""
    if action not in ACTIONS:
        raise DefinitionError.at(
            f"engine {action}", "is no action", f"./inv engine {'|'.join(ACTIONS)}"
        )
    if action == "status" or dry_run:
        status = private_status(workspace)
        print(f"running, pid {status.pid}" if status.is_running else "not running")
        print(f"DOCKER_HOST={status.host}")
        print(f"data root: {status.data_root}")
        print(f"log: {status.log}")
    elif action == "start":
        print(f"export DOCKER_HOST={start_private(workspace).host}")
    else:
        stop_private(workspace, purge=purge)
