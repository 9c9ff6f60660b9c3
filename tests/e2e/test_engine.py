"""A private engine beside whatever else runs on this machine; needs root and Docker's programs."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strata.engine import Engine, check_engine, client, find_engine
from strata.engine.daemon import command_line, read_pid
from strata.engine.leftovers import TASKS, processes
from strata.engine.network import bridge_network, used_networks
from strata.engine.private import Place, private_status, start_private, stop_private
from strata.errors import HostError
from strata.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker

IMAGE = "strata-test:tiny"
OUTSIDE = "198.51.100"  # a network for documentation (RFC 5737)


def output(*argv: str) -> str:
    """Run a command; return what it wrote."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def traces() -> dict[str, set[str]]:
    """Return all that an engine may leave on a machine."""
    folders = ("/run", "/etc/docker", "/etc/containerd", "/opt", "/var/lib/docker")
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return {
        "rules": {line for line in output("iptables-save").splitlines() if line[0] == "-"},
        "links": {path.name for path in Path("/sys/class/net").iterdir()},
        "mounts": {line.split()[4] for line in mounts},
        "files": {path for top in folders for path in tree(top)},
        "cgroups": set(tree("/sys/fs/cgroup")),
    }


def tree(top: str) -> Iterator[str]:
    """Walk through all folders and files; others may remove some meanwhile."""
    for folder, _, names in os.walk(top):
        yield folder
        yield from (f"{folder}/{name}" for name in names)


def new_since(before: dict[str, set[str]], mark: str) -> dict[str, set[str]]:
    """Return what has come since, as far as it could be ours: others work on this machine too."""
    after = traces()
    came = {kind: after[kind] - before[kind] for kind in after}
    pattern = re.compile(rf"{mark}|^/opt/containerd|^/etc")
    return {
        kind: kept for kind, new in came.items() if (kept := {x for x in new if pattern.search(x)})
    }


def tiny_image() -> bytes:
    """Return a tar of four programs of this machine, and the libraries they need."""
    programs = [str(shutil.which(name)) for name in ("bash", "cat", "sleep", "timeout")]
    libraries = {path for name in programs for path in re.findall(r"/\S+", output("ldd", name))}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as tar:
        for path in (*programs, *sorted(libraries - {f"{name}:" for name in programs})):
            name = f"bin/{Path(path).name}" if path in programs else path
            tar.add(Path(path).resolve(), arcname=name)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Make a workspace at a path deeper than a socket's may be; stop its engine at the end."""
    root = tmp_path_factory.mktemp("private") / ("deep" * 20) / "a project"
    root.mkdir(parents=True)
    workspace = Workspace(root=root, build=root / "build", cache=root / "cache")
    yield workspace
    stop_private(workspace, purge=True)


@pytest.fixture
def sdk(workspace: Workspace) -> Iterator[docker.DockerClient]:
    """Return a client of the running engine, which has the tiny image."""
    with closing(client(start_private(workspace))) as sdk:
        if not sdk.images.list(IMAGE):
            name, tag = IMAGE.split(":")
            sdk.api.import_image_from_data(tiny_image(), repository=name, tag=tag)
        yield sdk


def shim_socket(place: Place, container: str) -> str:
    """Return the socket of a container's shim, which lies in a folder that all engines share."""
    address = place.run / TASKS / "moby" / container / "address"
    return address.read_text().removeprefix("unix://")


def run_bash(sdk: docker.DockerClient, script: str, network: str | None = None) -> str:
    """Run a script in a container for at most 20 s; return its output."""
    command = ["timeout", "20", "bash", "-c", script]
    answer = sdk.containers.run(IMAGE, command, remove=True, network=network)
    return bytes(answer).decode().strip()


def host_address(workspace: Workspace) -> str:
    """Return the bridge's own address."""
    network = output("ip", "-4", "-o", "address", "show", "dev", Place.of(workspace).name)
    return str(re.findall(r"inet ([\d.]+)/", network)[0])


