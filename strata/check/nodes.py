"""Containers that train together, as hosts do: each is one node of the training check."""

from __future__ import annotations

import io
import tarfile
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from strata.check.container import (
    Ended,
    container_options,
    gpu_request,
    labels,
    remove,
    remove_network,
    wait,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import docker
    from docker.models.containers import Container
    from docker.models.networks import Network

    from strata.check.options import Training

PORT = 29400  # each network is a check's own: nobody else listens there
LOGS = "/tmp/ddp-check-logs"  # noqa: S108 - in a container of our own


@dataclass(frozen=True, kw_only=True)
class Node:
    """How one container is started: its host name, its command, its GPUs' numbers (none: all)."""

    name: str
    argv: tuple[str, ...]
    gpus: tuple[str, ...]


def plan_nodes(how: Training) -> tuple[Node, ...]:
    """Return the containers of a training check, node 0 first.  Pure.

    Several nodes share this host's GPUs: each gets as many as it has ranks,
    counted from 0, one where `nproc` leaves it open.
    """
    argv = ["ddp-check", "--json", "--logs", LOGS]
    argv += ["--nproc", how.nproc] if how.nproc else []
    argv += ["--require-gpu"] if how.gpus != "none" else []
    if how.nodes == 1:
        return (Node(name="node0", argv=tuple(argv), gpus=()),)
    share = int(how.nproc) if how.nproc.isdecimal() else 1
    nodes = []
    for rank in range(how.nodes):
        place = ["--nnodes", str(how.nodes), "--node-rank", str(rank), "--rdzv", f"node0:{PORT}"]
        gpus = tuple(str(gpu) for gpu in range(rank * share, (rank + 1) * share))
        nodes.append(Node(name=f"node{rank}", argv=(*argv, *place), gpus=gpus))
    return tuple(nodes)


def run_nodes(
    sdk: docker.DockerClient, image: str, how: Training, timeout: float, logs: Path
) -> tuple[Ended, ...]:
    """Run the training check in as many containers as it has nodes; return how they ended.

    What each node and each of its ranks wrote is in `logs` afterwards.  The
    containers, and the network between several, are removed whatever happens.

    Raises `TimeoutError` when they do not end within `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    nodes = plan_nodes(how)
    with ExitStack() as stack:
        network = stack.enter_context(_private_network(sdk)) if len(nodes) > 1 else None
        containers = []
        for node in nodes:
            container = _create(sdk, image, node, how, network)
            stack.callback(remove, container)
            containers.append(container)
        for container in containers:
            container.start()
        try:
            codes = [wait(container, deadline - time.monotonic()) for container in containers]
        finally:
            ends = [_keep(c, logs / node.name) for c, node in zip(containers, nodes, strict=True)]
        return tuple(
            Ended(code=code, stdout=stdout, stderr=stderr)
            for code, (stdout, stderr) in zip(codes, ends, strict=True)
        )


@contextmanager
def _private_network(sdk: docker.DockerClient) -> Iterator[Network]:
    """Make a network that leads nowhere else, and remove it whatever happens."""
    name = f"strata-check-{uuid.uuid4().hex[:12]}"
    network = sdk.networks.create(name, driver="bridge", internal=True, labels=labels())
    try:
        yield network
    finally:
        remove_network(network)


def _create(
    sdk: docker.DockerClient, image: str, node: Node, how: Training, network: Network | None
) -> Container:
    options = container_options(how)
    if network is not None:
        del options["network_mode"]
        options["network"] = network.name
        endpoint = sdk.api.create_endpoint_config(aliases=[node.name])
        options["networking_config"] = {network.name: endpoint}
    if how.gpus != "none":
        options["ulimits"] = _ulimits(sdk)
        options["device_requests"] = [gpu_request(how.gpus, node.gpus)]
    return sdk.containers.create(
        image,
        list(node.argv),
        name=f"strata-check-{node.name}-{uuid.uuid4().hex[:12]}",
        hostname=node.name,
        **options,
    )


def _ulimits(sdk: docker.DockerClient) -> list[Any]:
    """Return what NCCL needs to register memory: unlimited locked memory, 64 MiB of stack.

    Gloo needs neither, and an engine that is not quite root may not raise them.
    """
    if "name=rootless" in sdk.info()["SecurityOptions"]:
        return []
    from docker.types import Ulimit  # noqa: PLC0415 - slow to import

    return [
        Ulimit(name="memlock", soft=-1, hard=-1),
        Ulimit(name="stack", soft=2**26, hard=2**26),
    ]


def _keep(container: Container, folder: Path) -> tuple[str, str]:
    """Keep a container's logs and its ranks' in a folder; return its stdout and stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    stdout = container.logs(stdout=True, stderr=False).decode(errors="replace")
    stderr = container.logs(stdout=False, stderr=True).decode(errors="replace")
    (folder / "stdout.log").write_text(stdout, encoding="utf-8")
    (folder / "stderr.log").write_text(stderr, encoding="utf-8")
    for name, content in _rank_logs(container):
        (folder / name).write_bytes(content)
    return stdout, stderr


def _rank_logs(container: Container) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of what each rank of a container wrote."""
    import docker.errors  # noqa: PLC0415 - slow to import

    try:
        chunks, _ = container.get_archive(LOGS)
    except docker.errors.NotFound:  # no rank was started
        return
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                yield rank_log(member.name), content.read()


def rank_log(path: str) -> str:
    """Return our name for torchrun's `…/attempt_N/LOCAL_RANK/STREAM.log`."""
    *_, _attempt, rank, stream = PurePosixPath(path).parts
    return f"local-rank-{rank}.{stream}"


def summarize(ends: Sequence[Ended]) -> str:
    """Return, for the nodes that did not end with 0, their code and last lines."""
    texts = []
    for number, ended in enumerate(ends):
        if ended.code != 0:
            last = "\n".join(ended.stderr.splitlines()[-20:])
            place = f"node{number}: " if len(ends) > 1 else ""
            texts.append(f"{place}exit {ended.code}\n{last}")
    return "\n".join(texts)
