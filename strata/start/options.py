"""What the command line says about a container, validated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.check.options import GPU_CHOICES
from strata.errors import DefinitionError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_PORT = 65535
NO_FOLDER = "none"
_SIZE = re.compile(r"[1-9][0-9]*[bkmg]", re.IGNORECASE)
_USER = re.compile(r"([0-9]{1,10}):([0-9]{1,10})")
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")  # Docker's own rule
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(=.*)?", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """How a container is wanted.

    `port` is this machine's, None for a free one (or none at all, for a
    command); `work` is the folder that it works on, None for none; `user` is
    (uid, gid), None for whoever calls; `shm` is a size as Docker writes it, ""
    for half of the engine's memory; `name` is "" for the usual one; `env` are
    NAME=value, or NAME for the value that it has here.
    """

    image: str
    variant: str = "embedded"
    port: int | None = None
    is_public: bool = False
    gpus: str = "auto"
    work: Path | None = None
    user: tuple[int, int] | None = None
    shm: str = ""
    name: str = ""
    env: tuple[str, ...] = ()


def start_options(
    *,
    image: str,
    variant: str,
    port: str,
    public: bool,
    gpus: str,
    work: str,
    user: str,
    shm: str,
    name: str,
    env: Sequence[str],
    cwd: Path,
) -> StartOptions:
    """Validate what the command line says; `work` is relative to `cwd`, "" for `cwd` itself.

    Raises `DefinitionError` with all that is wrong.
    """
    folder = None if work == NO_FOLDER else (cwd / work).resolve()
    who = _USER.fullmatch(user)
    checks = (
        (
            not port or (port.isdecimal() and 0 < int(port) <= MAX_PORT),
            f"--port {port}",
            f"is no port: 1 to {MAX_PORT}",
            "--port 8888, or leave it out",
        ),
        (gpus in GPU_CHOICES, f"--gpus {gpus}", "is unknown", f"one of {', '.join(GPU_CHOICES)}"),
        (
            folder is None or folder.is_dir(),
            f"--work {work}",
            f"there is no folder {folder}",
            f"name one that exists, or --work {NO_FOLDER}",
        ),
        (
            not user or who is not None,
            f"--user {user}",
            "is not two numbers",
            "--user UID:GID, such as --user 1000:1000",
        ),
        (
            not shm or _SIZE.fullmatch(shm) is not None,
            f"--shm {shm}",
            "is no size",
            "a number with b, k, m or g, such as --shm 8g",
        ),
        (
            not name or _NAME.fullmatch(name) is not None,
            f"--name {name}",
            "no container can be called so",
            "two or more letters, digits, dots, underscores or hyphens",
        ),
        *(
            (
                _VARIABLE.fullmatch(text) is not None,
                f"--env {text.partition('=')[0]}",
                "is no variable",
                "--env NAME=value, or --env NAME for the value that it has here",
            )
            for text in env
        ),
    )
    problems = [
        Problem(where=where, what=what, fix=fix) for holds, where, what, fix in checks if not holds
    ]
    if problems:
        raise DefinitionError(*problems)
    return StartOptions(
        image=image,
        variant=variant,
        port=int(port) if port else None,
        is_public=public,
        gpus=gpus,
        work=folder,
        user=(int(who[1]), int(who[2])) if who else None,
        shm=shm,
        name=name,
        env=tuple(env),
    )
