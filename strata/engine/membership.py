"""Lets a user who had an engine installed use it at once, without a new login."""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, NoReturn

from strata.engine.daemon import say
from strata.engine.packages import WHERE
from strata.errors import HostError
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP = "docker"  # made by Docker's packages; the engine's socket belongs to it
SG = "sg"


def go_on_as_member(prefix: tuple[str, ...]) -> NoReturn:
    """Add whoever runs us to Docker's group, and begin this command anew as a member.

    `prefix` makes root run a command (see `strata.apt.superuser`).  Whom sudo
    asks for no password is root's equal already, as that group's members are.
    Raises `HostError` with what to do by hand where that can't be done.
    """
    entry = pwd.getpwuid(os.getuid())
    user, own_group = entry.pw_name, grp.getgrgid(entry.pw_gid).gr_name
    by_hand = f"sudo usermod -aG {GROUP} {user}; then log in again, and run this again"
    run([*prefix, "usermod", "-aG", GROUP, user], error=HostError, where=WHERE, fix=by_hand)
    say(
        f"{user} is now in the group {GROUP}, whose members rule this machine as root does"
        f" (undo: sudo gpasswd -d {user} {GROUP})"
    )
    if shutil.which(SG) is None:
        raise HostError.at(
            WHERE,
            f"it is installed and runs, and {user} may use it from the next login on",
            "log in again, and run this again",
        )
    sys.stdout.flush()
    argv = member_argv(GROUP, own_group, [sys.executable, *sys.orig_argv[1:]])
    os.execvp(argv[0], argv)  # noqa: S606 - it is to take our place


def member_argv(group: str, own_group: str, command: Sequence[str]) -> list[str]:
    """Return the argv that runs a command as a member of `group`, environment and folder kept.

    The user's own group is made the first again, so that files still belong to it.
    """
    inner = [SG, own_group, "-c", shlex.join(["exec", *command])]
    return [SG, group, "-c", shlex.join(["exec", *inner])]
