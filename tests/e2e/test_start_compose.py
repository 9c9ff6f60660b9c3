"""deploy/compose.yaml starts what docs/run.md starts, with Compose and without it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest
import requests
import yaml

from tests.e2e.boxes import ROOT, call, until
from tests.e2e.sshclient import Client, make_key, wait_for_ssh
from tests.e2e.test_start_docs import GUIDE, free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Boxes

COMPOSE = ROOT / "deploy/compose.yaml"
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def filled(text: str, values: dict[str, str]) -> str:
    """Fill in `${NAME}`, `${NAME:-default}` and `${NAME:?reason}`, as Compose does."""

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if values.get(name) or kind is None:
            return values.get(name, "")
        if kind == "?":
            raise ValueError(f"{name}: {rest}")
        return str(rest)

    return VARIABLE.sub(value, text)


def services(**values: str) -> dict[str, dict[str, Any]]:
    """Return the services of compose.yaml."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(filled(COMPOSE.read_text(), values))
    return found["services"]


# How `docker run` says what a service of compose.yaml says.
FLAGS = {
    "cap_drop": "--cap-drop",
    "user": "--user",
    "security_opt": "--security-opt",
    "shm_size": "--shm-size",
    "ports": "--publish",
    "volumes": "--volume",
}


def arguments(service: dict[str, Any]) -> list[str]:
    """Return the options of `docker run` for a service; a key that has none fails."""
    argv = []
    for key, value in service.items():
        if key in FLAGS:
            values = value if isinstance(value, list) else [value]
            argv += [word for one in values for word in (FLAGS[key], str(one))]
        elif key == "ulimits":
            argv += [word for name, n in value.items() for word in ("--ulimit", f"{name}={n}")]
        elif key == "environment":
            argv += [word for name, n in value.items() for word in ("--env", f"{name}={n}")]
        else:
            assert key in {"image", "command"}, key
    return argv


def test_compose_starts_both(boxes: Boxes, tmp_path: Path) -> None:
    """JupyterLab lets in whoever has the token, the SSH server whoever has the key; as anybody."""
    key = make_key(tmp_path, "ada")
    os.chown(tmp_path, 12345, 54321)
    tmp_path.chmod(0o700)
    jupyter_port, ssh_port = map(str, free_ports(2))
    found = services(
        STRATA_IMAGES="strata",
        STRATA_WORK=str(tmp_path),
        STRATA_USER="12345:54321",
        STRATA_JUPYTER_PORT=jupyter_port,
        STRATA_SSH_PORT=ssh_port,
        JUPYTER_TOKEN="a token",  # noqa: S106 - a test's
        STRATA_AUTHORIZED_KEYS=key.public,
    )
    started = {
        name: boxes.start(
            found[name]["image"],
            *arguments(found[name]),
            command=tuple(found[name]["command"]),
        )
        for name in ("jupyter", "ssh")
    }
    client = Client(wait_for_ssh(started["ssh"]), key)
    assert client.port == int(ssh_port)
    assert client.run("touch mine && id -un").out == "dev"
    assert (tmp_path / "mine").stat().st_uid == 12345

    def answer(token: str) -> int | None:
        headers = {"Authorization": f"token {token}"}
        address = f"http://127.0.0.1:{jupyter_port}/api/status"
        try:
            return requests.get(address, headers=headers, timeout=30).status_code
        except requests.ConnectionError:
            return None

    assert until(lambda: answer("a token"), "JupyterLab", 120) == 200
    assert answer("another") == 403


def test_compose_is_closed() -> None:
    """Each service listens on the loopback, has no capability, and GPUs only by its name."""
    found = services(STRATA_IMAGES="ghcr.io/me", STRATA_VARIANT="cuda129")
    assert {name: service["image"] for name, service in found.items()} == {
        "jupyter": "ghcr.io/me/lab:cuda129",
        "ssh": "ghcr.io/me/remote:cuda129",
        "jupyter-gpu": "ghcr.io/me/lab:cuda129",
        "ssh-gpu": "ghcr.io/me/remote:cuda129",
    }
    for name, service in found.items():
        assert [port.partition(":")[0] for port in service["ports"]] == ["127.0.0.1"]
        assert service["cap_drop"] == ["ALL"]
        assert service["user"] == "1000:1000"
        assert service["security_opt"] == ["no-new-privileges:true"]
        has_gpus = name.endswith("-gpu")
        assert ("deploy" in service) is has_gpus
        assert service.get("profiles") == (["gpu"] if has_gpus else None)
        assert service["ulimits"].get("memlock") == (-1 if has_gpus else None)


def test_compose_wants_to_know_where_images_are() -> None:
    """Without STRATA_IMAGES it is an error: Docker Hub's `strata` is not this project."""
    with pytest.raises(ValueError, match="STRATA_IMAGES: REGISTRY/OWNER"):
        services()


def test_compose_itself_takes_the_file() -> None:
    """Docker Compose reads it, and the guide's lines name services that it knows."""
    argv = ["docker", "compose", "--file", str(COMPOSE), "--profile", "gpu", "config", "--services"]
    done = call(*argv, env={"STRATA_IMAGES": "strata"})
    assert done.code == 0, done.err
    assert set(done.out.split()) == {"jupyter", "ssh", "jupyter-gpu", "ssh-gpu"}
    lines = re.findall(r"docker compose .* up --detach (\S+)$", GUIDE.read_text(), re.MULTILINE)
    assert lines == ["jupyter", "ssh"]
