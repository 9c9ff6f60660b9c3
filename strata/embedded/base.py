"""The embedded variant's base: a Debian made on the spot from the machine's own mirror."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import shutil
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from strata import apt
from strata.errors import BuildError, DefinitionError, HostError
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from strata.model import BootstrapBase
    from strata.workspace import Workspace

WHERE = "embedded base"
MEGABYTE = 1_000_000
# Raised when the commands below change, so that no older base is taken for a new one.
RECIPE = 4
# Nobody reads these in a container; licences stay.  They are settings for dpkg, so
# that packages of upper layers bring none either.
UNREAD = (
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-include=/usr/share/locale/locale.alias",
)
# mmdebstrap's own way (--dpkgopt) filters every archive in Python: 11 s of CPU
# more than writing the settings once the essential packages are in, and deleting
# what those have brought.
WRITE_UNREAD = f"printf '%s\\n' {shlex.join(UNREAD)} > \"$1\"/etc/dpkg/dpkg.cfg.d/unread"
DELETE_UNREAD = (
    'cd "$1"/usr/share'
    " && find doc info man locale ! -type d ! -name copyright ! -name locale.alias -delete"
    # Some packages link into man1 with no regard to what is there: the folders stay.
    " && find doc locale -mindepth 1 -type d -empty -delete"
)
# Traces of this host and of the installation, which mmdebstrap leaves in place.
TRACES = (
    "/etc/.pwd.lock",
    "/etc/group-",
    "/etc/gshadow-",
    "/etc/hostname",
    "/etc/passwd-",
    "/etc/resolv.conf",
    "/etc/shadow-",
    "/var/cache/apt/archives/lock",
    "/var/cache/debconf/*-old",
    "/var/cache/ldconfig/aux-cache",
    "/var/lib/apt/lists/lock",
    "/var/lib/dpkg/*-old",
    "/var/log/*",
)


@dataclass(frozen=True, kw_only=True, order=True)
class Source:
    """One line of a sources.list: where packages of which part of a release come from."""

    uri: str
    suite: str
    components: tuple[str, ...]

    def __str__(self) -> str:
        """Render as sources.list(5) has it."""
        return f"deb {self.uri} {self.suite} {' '.join(self.components)}"


def make_base(workspace: Workspace, bootstrap: BootstrapBase, epoch: int) -> Path:
    """Return the tar file of the base, made if the cache has none that is whole.

    `epoch` is in seconds since 1970: no file in it is newer, and the same
    packages give the same bytes.  The sha256 stands beside it, in FILE.sha256.

    Raises `DefinitionError` for a mirror that would put a password into the
    image, `HostError` where apt knows no mirror or mmdebstrap can't be
    installed, `BuildError` when the bootstrap fails or writes nothing.
    """
    architecture = apt.architecture()
    sources = sources_for(bootstrap.suite, apt.index_targets(), own_codename())
    tar = workspace.cache / "base" / f"{base_key(bootstrap, epoch, sources, architecture)}.tar"
    if is_whole(tar):
        return tar
    if shutil.which("mmdebstrap") is None:
        apt.install(("mmdebstrap", "debian-archive-keyring"), why=WHERE)
    tar.parent.mkdir(parents=True, exist_ok=True)
    unfinished = tar.with_name(f".{tar.name}.{os.getpid()}")
    log = workspace.build / "logs" / "base.log"
    began = time.monotonic()
    try:
        env = environment(epoch, os.environ) | apt.proxies()
        as_root = apt.superuser()
        mode = "unshare" if as_root is None else "root"
        run(
            [
                *(as_root or ()),
                *("env", "-i", *(f"{name}={value}" for name, value in env.items())),
                *mmdebstrap_command(bootstrap, sources, architecture, unfinished, mode),
            ],
            error=BuildError,
            where=WHERE,
            fix="read the log; if the mirror was at fault, run this again",
            log=log,
        )
        seconds = time.monotonic() - began
        if not (unfinished.exists() and unfinished.stat().st_size):
            raise BuildError.at(
                WHERE,
                f"mmdebstrap ended with 0 and has written no {unfinished}",
                f"read {log}; see which mmdebstrap is first on PATH: {shutil.which('mmdebstrap')}",
            )
        print(f"base: {unfinished.stat().st_size / MEGABYTE:.0f} MB in {seconds:.0f} s")
        checksum_file(tar).write_text(f"{sha256(unfinished)}  {tar.name}\n")
        unfinished.replace(tar)
    finally:
        unfinished.unlink(missing_ok=True)
    return tar


def environment(epoch: int, ours: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of the bootstrap, in which the packages' own scripts run.

    Of `ours` only what says where things are, and through which proxy: Debian's
    python3 writes other byte code where PYTHONDONTWRITEBYTECODE is set.
    """
    kept = ("PATH", "TMPDIR", "http_proxy", "https_proxy", "no_proxy")
    fixed = {
        "SOURCE_DATE_EPOCH": str(epoch),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    return {name: ours[name] for name in kept if name in ours} | fixed


def mmdebstrap_command(
    bootstrap: BootstrapBase, sources: Iterable[Source], architecture: str, target: Path, mode: str
) -> list[str]:
    """Return the argv that bootstraps a release into a tar file, in one of mmdebstrap's modes.

    Without `sources` mmdebstrap takes the release's own public mirrors.
    """
    # The folder is the hook's $1; the patterns must stay outside of its quotes.
    traces = " ".join(f'"$1"{pattern}' for pattern in TRACES)
    return [
        "mmdebstrap",
        "--variant=minbase",
        "--format=tar",
        f"--mode={mode}",
        f"--architectures={architecture}",
        *([f"--include={','.join(bootstrap.include)}"] if bootstrap.include else []),
        f"--essential-hook={WRITE_UNREAD}",
        f"--customize-hook={DELETE_UNREAD}",
        f"--customize-hook=rm -rf {traces}",
        '--customize-hook=test ! -e "$1"/etc/machine-id || : > "$1"/etc/machine-id',
        bootstrap.suite,
        str(target),
        *(str(source) for source in sources),
    ]


def sources_for(suite: str, targets: Iterable[apt.IndexTarget], own: str) -> tuple[Source, ...]:
    """Return where this machine's apt finds a release, its updates and security fixes.

    A Debian machine of another release (codename `own`, "" if it is no Debian)
    finds it on the mirrors that it uses for its own.  A machine that is no
    Debian names none: then nothing is returned, and mmdebstrap knows where.

    Raises `HostError` when a Debian's apt names none that can be reached by
    http(s), and `DefinitionError` when one has a user or password in its address.
    """
    listed = tuple(targets)
    sources = _sources(suite, suite, listed) or (_sources(own, suite, listed) if own else ())
    if not sources and own:
        raise HostError.at(
            WHERE,
            f"apt on this machine names no http(s) mirror that has Debian {suite}",
            f"add one to /etc/apt/sources.list.d, then: apt-get update && apt-get indextargets"
            f" 'Codename: {suite}'",
        )
    return sources


def _sources(wanted: str, suite: str, targets: tuple[apt.IndexTarget, ...]) -> tuple[Source, ...]:
    names = {wanted: suite} | {
        f"{wanted}-{part}": f"{suite}-{part}" for part in ("updates", "security")
    }
    components: dict[tuple[str, str], list[str]] = {}
    for target in targets:
        name = names.get(target.codename) or names.get(target.suite)
        url = urlsplit(target.uri)
        if name is None or url.scheme not in ("http", "https"):
            continue
        if url.username or url.password:
            raise DefinitionError.at(
                WHERE,
                f"the mirror {url.scheme}://***@{url.hostname}{url.path} has a user or password in"
                " its address, which would stay in every image",
                "name a mirror, or a proxy (Acquire::http::Proxy), that asks for neither",
            )
        kept = components.setdefault((target.uri.rstrip("/"), name), [])
        if target.component not in kept:
            kept.append(target.component)
    return tuple(
        sorted(
            Source(uri=uri, suite=name, components=tuple(kept))
            for (uri, name), kept in components.items()
        )
    )


def own_codename() -> str:
    """Return the codename of this machine's Debian, "" where it is something else."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ""
    return release.get("VERSION_CODENAME", "") if release.get("ID") == "debian" else ""


def base_key(
    bootstrap: BootstrapBase, epoch: int, sources: Iterable[Source], architecture: str
) -> str:
    """Return the name by which a base is kept: the hash of what we know to decide it.

    The mirror's state is not in it: `clean` makes way for a newer base.
    """
    parts = [RECIPE, asdict(bootstrap), epoch, [str(source) for source in sources], architecture]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def checksum_file(tar: Path) -> Path:
    """Return where the sha256 of a tar file is kept."""
    return tar.with_name(f"{tar.name}.sha256")


def is_whole(tar: Path) -> bool:
    """Tell whether a kept tar file is there, and has the bytes that it had when it was made."""
    checksum = checksum_file(tar)
    if not (tar.exists() and checksum.exists()):
        return False
    return checksum.read_text().split()[:1] == [sha256(tar)]


def sha256(file: Path) -> str:
    """Return the hexadecimal sha256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
