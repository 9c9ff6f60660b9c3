"""Which engine to use: the one that is asked for, else the one that is there."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata.engine.connect import UNIX, Engine, knock, why_unreachable
from strata.engine.facts import check_engine
from strata.errors import DefinitionError, HostError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strata.engine.facts import EngineFacts
    from strata.workspace import Workspace

SYSTEM_SOCKET = "/var/run/docker.sock"


def find_engine(workspace: Workspace) -> Engine | None:
    """Return the engine to use, or None where it does not run; nothing is started.

    In this order: the private one if STRATA_ENGINE=private, DOCKER_HOST,
    DOCKER_CONTEXT or the docker client's current context, the system's socket,
    the user's rootless socket.

    Raises `DefinitionError` for another STRATA_ENGINE, and `HostError` when an
    engine that was asked for does not answer, or may not be used.
    """
    if is_private():
        from strata.engine.private import running_private  # noqa: PLC0415 - seldom asked for

        return running_private(workspace)
    named = named_engine(os.environ, Path.home())
    if named is not None:
        closed = why_unreachable(named)
        if closed is not None:
            raise HostError(closed)
        return named
    return _listening(socket_engines(os.environ))


def ensure_engine(workspace: Workspace) -> tuple[Engine, EngineFacts]:
    """Return an engine that is fit to build, and what it is, installing one if there is none.

    Raises `HostError` when there is none and we may not install it, and for
    all that `check_engine` finds wrong.
    """
    engine = find_engine(workspace)
    if engine is None and is_private():
        from strata.engine.private import start_private  # noqa: PLC0415 - seldom asked for

        engine = start_private(workspace)
    elif engine is None:
        from strata.engine.install import install_engine  # noqa: PLC0415 - seldom needed

        engine = install_engine()
    return engine, check_engine(engine)


def is_private() -> bool:
    """Tell whether an engine of the project's own is asked for.

    Raises `DefinitionError` for a STRATA_ENGINE that means nothing.
    """
    wanted = os.environ.get("STRATA_ENGINE", "")
    if wanted not in ("", "private"):
        raise DefinitionError.at(
            "STRATA_ENGINE",
            f'it is "{wanted}", which means nothing',
            "STRATA_ENGINE=private for an engine of this project's own; else unset it",
        )
    return wanted == "private"


def named_engine(environ: Mapping[str, str], home: Path) -> Engine | None:
    """Return the engine that the environment or the docker client's configuration names.

    Raises `HostError` for a configuration that can't be read and for a context
    that does not exist.
    """
    config = Path(environ.get("DOCKER_CONFIG") or home / ".docker")
    host = environ.get("DOCKER_HOST")
    if host:
        has_tls = bool(environ.get("DOCKER_TLS_VERIFY"))
        folder = Path(environ.get("DOCKER_CERT_PATH") or config)
        return Engine(host=host, origin="DOCKER_HOST", certificates=folder if has_tls else None)
    name = environ.get("DOCKER_CONTEXT") or _current_context(config / "config.json")
    return None if name in ("", "default") else _context_engine(config / "contexts", name)


def _current_context(file: Path) -> str:
    settings = _read_json(file) if file.exists() else {}
    return str(settings.get("currentContext", ""))


def _context_engine(contexts: Path, name: str) -> Engine:
    # The client's own layout (docker/cli, cli/context/store): folders are
    # named by the sha256 of the context's name.
    folder = hashlib.sha256(name.encode()).hexdigest()
    meta = contexts / "meta" / folder / "meta.json"
    if not meta.exists():
        raise HostError(
            Problem(
                where=f"Docker context {name}",
                what=f"there is no such context (no {meta})",
                fix="docker context ls shows them all; docker context use default",
            )
        )
    endpoint = _read_json(meta).get("Endpoints", {}).get("docker", {})
    certificates = contexts / "tls" / folder / "docker"
    return Engine(
        host=endpoint.get("Host") or UNIX + SYSTEM_SOCKET,
        origin=f"context {name}",
        certificates=certificates if certificates.is_dir() else None,
        verifies_tls=not endpoint.get("SkipTLSVerify", False),
    )


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise HostError.at(
            str(file), f"it cannot be read: {error}", "repair it, or set DOCKER_HOST"
        ) from None
    if not isinstance(content, dict):
        raise HostError.at(str(file), "it is not a JSON object", "repair it, or set DOCKER_HOST")
    return content


def socket_engines(environ: Mapping[str, str]) -> tuple[Engine, ...]:
    """Return the engines that might listen on this machine without being named."""
    engines = [Engine(host=UNIX + SYSTEM_SOCKET, origin="socket")]
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime:
        engines.append(Engine(host=f"{UNIX}{runtime}/docker.sock", origin="rootless socket"))
    return tuple(engines)


def _listening(engines: tuple[Engine, ...]) -> Engine | None:
    answers = {engine: knock(engine) for engine in engines}
    for engine, error in answers.items():
        if error is None:
            return engine
    # An engine that is there, but not for this user, is no reason to install another.
    closed = [
        why_unreachable(e) for e, error in answers.items() if isinstance(error, PermissionError)
    ]
    problems = [problem for problem in closed if problem is not None]
    if problems:
        raise HostError(*problems)
    return None
