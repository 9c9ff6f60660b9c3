"""By which way the commands of an image build reach the network, if by any but the plain one."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from strata.errors import HostError
from strata.load.dockerfile import instructions
from strata.run import run
from strata.upstream.mirrors import read_mirrors, with_variables
from strata.upstream.recording import Recording
from strata.upstream.relay import serve_relay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from strata.engine import Engine
    from strata.plan import Step
    from strata.workspace import Workspace

TABLE = "http.json"
FILES = "files"
# The variable of which the bake file takes the proxy: what it holds has a password.
RELAY = "STRATA_RELAY"


def recording_of(folder: Path) -> Recording:
    """Return what the commands of builds have fetched, in a folder of `fetch`."""
    return Recording(folder / TABLE, folder / FILES)


@contextmanager
def open_reach(
    workspace: Workspace, engine: Engine, recording: Recording | None = None
) -> Iterator[str]:
    """Yield the URL of the proxy for the commands of a build; "" where they need none.

    They need one to be recorded, to be answered from `workspace.carried`, or where
    mirrors.toml has a mirror of the archives or a proxy.  Raises `HostError`
    where the engine is not on this machine.
    """
    mirrors = read_mirrors(os.environ)
    if workspace.carried:
        carried = recording_of(workspace.carried)
        with serve_relay(_gateway(engine), recording=carried, replay=True) as url:
            yield url
    elif recording is not None or mirrors.apt or mirrors.proxy:
        mirror = with_variables(mirrors.apt, os.environ, "mirrors.toml")
        with serve_relay(_gateway(engine), mirror=mirror, recording=recording) as url:
            yield url
    else:
        yield ""


def uses_network(step: Step) -> bool:
    """Say whether a step has a command that may use the network."""
    text = (step.layer.folder / "Dockerfile").read_text()
    return any(
        found.keyword == "RUN" and "--network=none" not in found.rest.split()
        for found in instructions(text)
    )


def _gateway(engine: Engine) -> str:
    """Return the address at which containers of the engine's bridge find this machine."""
    where = f"Docker engine at {engine.host} ({engine.origin})"
    layout = "{{range .IPAM.Config}}{{.Gateway}} {{end}}"
    found = run(
        ["docker", "network", "inspect", "bridge", "--format", layout],
        error=HostError,
        where=where,
        fix="docker network ls should show a network named bridge",
        env=engine.env,
        quiet=True,
    ).split()
    if not found:
        raise HostError.at(where, "its bridge has no gateway", "start it without --bridge=none")
    return found[0]
