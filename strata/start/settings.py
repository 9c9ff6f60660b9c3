"""The settings of a container: decided here, from facts alone, and written as `docker run` wants.

Every container is closed: no capability, no way to gain one, ports on the
loopback.  `tini` is PID 1 in the images, so no `--init` is added.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.engine.facts import NVIDIA_DEVICE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import PurePosixPath

    from strata.start.options import StartOptions
    from strata.start.reference import Reference
    from strata.start.services import Service
    from strata.start.user import Identity

LABEL = "strata.start"
SETTINGS_LABEL = "strata.start.settings"
LOOPBACK = "127.0.0.1"
HOME = "/tmp/.strata/home"  # noqa: S108 - where the image's entry puts another user's home
STACK = 64 << 20  # bytes; what NVIDIA's containers advise for NCCL and data loaders
KEYS_VARIABLE = "STRATA_AUTHORIZED_KEYS"
TOKEN_VARIABLE = "JUPYTER_TOKEN"  # noqa: S105 - its name
# What makes a running container another one than is wanted, and how people call it.
SHOWN = {
    "digest": "the image",
    "gpus": "GPUs",
    "shm": "shared memory",
    "work": "the work folder",
    "user": "the user",
    "is_public": "--public",
    "port": "the port",
    "env": "variables",
}


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """What an image says of itself: its id, user (uid, gid), working folder, exposed ports."""

    digest: str
    user: Identity
    folder: PurePosixPath
    ports: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """What decides on this side: the engine's memory in bytes, whether it offers GPUs, and how.

    `gives_gpus_by_cdi`: only as CDI devices, as it has no runtime for `--gpus`.
    """

    memory: int
    offers_gpus: bool
    gives_gpus_by_cdi: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a container is started.

    `by_cdi` says that `gpus` are named as CDI devices.  `user` is None for the
    image's own, and `is_other` that it has another uid; `ports` are (this machine's, the
    container's), with None for a free one.
    """

    name: str
    reference: str
    digest: str
    service: str
    gpus: bool
    by_cdi: bool
    shm: str
    work: str | None
    folder: str
    user: Identity | None
    is_other: bool
    ports: tuple[tuple[int | None, int], ...]
    is_public: bool
    env: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def label(self) -> str:
        """What decides whether a container will do for another call, as it remembers it."""
        port = self.ports[0][0] if self.ports else None
        kept = {key: getattr(self, key) for key in SHOWN if key != "port"}
        return json.dumps({**kept, "port": port}, sort_keys=True)


def decide(
    options: StartOptions,
    reference: Reference,
    image: ImageFacts,
    host: HostFacts,
    *,
    user: Identity | None,
    name: str,
    service: Service | None = None,
    keys: Sequence[str] = (),
) -> Settings:
    """Return how a container of `image` is started.

    `user` is who it shall run as (None: the image's own).  Without a `service`
    it is for a command, and `options.port` is the same on both sides.
    """
    if service is not None:
        ports: tuple[tuple[int | None, int], ...] = ((options.port, service.port),)
    else:
        ports = ((options.port, options.port),) if options.port else ()
    return Settings(
        name=name,
        reference=reference.text,
        digest=image.digest,
        service=service.name if service else "",
        gpus=host.offers_gpus if options.gpus == "auto" else options.gpus == "all",
        by_cdi=host.gives_gpus_by_cdi,
        # Half of the memory is what Linux gives /dev/shm itself; it is a limit, not a use.
        shm=options.shm or f"{max(host.memory >> 21, 1)}m",
        work=None if options.work is None else str(options.work),
        folder=str(image.folder),
        user=user if user != image.user else None,
        is_other=user is not None and user[0] not in (0, image.user[0]),
        ports=ports,
        is_public=options.is_public,
        env=options.env,
        keys=tuple(keys),
    )


def run_arguments(settings: Settings) -> tuple[str, ...]:
    """Return the options of `docker run`, up to and with the image's reference."""
    argv = ["--name", settings.name]
    argv += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    # No limit on open files: the engine's own is as high as it may be for us.
    argv += ["--shm-size", settings.shm, "--ulimit", f"stack={STACK}"]
    if settings.gpus:
        argv += ["--device", f"{NVIDIA_DEVICE}=all"] if settings.by_cdi else ["--gpus", "all"]
        # RDMA and pinned memory need it; an engine that is confined itself refuses it.
        argv += ["--ulimit", "memlock=-1"]
    if settings.user is not None:
        uid, gid = settings.user
        argv += ["--user", f"{uid}:{gid}"]  # the image's entry gives any user name and home
        if settings.is_other:  # so that `docker exec` has that home, too: Docker's own is /
            argv += ["--env", f"HOME={HOME}"]
        if settings.work is None:  # where one starts is the image's user's alone
            argv += ["--tmpfs", f"{settings.folder}:exec,uid={uid},gid={gid},mode=0755"]
    if settings.work is not None:
        argv += ["--mount", mount(settings.work, settings.folder)]
    address = "" if settings.is_public else f"{LOOPBACK}:"
    for outside, inside in settings.ports:
        published = f"{address}{outside or ''}:{inside}" if address or outside else str(inside)
        argv += ["--publish", published]
    for text in settings.env:
        argv += ["--env", text]
    if settings.keys:
        lines = "\n".join(settings.keys)
        argv += ["--env", f"{KEYS_VARIABLE}={lines}"]
    if settings.service:
        argv += ["--label", f"{LABEL}={settings.service}"]
        argv += ["--label", f"{SETTINGS_LABEL}={settings.label}"]
    return (*argv, settings.reference)


def mount(source: str, target: str) -> str:
    """Return the value of `--mount` for a bind mount: CSV, so that any path can stand in it."""
    text = io.StringIO()
    fields = ["type=bind", f"source={source}", f"target={target}"]
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()


def differences(running: str, wanted: Settings) -> tuple[str, ...]:
    """Say in what a container, by its label, differs from what is wanted; nothing if it will do.

    Where no port was asked for, any will do.
    """
    before: Mapping[str, object] = json.loads(running)
    after: Mapping[str, object] = json.loads(wanted.label)
    return tuple(
        f"{title}: {_shown(before.get(key))}, not {_shown(after[key])}"
        for key, title in SHOWN.items()
        if before.get(key) != after[key] and not (key == "port" and after[key] is None)
    )


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ":".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
