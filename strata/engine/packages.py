"""Which packages bring an engine to a machine, and where they come from; decides, does nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from strata import apt
from strata.errors import HostError

BUILDX = "docker-buildx"
COMPOSE = "docker-compose"
PLUGINS = (BUILDX, COMPOSE)  # of the client: not on PATH
# What an engine needs, and the package of Debian 13 that brings it.
PACKAGES = {
    "dockerd": "docker.io",
    "docker": "docker-cli",
    BUILDX: "docker-buildx",
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
}
# A private engine makes its own bridge and ends what it mounted.
PRIVATE_PACKAGES = {**PACKAGES, "ip": "iproute2"}
# What strata itself never runs, but its tests do.
ALL_PACKAGES = {**PRIVATE_PACKAGES, COMPOSE: "docker-compose"}
FROM_TRIXIE = ("docker.io", "docker-cli", "docker-buildx", "docker-compose", "containerd")
SOURCES_FILE = Path("/etc/apt/sources.list.d/strata-docker.sources")
PIN_FILE = Path("/etc/apt/preferences.d/strata-docker")
DAEMON_FILE = Path("/etc/docker/daemon.json")
CLASSIC_STORE = Path("/var/lib/docker/image")
DAEMON_SETTINGS = {"features": {"containerd-snapshotter": True}}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
BY_HAND = "install Docker 24 or newer with buildx: https://docs.docker.com/engine/install/"
WHERE = "Docker engine"
OLDEST_RELEASE = {"debian": 12, "ubuntu": 20}
NEWEST = 99  # Debian testing has no number


@dataclass(frozen=True, kw_only=True)
class WriteFile:
    """Write a file as root."""

    path: Path
    text: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """Run a command as root."""

    argv: tuple[str, ...]


Action = WriteFile | Command


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What decides how an engine comes to this machine.

    `os_id` and `os_version` are ID and VERSION_ID of os-release ("" on Debian
    testing); `has` are those of the programs in question that are installed.
    `mirror` is where Debian 12's apt finds its own release, and `keyring` what
    that source is signed by ("" where that doesn't matter).  `has_images` says
    that the system's engine has kept images here, in the classic store.
    """

    os_id: str
    os_version: str
    has: frozenset[str]
    mirror: str = ""
    keyring: str = ""
    has_daemon_file: bool = False
    has_images: bool = False


def needs_trixie(os_id: str, os_version: str) -> bool:
    """Tell whether the release's own Docker has no buildx, while Debian 13's runs on it."""
    return (os_id, os_version) == ("debian", "12")


def plan_settings(machine: Machine) -> tuple[Action, ...]:
    """Return what makes an engine that was never used keep its images in containerd's store.

    Settings that are there are never touched, nor is the store of an engine
    that has images: `check_engine` says what they lack.
    """
    if machine.has_daemon_file or machine.has_images:
        return ()
    return (WriteFile(path=DAEMON_FILE, text=json.dumps(DAEMON_SETTINGS, indent=2) + "\n"),)


def plan_install(machine: Machine, programs: tuple[str, ...]) -> tuple[Action, ...]:
    """Return the actions that install what is missing of `programs`; none if nothing is.

    Raises `HostError` on a system whose packages we don't know.
    """
    packages = missing_packages(machine, programs)
    if not packages:
        return ()
    version = int(machine.os_version.partition(".")[0] or NEWEST)
    if machine.os_id not in OLDEST_RELEASE or version < OLDEST_RELEASE[machine.os_id]:
        raise HostError.at(
            WHERE,
            f"{', '.join(packages)} must be installed, and strata does that only on Debian"
            " (12 and newer) and Ubuntu (20.04 and newer)",
            BY_HAND,
        )
    pinned: tuple[Action, ...] = ()
    if needs_trixie(machine.os_id, machine.os_version) and set(packages) & set(FROM_TRIXIE):
        # The preferences first: an interrupt between the two must not leave
        # all of Debian 13 open to the next upgrade.
        pinned = (
            WriteFile(path=PIN_FILE, text=pin_text()),
            WriteFile(path=SOURCES_FILE, text=sources_text(machine.mirror, machine.keyring)),
        )
    return (*pinned, *(Command(argv=argv) for argv in apt.install_commands(packages)))


def missing_packages(machine: Machine, programs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the packages for those of `programs` that the machine lacks."""
    names = dict(ALL_PACKAGES)
    if machine.os_id == "ubuntu":
        names["docker"] = names["dockerd"]  # Ubuntu keeps the client in the engine's package
        names[COMPOSE] = "docker-compose-v2"
    return tuple(sorted({names[name] for name in programs if name not in machine.has}))


def pin_text() -> str:
    """Return apt's preferences that let in Debian 13's Docker and nothing else of it."""
    release = "Pin: release n=trixie\nPin-Priority:"
    return f"Package: *\n{release} 1\n\nPackage: {' '.join(FROM_TRIXIE)}\n{release} 500\n"


def sources_text(mirror: str, keyring: str) -> str:
    """Return the source of Debian 13's packages on the machine's own mirror."""
    stanza = f"Types: deb\nURIs: {mirror}\nSuites: trixie\nComponents: main\n"
    return f"{stanza}Signed-By: {keyring or KEYRING}\n"


def debian_mirror(targets: tuple[apt.IndexTarget, ...], codename: str) -> tuple[str, str]:
    """Return where apt finds a release, and the Signed-By of that source ("" if none).

    Raises `HostError` when apt names no http(s) mirror for it.
    """
    for target in targets:
        is_release = codename in (target.codename, target.suite) and target.component == "main"
        if is_release and target.uri.startswith(("http://", "https://")):
            return target.uri, signed_by(target.source)
    raise HostError.at(
        "apt",
        f"it names no http(s) mirror for {codename} main",
        "add one to /etc/apt/sources.list.d",
    )


def signed_by(source: str) -> str:
    """Return the keyring that "FILE:N" of an index target names, "" if it names none.

    N counts the stanzas of a .sources file, and the lines of a .list file.
    """
    name, _, number = source.rpartition(":")
    text = Path(name).read_text()
    if name.endswith(".sources"):
        stanzas = [part for part in re.split(r"\n[ \t]*\n", text) if "Types:" in part]
        found = re.search(
            r"^Signed-By:[ \t]*(.*(?:\n[ \t].*)*)", stanzas[int(number) - 1], re.MULTILINE
        )
    else:
        found = re.search(r"signed-by=([^\s\]]+)", text.splitlines()[int(number) - 1])
    return found[1].rstrip() if found else ""
