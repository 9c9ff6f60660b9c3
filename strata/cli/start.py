"""Tasks that start containers as they should be started: run, jupyter, ssh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strata.cli.frame import VARIANT, strata_task, workspace_of

if TYPE_CHECKING:
    from strata.start.options import StartOptions

IMAGE = "an image of the project, or a reference; a registry's is pulled"
SETTINGS = {
    "variant": VARIANT,
    "public": "open the port on all addresses of this machine; without it, on its loopback alone",
    "gpus": "all, none, or auto: all where the engine offers them",
    "work": "the folder to work on; default: the current one; none for none",
    "user": "UID:GID; default: yours",
    "shm": "size of /dev/shm, such as 8g; default: half of the memory",
    "name": "name of the container; default: made of the image's and yours",
    "env": "NAME=value for the container, or NAME for its value here; may repeat",
    "dry-run": "print the docker command, and do nothing",
}
SERVICE_SETTINGS = {
    **SETTINGS,
    "image": IMAGE,
    "port": "port of this machine; default: a free one",
    "stop": "stop the container and remove it",
}


def _options(**given: Any) -> StartOptions:
    from pathlib import Path

    from strata.start.options import start_options

    return start_options(cwd=Path.cwd(), **given)


@strata_task(
    positional=["image"],
    iterable=["env"],
    help={
        **SETTINGS,
        "image": IMAGE,
        "port": "a port of the container's, the same on this machine",
    },
)
def run(  # noqa: PLR0917 - the flags of the task
    c: Any,
    image: str,
    env: list[str],
    variant: str = "embedded",
    port: str = "",
    public: bool = False,
    gpus: str = "auto",
    work: str = "",
    user: str = "",
    shm: str = "",
    name: str = "",
    dry_run: bool = False,
) -> None:
    """Run a command in a new container: ./inv run IMAGE -- CMD; without CMD, a shell."""
    import sys

    from strata.start.command import run_command, words_after_dashes

    options = _options(
        image=image,
        variant=variant,
        port=port,
        public=public,
        gpus=gpus,
        work=work,
        user=user,
        shm=shm,
        name=name,
        env=env,
    )
    run_command(workspace_of(c), options, words_after_dashes(sys.argv), dry_run=dry_run)


@strata_task(iterable=["env"], help=SERVICE_SETTINGS)
def jupyter(  # noqa: PLR0917 - the flags of the task
    c: Any,
    env: list[str],
    image: str = "lab",
    variant: str = "embedded",
    port: str = "",
    public: bool = False,
    gpus: str = "auto",
    work: str = "",
    user: str = "",
    shm: str = "",
    name: str = "",
    stop: bool = False,
    dry_run: bool = False,
) -> None:
    """Start JupyterLab in the background and print its link: ./inv jupyter [IMAGE]."""
    from strata.start.serve import show_command, start_jupyter, stop_service
    from strata.start.services import JUPYTER

    options = _options(
        image=image,
        variant=variant,
        port=port,
        public=public,
        gpus=gpus,
        work=work,
        user=user,
        shm=shm,
        name=name,
        env=env,
    )
    workspace = workspace_of(c)
    if stop:
        print(stop_service(workspace, JUPYTER, options, dry_run=dry_run))
    elif dry_run:
        print(show_command(workspace, JUPYTER, options))
    else:
        print(start_jupyter(workspace, options))


@strata_task(
    iterable=["env"],
    help={
        **SERVICE_SETTINGS,
        "key": "file of the public key to let in; default: ssh-agent's and those of ~/.ssh",
        "config": "print the block for ~/.ssh/config in place of the command",
    },
)
def ssh(  # noqa: PLR0917 - the flags of the task
    c: Any,
    env: list[str],
    image: str = "remote",
    variant: str = "embedded",
    port: str = "",
    public: bool = False,
    gpus: str = "auto",
    work: str = "",
    user: str = "",
    shm: str = "",
    name: str = "",
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

    options = _options(
        image=image,
        variant=variant,
        port=port,
        public=public,
        gpus=gpus,
        work=work,
        user=user,
        shm=shm,
        name=name,
        env=env,
    )
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
