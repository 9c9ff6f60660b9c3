"""Who a container runs as: whoever will own the files that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.errors import DefinitionError

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


def passwd_for(passwd: str, own: int, user: Identity) -> str:
    """Return an image's `/etc/passwd` in which its own user has another uid and gid.

    sshd lets in, and tools know, only those who have a name.  The line comes
    first, so that the number's name is the image's user even where another
    account has that number.  Raises `DefinitionError` where nobody is `own`.
    """
    accounts = [line.split(":", 4) for line in passwd.splitlines()]
    mine = next((account for account in accounts if account[2:3] == [str(own)]), None)
    if mine is None:
        raise DefinitionError.at(
            "/etc/passwd of the image",
            f"nobody in it has the uid {own} of the image's user, so no other can stand for it",
            f"start it with --user {own}:{own}",
        )
    uid, gid = user
    first = [*mine[:2], str(uid), str(gid), mine[4]]
    others = [account for account in accounts if account is not mine]
    return "".join(f"{':'.join(account)}\n" for account in (first, *others))