@contextmanager
def greeting(address: str, prefix: tuple[str, ...] = ()) -> Iterator[int]:
    """Say who called to everybody who connects, from another network namespace with `prefix`."""
    script = (
        "import socket\n"
        f"server = socket.create_server(('{address}', 0))\n"
        "print(server.getsockname()[1], flush=True)\n"
        "while True:\n"
        "    caller, (name, _) = server.accept()\n"
        "    caller.sendall(name.encode() + b'\\n')\n"
        "    caller.close()\n"
    )
    argv = [*prefix, "python3", "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline())
        finally:
            server.kill()


@contextmanager
def outside(link: str) -> Iterator[tuple[str, ...]]:
    """Make a neighbour of this host that knows no way back to containers.

    The host drops what is forwarded there, as another Docker engine would.
    """
    drop = ["FORWARD", "-d", f"{OUTSIDE}.0/24", "-j", "DROP"]
    output("ip", "netns", "add", link)
    try:
        output("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", link)
        output("ip", "address", "add", f"{OUTSIDE}.1/24", "dev", link)
        output("ip", "link", "set", link, "up")
        inside = ("ip", "netns", "exec", link)
        output(*inside, "ip", "address", "add", f"{OUTSIDE}.2/24", "dev", "eth0")
        output(*inside, "ip", "link", "set", "eth0", "up")
        output("iptables", "-w", "10", "-A", *drop)
        yield inside
    finally:
        subprocess.run(["iptables", "-w", "10", "-D", *drop], check=False)
        output("ip", "netns", "delete", link)


def test_it_comes_up_fit_to_build(workspace: Workspace) -> None:
    """A private engine needs no settings to pass all of our own conditions."""
    engine = start_private(workspace)
    facts = check_engine(engine, need_bytes=1)
    assert engine.origin == "private"
    assert facts.has_containerd_store
    assert Path(facts.data_root).is_relative_to(workspace.build)
    assert facts.free_bytes is not None


def test_starting_it_again_changes_nothing(workspace: Workspace) -> None:
    """The running engine, the same process, is returned."""
    pid = private_status(workspace).pid
    assert start_private(workspace) == Place.of(workspace).engine
    assert private_status(workspace).pid == pid
    assert pid > 0


def test_it_is_found_when_asked_for(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """STRATA_ENGINE=private wins over a DOCKER_HOST."""
    monkeypatch.setenv("STRATA_ENGINE", "private")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    assert find_engine(workspace) == Place.of(workspace).engine


def test_a_container_has_an_address_and_reaches_the_host(
    workspace: Workspace, sdk: docker.DockerClient
) -> None:
    """Containers stand on the engine's own bridge."""
    gateway = host_address(workspace)
    with greeting(gateway) as port:
        caller = run_bash(sdk, f"cat </dev/tcp/{gateway}/{port}")
    (network,) = (
        bridge
        for bridge in used_networks(Path("/proc/net/route").read_text())
        if str(bridge[1]) == gateway
    )
    assert caller.rpartition(".")[0] == gateway.rpartition(".")[0]
    assert network.prefixlen == 24
    assert bridge_network(network.supernet(new_prefix=20)) == network


@pytest.mark.parametrize("kind", ["default", "user"])
def test_a_container_gets_out_where_others_drop(
    workspace: Workspace, sdk: docker.DockerClient, kind: str
) -> None:
    """From the bridge and from a user's network, packets leave with the host's address."""
    name = Place.of(workspace).name
    network = sdk.networks.create(f"{name}-user") if kind == "user" else None
    try:
        with outside(f"o{name[-8:]}") as inside, greeting(f"{OUTSIDE}.2", inside) as port:
            connect = f"cat </dev/tcp/{OUTSIDE}.2/{port}"
            assert run_bash(sdk, connect, network.name if network else None) == f"{OUTSIDE}.1"
    finally:
        if network:
            network.remove()


def test_a_published_port_is_reached(workspace: Workspace, sdk: docker.DockerClient) -> None:
    """What a container publishes can be reached on the host's loopback."""
    # No server is in the image: bash can't listen.  The proxy's own door is what counts.
    container = sdk.containers.run(
        IMAGE, ["sleep", "60"], detach=True, ports={"80/tcp": ("127.0.0.1", 0)}
    )
    try:
        container.reload()
        port = int((container.ports["80/tcp"] or [{}])[0]["HostPort"])
        socket.create_connection(("127.0.0.1", port), 5).close()
    finally:
        container.remove(force=True)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)
    assert private_status(workspace).is_running


def test_images_survive_a_stop(workspace: Workspace, sdk: docker.DockerClient) -> None:
    """Without purge the data root, and so the build cache, is there after the next start."""
    before = [image.id for image in sdk.images.list(IMAGE)]
    stop_private(workspace)
    assert not private_status(workspace).is_running
    with closing(client(start_private(workspace))) as again:
        assert [image.id for image in again.images.list(IMAGE)] == before
    assert before


def test_a_killed_engine_is_cleared_away_at_the_next_start(
    workspace: Workspace, sdk: docker.DockerClient
) -> None:
    """Stale pid files, stale sockets and orphaned containers are in nobody's way."""
    place = Place.of(workspace)
    container = sdk.containers.run(IMAGE, ["sleep", "3600"], detach=True)
    container.reload()
    orphan = int(container.attrs["State"]["Pid"])
    for program in ("dockerd", "containerd"):
        os.kill(read_pid(place.pid_file(program)), signal.SIGKILL)
    while any(command_line(read_pid(place.pid_file(name))) for name in ("dockerd", "containerd")):
        time.sleep(0.05)
    assert place.pid_file("dockerd").exists()
    assert command_line(orphan) == ("sleep", "3600")
    assert not private_status(workspace).is_running
    with closing(client(start_private(workspace))) as again:
        assert command_line(orphan) == ()
        assert run_bash(again, "echo works") == "works"


def test_two_that_start_it_at_once_get_one_engine(workspace: Workspace) -> None:
    """Parallel runs of one project wait for each other and share the engine."""
    stop_private(workspace)
    engines: list[Engine] = []
    threads = [
        threading.Thread(target=lambda: engines.append(start_private(workspace))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    place = Place.of(workspace)
    assert engines == [place.engine] * 2
    assert sorted(processes(place.run, place.data).values()) == ["containerd", "dockerd"]


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_nothing_is_left(tmp_path: Path, end: str) -> None:
    """A purge leaves nothing, not even where daemons and shim were killed under a container."""
    workspace = Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")
    place = Place.of(workspace)
    before = traces()
    with closing(client(start_private(workspace))) as sdk:
        sdk.api.import_image_from_data(tiny_image(), repository="strata-test", tag="tiny")
        container = sdk.containers.run(IMAGE, ["sleep", "3600"], detach=True)
    shim = shim_socket(place, str(container.id))
    mark = "|".join(
        re.escape(str(x)) for x in (place.run, place.name, tmp_path, container.id, shim)
    )
    assert set(new_since(before, mark)) >= {"rules", "links", "mounts", "files", "cgroups"}
    assert shim in new_since(before, mark)["files"]
    if end == "killed":
        for pid, name in processes(place.run, place.data).items():
            if name != "sleep":
                os.kill(pid, signal.SIGKILL)
    stop_private(workspace, purge=True)
    assert new_since(before, mark) == {}
    assert processes(place.run, place.data) == {}
    assert list(workspace.build.iterdir()) == []


def test_a_start_that_fails_leaves_only_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dockerd that dies shows its last words; bridge, rules, containerd and run folder go."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "dockerd").write_text("#!/bin/sh\necho no cgroups here >&2\nexit 1\n")
    (programs / "dockerd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(
        "strata.engine.daemon.SYSTEM_PATH", {"PATH": f"{programs}:{os.environ['PATH']}"}
    )
    root = tmp_path / "project"
    workspace = Workspace(root=root, build=root / "build", cache=root / "cache")
    place = Place.of(workspace)
    before = traces()
    with pytest.raises(HostError, match="no cgroups here"):
        start_private(workspace)
    assert new_since(before, f"{re.escape(str(place.run))}|{place.name}") == {}
    assert processes(place.run, place.data) == {}
    assert place.log("dockerd").read_text() == "no cgroups here\n"
