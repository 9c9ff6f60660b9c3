"""Who a container runs as: whoever will own the files that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Identity = tuple[int, int]  # uid, gid


def choose_user(
    wanted: Identity | None,
    caller: Identity,
    environ: Mapping[str, str],
    owner: Identity | None,
) -> Identity | None:
    """Return uid and gid for the container, None for the image's own user.

    Who was asked for, else who calls; for root whoever called sudo, else the
    `owner` of the work folder.  Nobody becomes root without asking for it.
    """
    if wanted is not None:
        return wanted
    if caller[0] != 0:
        return caller
    behind = environ.get("SUDO_UID", ""), environ.get("SUDO_GID", "")
    if behind[0].isdecimal() and behind[1].isdecimal() and int(behind[0]) != 0:
        return int(behind[0]), int(behind[1])
    return owner if owner is not None and owner[0] != 0 else None
