"""What apt on this machine knows: its mirrors and packages, and how to add to them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from strata.errors import HostError
from strata.run import run

FIELDS = ("REPO_URI", "RELEASE", "CODENAME", "COMPONENT", "SOURCESENTRY", "CREATED_BY")
# sudo passes no environment on, hence env; and another apt may be at work on a
# machine that has just started, hence the patience.
APT_GET = (
    *("env", "DEBIAN_FRONTEND=noninteractive"),
    *("apt-get", "-o", "DPkg::Lock::Timeout=120", "-q", "-y"),
)
NOT_DEBIAN = "this needs apt: a Debian or Ubuntu machine, or an engine that you started yourself"


@dataclass(frozen=True, kw_only=True)
class IndexTarget:
    """One package index that apt would fetch.

    `uri` ends in a slash; `suite` is the name that the source uses ("stable"),
    `codename` the one that the mirror gave it ("bookworm"; the suite until apt
    has fetched the index); `source` is "FILE:N", where N counts lines in a
    .list file and stanzas in a .sources file.
    """

    uri: str
    suite: str
    codename: str
    component: str
    source: str


def parse_index_targets(text: str) -> tuple[IndexTarget, ...]:
    """Read the answer of `apt-get indextargets` in the format of `FIELDS`."""
    targets = []
    for line in text.splitlines():
        uri, suite, codename, component, source, kind = line.split("|")
        if kind != "Packages":
            continue
        # apt leaves the name of a field standing where it knows no value.
        known = suite if not codename or codename.startswith("$(") else codename
        targets.append(
            IndexTarget(uri=uri, suite=suite, codename=known, component=component, source=source)
        )
    return tuple(targets)


def index_targets() -> tuple[IndexTarget, ...]:
    """Ask apt for the indexes of this machine's own architecture.

    apt names none before it has fetched its lists, which a bare machine has
    not: then they are fetched.  Raises `HostError` where there is no apt, or
    where we may not fetch them.
    """
    targets = _known_targets()
    if not targets:
        _as_root((update_command(),), why="apt has no package lists", by_hand="sudo apt-get update")
        targets = _known_targets()
    return targets


def _known_targets() -> tuple[IndexTarget, ...]:
    layout = "|".join(f"$({field})" for field in FIELDS)
    arguments = ["--format", layout, "Created-By: Packages", f"Architecture: {architecture()}"]
    return parse_index_targets(
        run(
            ["apt-get", "indextargets", *arguments],
            error=HostError,
            where="apt-get indextargets",
            fix=NOT_DEBIAN,
            quiet=True,
        )
    )


def architecture() -> str:
    """Return dpkg's name for this machine's architecture, such as "amd64"."""
    argv = ["dpkg", "--print-architecture"]
    return run(argv, error=HostError, where="dpkg", fix=NOT_DEBIAN, quiet=True).strip()


def proxies() -> dict[str, str]:
    """Return apt's own proxies as the environment variables that other programs read."""
    options = {"Acquire::http::Proxy": "http_proxy", "Acquire::https::Proxy": "https_proxy"}
    argv = ["apt-config", "dump", "--no-empty", "--format", "%f|%v%n", *options]
    listing = run(argv, error=HostError, where="apt-config", fix=NOT_DEBIAN, quiet=True)
    pairs = (line.split("|", 1) for line in listing.splitlines())
    # "DIRECT" is apt's word for none at all.
    return {options[name]: url for name, url in pairs if name in options and url != "DIRECT"}


def superuser() -> tuple[str, ...] | None:
    """Return what to put before a command so that root runs it; None if we may not.

    Nothing for root itself, `sudo -n` where sudo asks for no password.
    """
    if os.geteuid() == 0:
        return ()
    if shutil.which("sudo") is None:
        return None
    probe = subprocess.run(
        ["sudo", "-n", "true"],  # noqa: S607 - sudo is where the system has put it
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return ("sudo", "-n") if probe.returncode == 0 else None


def install_commands(packages: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the commands, for root, that install these packages from fresh lists."""
    return update_command(), (*APT_GET, "install", "--no-install-recommends", *packages)


def update_command() -> tuple[str, ...]:
    """Return the command, for root, that fetches fresh package lists."""
    return (*APT_GET, "update")


def install(packages: tuple[str, ...], *, why: str) -> None:
    """Install packages.

    Raises `HostError` with the command to run by hand when we may not, or when
    apt fails.
    """
    by_hand = f"sudo apt-get update && sudo apt-get install {' '.join(packages)}"
    _as_root(install_commands(packages), why=f"{why} needs {', '.join(packages)}", by_hand=by_hand)


def _as_root(commands: tuple[tuple[str, ...], ...], *, why: str, by_hand: str) -> None:
    prefix = superuser()
    if prefix is None:
        raise HostError.at(why, "only root may mend that, and we are not root", by_hand)
    for command in commands:
        run([*prefix, *command], error=HostError, where=why, fix=by_hand)
