"""Tasks that start containers as they should be started: run, jupyter, ssh."""

from __future__ import annotations

import functools
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any

from strata.cli.frame import VARIANT, strata_task, workspace_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from strata.start.options import StartOptions

SETTINGS = {
    "image": "an image of the project, or a reference; a registry's is pulled",
    "variant": VARIANT,
    "port": "port of this machine; default: a free one",
    "public": "open the port on all addresses of this machine; without it, on its loopback alone",
    "gpus": "all, none, or auto: all where the engine offers them",
    "work": "the folder to work on; default: the current one; none for none",
    "user": "UID:GID; default: yours",
    "shm": "size of /dev/shm, such as 8g; default: half of the memory",
    "name": "name of the container; default: made of the image's and yours",
    "env": "NAME=value for the container, or NAME for its value here; may repeat",
    "dry-run": "print the docker command, and do nothing",
}
STOP = "stop the container and remove it"


def _shared(
    *,
    variant: str = "embedded",
    port: str = "",
    public: bool = False,
    gpus: str = "auto",
    work: str = "",
    user: str = "",
    shm: str = "",
    name: str = "",
) -> None:
    """Hold the flags that every such task has, but for `image` and `env`, in their order."""


def container_task(image: str = "", **texts: str) -> Callable[[Callable[..., None]], Any]:
    """Make a task whose body is given the shared flags as one `StartOptions`.

    `image` is its default; without one, it must be named.  `texts` help with the
    body's own flags.  Invoke reads flags and their short forms from the signature.
    """

    def decorate(body: Callable[..., None]) -> Any:
        context, _, *own = signature(body).parameters.values()
        kind = Parameter.POSITIONAL_OR_KEYWORD
        env = Parameter("env", kind)
        if image:
            first = [env, Parameter("image", kind, default=image)]
        else:
            first = [Parameter("image", kind), env]
        shared = [*first, *signature(_shared).parameters.values()]

        @functools.wraps(body)
        def started(c: Any, **flags: Any) -> None:
            from pathlib import Path

            from strata.start.options import start_options

            given = {flag.name: flags.pop(flag.name) for flag in shared}
            body(c, start_options(cwd=Path.cwd(), **given), **flags)

        vars(started)["__signature__"] = Signature([context, *shared, *own])
        return strata_task(
            positional=None if image else ["image"],
            iterable=["env"],
            help={**SETTINGS, **texts},
        )(started)

    return decorate


@container_task(port="a port of the container's, the same on this machine")
def run(c: Any, options: StartOptions, *, dry_run: bool = False) -> None:
    """Run a command in a new container: ./inv run IMAGE -- CMD; without CMD, a shell."""
    import sys

    from strata.start.command import run_command, words_after_dashes

    run_command(workspace_of(c), options, words_after_dashes(sys.argv), dry_run=dry_run)


@container_task(image="lab", stop=STOP)
def jupyter(c: Any, options: StartOptions, *, stop: bool = False, dry_run: bool = False) -> None:
    """Start JupyterLab in the background and print its link: ./inv jupyter [IMAGE]."""
    from strata.start.serve import show_command, start_jupyter, stop_service
    from strata.start.services import JUPYTER

    workspace = workspace_of(c)
    if stop:
        print(stop_service(workspace, JUPYTER, options, dry_run=dry_run))
    elif dry_run:
        print(show_command(workspace, JUPYTER, options))
    else:
        print(start_jupyter(workspace, options))


@container_task(
    image="remote",
    stop=STOP,
    key="file of the public key to let in; default: ssh-agent's and those of ~/.ssh",
    config="print the block for ~/.ssh/config in place of the command",
)
def ssh(
    c: Any,
    options: StartOptions,
    *,
    key: str = "",
    config: bool = False,
    stop: bool = False,
    dry_run: bool = False,
) -> None:
    """Start an SSH server in the background and print how to log in: ./inv ssh [IMAGE]."""
    from pathlib import Path

    from strata.start.keys import find_keys
    from strata.start.serve import show_command, start_ssh, stop_service
    from strata.start.services import SSH

    workspace = workspace_of(c)
    if stop:
        print(stop_service(workspace, SSH, options, dry_run=dry_run))
        return
    keys = find_keys(key, Path.cwd(), Path.home())
    if dry_run:
        print(show_command(workspace, SSH, options, keys))
        return
    login = start_ssh(workspace, options, keys)
    print(login.config.read_text() if config else login.command, end="" if config else "\n")
