"""An engine of the project's own: beside any other, and gone without a trace when stopped."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata.engine.connect import UNIX, Engine, answers, knock
from strata.engine.daemon import is_running, read_pid, say, start_detached, wait_until
from strata.engine.elevate import PURGE, START, STOP, is_done_by_root
from strata.engine.install import install_programs
from strata.engine.leftovers import end_processes, remove_shared_traces, unmount
from strata.engine.network import ROUTES, free_pool, make_network, remove_network, used_networks
from strata.engine.packages import PRIVATE_PACKAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from ipaddress import IPv4Network

    from strata.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a private engine lives; all of it is its own.

    `run` is short, for the path of a Unix socket has at most 107 bytes; `name`
    is its bridge, and marks its firewall rules.
    """

    name: str
    run: Path
    data: Path

    @classmethod
    def of(cls, workspace: Workspace) -> Place:
        """Return the place of a workspace's engine."""
        key = hashlib.sha256(str(workspace.root).encode()).hexdigest()[:8]
        return cls(
            name=f"strata{key}", run=Path(f"/run/strata-{key}"), data=workspace.build / "engine"
        )

    @property
    def engine(self) -> Engine:
        """The engine that listens there when it runs."""
        return Engine(host=f"{UNIX}{self.run}/docker.sock", origin="private")

    @property
    def settings(self) -> Path:
        """The file that tells our dockerd from another."""
        return self.run / "daemon.json"

    @property
    def containerd_address(self) -> Path:
        """The socket of its containerd."""
        return self.run / "containerd.sock"

    def pid_file(self, program: str) -> Path:
        """Where the pid of dockerd or containerd is kept."""
        return self.run / f"{program}.pid"

    def log(self, program: str) -> Path:
        """Where its output goes; it outlives a start that failed."""
        return self.data / "log" / f"{program}.log"


@dataclass(frozen=True, kw_only=True)
class PrivateStatus:
    """Whether a private engine runs, where it listens and keeps its data; pid 0 is none."""

    is_running: bool
    host: str
    pid: int
    data_root: Path
    log: Path


def start_private(workspace: Workspace) -> Engine:
    """Start the workspace's own engine, unless it runs already; return it.

    Raises `HostError`, with the last lines of the log, when it does not come
    up; nothing of it is left then but its data root and its logs.
    """
    place = Place.of(workspace)
    if private_status(workspace).is_running:
        return place.engine
    workspace.build.mkdir(parents=True, exist_ok=True)
    if is_done_by_root(START, workspace.root):
        return place.engine
    install_programs(tuple(PRIVATE_PACKAGES))
    with _alone(workspace):
        if private_status(workspace).is_running:
            return place.engine
        _clear(place)  # a killed engine's leftovers
        try:
            _start(place)
        except BaseException:
            _clear(place)
            raise
    return place.engine


def running_private(workspace: Workspace) -> Engine | None:
    """Return the workspace's own engine if it runs."""
    return Place.of(workspace).engine if private_status(workspace).is_running else None


def stop_private(workspace: Workspace, purge: bool = False) -> None:  # noqa: FBT001, FBT002 - a flag of the command line
    """Stop the workspace's own engine with its containers; remove all but its data root.

    `purge` removes the data root too, which holds its images and build cache.
    Raises `HostError` when something of it can't be ended or unmounted.
    """
    place = Place.of(workspace)
    if not place.run.exists() and not (purge and place.data.exists()):
        return
    if is_done_by_root(PURGE if purge else STOP, workspace.root):
        return
    with _alone(workspace):
        _clear(place)
        if purge and place.data.exists():
            shutil.rmtree(place.data)


def private_status(workspace: Workspace) -> PrivateStatus:
    """Look whether the workspace's own engine runs.

    A pid file alone proves nothing: that process must be a dockerd with this
    engine's settings, and its socket must answer.
    """
    place = Place.of(workspace)
    pid = read_pid(place.pid_file("dockerd"))
    is_up = is_running(pid, "dockerd", str(place.settings)) and knock(place.engine) is None
    return PrivateStatus(
        is_running=is_up,
        host=place.engine.host,
        pid=pid if is_up else 0,
        data_root=place.data,
        log=place.log("dockerd"),
    )


def containerd_config(place: Place) -> str:
    """Return the TOML by which a containerd shares nothing with the system's."""
    # JSON strings are TOML strings.  CRI and NRI would open doors that only
    # Kubernetes uses, NRI at an address that all containerds share.
    return f"""version = 2
root = {json.dumps(str(place.data / "containerd"))}
state = {json.dumps(str(place.run / "containerd"))}
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]

[grpc]
address = {json.dumps(str(place.containerd_address))}

[plugins."io.containerd.internal.v1.opt"]
path = {json.dumps(str(place.data / "opt"))}
"""


def daemon_settings(place: Place, pool: IPv4Network) -> dict[str, Any]:
    """Return the daemon.json by which a dockerd shares nothing with the system's."""
    return {
        "data-root": str(place.data / "docker"),
        "exec-root": str(place.run / "docker"),
        "pidfile": str(place.run / "docker.pid"),
        "hosts": [place.engine.host],
        "containerd": str(place.containerd_address),
        "features": {"containerd-snapshotter": True},
        "bridge": place.name,
        "default-address-pools": [{"base": str(pool), "size": 24}],
        # Its rules are ours (see network.py), so that no chain of another
        # engine is touched.
        "iptables": False,
        "ip6tables": False,
        "shutdown-timeout": 5,
        # Whoever asked for it through sudo may use it.
        **({"group": os.environ["SUDO_GID"]} if "SUDO_GID" in os.environ else {}),
    }


def _start(place: Place) -> None:
    place.run.mkdir(mode=0o711)
    place.log("dockerd").parent.mkdir(parents=True, exist_ok=True)
    pool = free_pool(used_networks(ROUTES.read_text()), seed=int(place.name[-8:], 16))
    make_network(place.name, pool, place.name)
    config = place.run / "containerd.toml"
    config.write_text(containerd_config(place))
    place.settings.write_text(json.dumps(daemon_settings(place, pool), indent=2))
    say(f"starting a private Docker engine (logs: {place.log('dockerd').parent})")
    containerd = Engine(host=f"{UNIX}{place.containerd_address}", origin="private")
    waited = _launch(
        place, ("containerd", "--config", str(config)), lambda: knock(containerd) is None
    )
    waited += _launch(
        place, ("dockerd", "--config-file", str(place.settings)), lambda: answers(place.engine)
    )
    say(f"it answers at {place.engine.host} after {waited:.1f} s")


def _launch(place: Place, argv: tuple[str, ...], is_ready: Callable[[], bool]) -> float:
    program = argv[0]
    pid_file, log = place.pid_file(program), place.log(program)
    start_detached(argv, pid_file=pid_file, log=log)
    return wait_until(is_ready, name=program, pid_file=pid_file, log=log)


def _clear(place: Place) -> None:
    end_processes(place.run, place.data)
    unmount((place.run, place.data))
    if place.run.exists():
        remove_network(place.name, place.name)
        remove_shared_traces(place.run)
        shutil.rmtree(place.run)


@contextmanager
def _alone(workspace: Workspace) -> Iterator[None]:
    workspace.build.mkdir(parents=True, exist_ok=True)
    folder = os.open(workspace.build, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
