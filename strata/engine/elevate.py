"""Starts and stops a private engine as root, for a user whom sudo asks for no password."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from strata import apt
from strata.errors import HostError, StrataError
from strata.oserror import host_error
from strata.run import run

CODE = Path(__file__).resolve().parents[2]
START, STOP, PURGE = "start", "stop", "purge"
TIMEOUT = 900  # seconds; the engine's packages may have to be installed


def is_done_by_root(verb: str, root: Path) -> bool:
    """Have root do `verb` to the private engine of the project at `root`.

    False for root itself, who goes on and does it.  Raises `HostError` where
    only root may and sudo does not let us, and when it fails.
    """
    if os.geteuid() == 0:
        return False
    where = "private engine"
    fix = "run it as root (sudo -E ./inv …), or unset STRATA_ENGINE to use the machine's engine"
    prefix = apt.superuser()
    if prefix is None:
        raise HostError.at(where, f"only root may {verb} one", fix)
    # Root leaves no compiled files in the user's folder.
    env = [f"PYTHONPATH={CODE}", "PYTHONDONTWRITEBYTECODE=1"]
    child = [sys.executable, "-m", "strata.engine.elevate", verb, str(root)]
    argv = [*prefix, "env", *env, *child]
    run(argv, error=HostError, where=where, fix="see what it says", timeout=TIMEOUT)
    return True


def _main(verb: str, root: Path) -> int:
    from strata.engine.private import start_private, stop_private  # noqa: PLC0415 - it imports us
    from strata.workspace import Workspace  # noqa: PLC0415 - only here

    try:
        if verb == START:
            start_private(Workspace.of(root))
        else:
            stop_private(Workspace.of(root), purge=verb == PURGE)
    except StrataError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        failed = host_error(error)
        print(failed, file=sys.stderr)
        return failed.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], Path(sys.argv[2])))
