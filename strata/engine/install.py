"""Installing and starting Docker where a machine has none."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

from strata import apt
from strata.engine.connect import UNIX, Engine, answers, knock
from strata.engine.daemon import SYSTEM_PATH, say, start_detached, wait_until
from strata.engine.find import SYSTEM_SOCKET
from strata.engine.membership import go_on_as_member
from strata.engine.packages import (
    ALL_PACKAGES,
    BY_HAND,
    CLASSIC_STORE,
    DAEMON_FILE,
    FROM_TRIXIE,
    PACKAGES,
    PLUGINS,
    WHERE,
    Action,
    Command,
    Machine,
    debian_mirror,
    missing_packages,
    needs_trixie,
    plan_install,
    plan_settings,
)
from strata.errors import HostError
from strata.run import run

PLUGIN_FOLDERS = (
    "/usr/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/local/lib/docker/cli-plugins",
)
DAEMON_PID = Path("/run/strata-dockerd.pid")
DAEMON_LOG = Path("/var/log/strata-dockerd.log")


def install_engine() -> Engine:
    """Install what is missing, start the system's engine, and return it.

    A user who is not root joins Docker's group, and the command begins anew.
    Raises `HostError` with the way out where we can't or may not.
    """
    machine = read_machine(tuple(PACKAGES))
    actions = (*plan_settings(machine), *plan_install(machine, tuple(PACKAGES)))
    prefix = apt.superuser()
    if prefix is None:
        missing = ", ".join(missing_packages(machine, tuple(PACKAGES)))
        verb = f"install {missing}" if missing else "start the one that is installed"
        raise HostError.at(
            WHERE,
            f"none answers on this machine, and without root we may not {verb}",
            "run ./inv once as root; or set DOCKER_HOST; or " + BY_HAND,
        )
    perform(actions, prefix)
    engine = Engine(host=UNIX + SYSTEM_SOCKET, origin="installed")
    # Where a package's installation starts services, it has started this one.
    if not is_listening(engine):
        start_system_engine(engine, prefix)
    if isinstance(knock(engine), PermissionError):
        go_on_as_member(prefix)
    return engine


def install_programs(programs: tuple[str, ...]) -> None:
    """Install those of `ALL_PACKAGES` that are named and that this machine lacks.

    Raises `HostError` when we can't, or may not.
    """
    machine = read_machine(programs)
    if actions := plan_install(machine, programs):
        prefix = apt.superuser()
        if prefix is None:
            missing = ", ".join(missing_packages(machine, programs))
            raise HostError.at(WHERE, f"without root we may not install {missing}", BY_HAND)
        perform(actions, prefix)


def read_machine(programs: tuple[str, ...]) -> Machine:
    """Look at this machine: its release, which of `programs` it has, and its mirror."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    os_id, os_version = release.get("ID", ""), release.get("VERSION_ID", "")
    has = frozenset(program for program in programs if is_here(program))
    is_lacking = any(ALL_PACKAGES[name] in FROM_TRIXIE for name in programs if name not in has)
    mirror = keyring = ""
    if is_lacking and needs_trixie(os_id, os_version):
        mirror, keyring = debian_mirror(apt.index_targets(), release["VERSION_CODENAME"])
    return Machine(
        os_id=os_id,
        os_version=os_version,
        has=has,
        mirror=mirror,
        keyring=keyring,
        has_daemon_file=DAEMON_FILE.exists(),
        has_images=CLASSIC_STORE.exists(),
    )


def is_here(program: str) -> bool:
    """Tell whether a program, or a plugin of the docker client's, is installed."""
    if program in PLUGINS:
        folders = (*map(Path, PLUGIN_FOLDERS), Path.home() / ".docker/cli-plugins")
        return any((folder / program).exists() for folder in folders)
    return shutil.which(program, path=SYSTEM_PATH["PATH"]) is not None


def is_listening(engine: Engine) -> bool:
    """Tell whether an engine is up, be it that we may not use it."""
    error = knock(engine)
    return error is None or isinstance(error, PermissionError)


def perform(actions: tuple[Action, ...], prefix: tuple[str, ...]) -> None:
    """Do these actions; `prefix` makes root do them."""
    for action in actions:
        if isinstance(action, Command):
            run([*prefix, *action.argv], error=HostError, where=WHERE, fix=BY_HAND)
            continue
        run(
            [*prefix, "mkdir", "-p", str(action.path.parent)],
            error=HostError,
            where=WHERE,
            fix=BY_HAND,
        )
        write = [*prefix, "tee", str(action.path)]
        run(write, error=HostError, where=WHERE, fix=BY_HAND, stdin=action.text)


def start_system_engine(engine: Engine, prefix: tuple[str, ...]) -> None:
    """Start the system's engine, by systemd where that runs, and wait until it answers."""
    if Path("/run/systemd/system").exists():
        argv = [*prefix, "systemctl", "start", "docker"]
        run(argv, error=HostError, where=WHERE, fix="journalctl -u docker | tail -50")
        return
    say(f"starting dockerd (log: {DAEMON_LOG})")
    start_detached(("dockerd",), pid_file=DAEMON_PID, log=DAEMON_LOG, prefix=prefix)
    # Without root we may be kept out even of an engine that answers.
    waited = wait_until(
        lambda: answers(engine) or isinstance(knock(engine), PermissionError),
        name="dockerd",
        pid_file=DAEMON_PID,
        log=DAEMON_LOG,
    )
    say(f"dockerd answers after {waited:.1f} s")
