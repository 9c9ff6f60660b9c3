"""JupyterLab and SSH in the background: started, waited for, shown, stopped."""

from __future__ import annotations

import getpass
import os
import secrets
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, HostError
from strata.pipeline import open_store
from strata.run import run
from strata.start import containers, ready
from strata.start.facts import local_engine
from strata.start.keys import same_keys
from strata.start.prepare import container_name, folder_of, prepare_start, tell
from strata.start.reference import short_name
from strata.start.services import JUPYTER, SSH
from strata.start.settings import KEYS_VARIABLE, LOOPBACK, TOKEN_VARIABLE, run_arguments
from strata.start.sshfiles import Login, config_block, known_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from docker.models.containers import Container

    from strata.engine import Engine
    from strata.start.keys import Keys
    from strata.start.options import StartOptions
    from strata.start.services import Service
    from strata.workspace import Workspace

TOKEN_BYTES = 24  # as Jupyter's own


def start_jupyter(workspace: Workspace, options: StartOptions) -> str:
    """Start JupyterLab, unless it runs, and return the link that opens it.

    The token is JUPYTER_TOKEN's, else a random one.
    """
    wanted = os.environ.get(TOKEN_VARIABLE, "")
    token = wanted or secrets.token_hex(TOKEN_BYTES)
    with _serving(workspace, JUPYTER, options, {TOKEN_VARIABLE: token}) as (_, container):
        kept = containers.variable(container, TOKEN_VARIABLE)
        if wanted not in ("", kept):
            raise DefinitionError.at(
                f"container {container.name}",
                f"it was started with another {TOKEN_VARIABLE}",
                f"unset {TOKEN_VARIABLE}, or ./inv jupyter --stop first",
            )
        port = _wait(container, JUPYTER, lambda port: ready.jupyter_answers(port, kept))
    return ready.jupyter_link(port, kept)


def start_ssh(workspace: Workspace, options: StartOptions, keys: Keys) -> Login:
    """Start an SSH server, unless it runs, pin its host keys, and return the way in."""
    with _serving(workspace, SSH, options, {}, keys) as (engine, container):
        let_in = containers.variable(container, KEYS_VARIABLE).splitlines()
        if not same_keys(let_in, keys.lines):
            raise DefinitionError.at(
                f"container {container.name}",
                "it was started with other public keys",
                "./inv ssh --stop first, or start a second one: --name NAME",
            )
        port = _wait(container, SSH, ready.ssh_greets)
        name = str(container.name)
        scan = ["ssh-keyscan", "-p", str(SSH.port), LOOPBACK]
        hosts = known_hosts(name, _inside(engine, name, *scan))
        user = _inside(engine, name, "id", "-un").strip()
    folder = folder_of(workspace)
    login = Login(
        name=name,
        port=port,
        user=user,
        known_hosts=folder / f"{name}.known_hosts",
        config=folder / f"{name}.config",
        identities=keys.identities,
        has_other_keys=not keys.is_named,
    )
    folder.mkdir(parents=True, exist_ok=True)
    login.known_hosts.write_text(hosts)
    login.config.write_text(config_block(login, LOOPBACK))
    return login


def show_command(
    workspace: Workspace, service: Service, options: StartOptions, keys: Keys | None = None
) -> str:
    """Return the `docker run` that would start a service; nothing is started."""
    engine = local_engine(workspace)
    lines = keys.lines if keys else ()
    with open_store(engine) as store:
        prepared = prepare_start(workspace, engine, store.sdk, options, service=service, keys=lines)
    token = ("--env", TOKEN_VARIABLE) if service is JUPYTER else ()
    argv = ["docker", "run", "--detach", *token, *run_arguments(prepared.settings)]
    return shlex.join([*argv, service.program])


def stop_service(
    workspace: Workspace, service: Service, options: StartOptions, *, dry_run: bool
) -> str:
    """Stop a service's container and remove it; return what was done."""
    short = short_name(options.image)
    name = options.name or container_name(service.name, short, getpass.getuser())
    engine = local_engine(workspace)
    if dry_run:
        return f"docker stop {name} && docker rm --volumes {name}"
    with open_store(engine) as store:
        was_there = containers.stop(store.sdk, name, service.name)
    for file in folder_of(workspace).glob(f"{name}.*"):
        file.unlink()
    return f"{name}: {'stopped and removed' if was_there else 'is not there'}"


@contextmanager
def _serving(
    workspace: Workspace,
    service: Service,
    options: StartOptions,
    given: Mapping[str, str],
    keys: Keys | None = None,
) -> Iterator[tuple[Engine, Container]]:
    """Yield the service's container; one that was made for it goes when the block fails."""
    engine = local_engine(workspace)
    with open_store(engine) as store:
        lines = keys.lines if keys else ()
        prepared = prepare_start(workspace, engine, store.sdk, options, service=service, keys=lines)
        settings = prepared.settings
        tell(prepared)
        found = containers.find_container(store.sdk, settings.name)
        if found is not None:
            flags = f"{options.image} --name {options.name}" if options.name else options.image
            yield engine, containers.reuse(found, settings, flags)
            return
        made = containers.create(engine, store.sdk, settings, [service.program], given)
        try:
            yield engine, made
        except BaseException:  # an interrupt too: nothing half-made stays
            made.remove(force=True, v=True)
            raise


def _wait(container: Container, service: Service, answers: Callable[[int], bool]) -> int:
    """Wait until the service answers; return its port on this machine."""

    def probe() -> bool:
        return answers(ready.published_port(container, service.port))

    ready.wait_until_ready(container, probe)
    return ready.published_port(container, service.port)


def _inside(engine: Engine, name: str, *argv: str) -> str:
    return run(
        ["docker", "exec", name, *argv],
        error=HostError,
        where=f"container {name}",
        fix=f"docker logs {name} shows what it says",
        env=engine.env,
        quiet=True,
    )
