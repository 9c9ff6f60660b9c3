"""What `./inv engine` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.engine.private import private_status, start_private, stop_private
from strata.errors import DefinitionError

if TYPE_CHECKING:
    from strata.engine.private import PrivateStatus
    from strata.workspace import Workspace

ACTIONS = ("start", "stop", "status")


def act(workspace: Workspace, action: str, *, purge: bool, dry_run: bool) -> None:
    """Start, stop or show the private engine; raises `DefinitionError` for another word."""
    if action not in ACTIONS:
        raise DefinitionError.at(
            f"engine {action}", "is no action", f"./inv engine {'|'.join(ACTIONS)}"
        )
    status = private_status(workspace)
    if action == "status":
        print(f"running, pid {status.pid}" if status.is_running else "not running")
        print(f"DOCKER_HOST={status.host}")
        print(f"data root: {status.data_root}")
        print(f"log: {status.log}")
    elif dry_run:
        print(intent(status, action, purge=purge))
    elif action == "start":
        print(f"export DOCKER_HOST={start_private(workspace).host}")
    else:
        stop_private(workspace, purge=purge)


def intent(status: PrivateStatus, action: str, *, purge: bool) -> str:
    """Return in words what `start` or `stop` would do to an engine in that state."""
    if action == "start":
        if status.is_running:
            return f"it runs already: DOCKER_HOST={status.host}"
        return f"would start one at {status.host}, with its images in {status.data_root}"
    stops = f"would stop it, pid {status.pid}" if status.is_running else "it does not run"
    is_purged = purge and status.data_root.exists()
    return f"{stops}; would remove {status.data_root}" if is_purged else stops
