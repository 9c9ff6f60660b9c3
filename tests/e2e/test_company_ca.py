"""A company's CA is honoured by every program alike, or by none (docs/hardening.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.boxes import call

if TYPE_CHECKING:
    from tests.e2e.boxes import Boxes

INSIDE = Path(__file__).with_name("ca_inside.py")
SYSTEM = "/etc/ssl/certs/ca-certificates.crt"
TOOLS = ["curl", "git", "pip", "requests", "ssl"]
CLOSED = (
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "none"),
    *("--read-only", "--tmpfs", "/tmp", "--tmpfs", "/home/dev:uid=1000,gid=1000,mode=0755"),  # noqa: S108
)


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a private CA, and a certificate of it for `localhost`."""
    folder = tmp_path_factory.mktemp("company")
    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    ca = ("-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.crt", "-subj", "/CN=Company CA")
    made = call(*new, *ca)
    assert made.code == 0, made.err
    by = ("-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key", "-subj", "/CN=localhost")
    files = ("-keyout", f"{folder}/server.key", "-out", f"{folder}/server.crt")
    made = call(*new, *by, *files, "-addext", "subjectAltName=DNS:localhost")
    assert made.code == 0, made.err
    for path in (folder, folder / "server.key"):
        path.chmod(0o755)  # the container's user is another
    return folder


def complaints(boxes: Boxes, company: Path, *options: str) -> dict[str, str]:
    """Return what each tool says of the company's server, "" where it is trusted."""
    program = ("/company/server.crt", "/company/server.key")
    done = boxes.once(
        "lab",
        *("--interactive", "--volume", f"{company}:/company:ro", *CLOSED, *options),
        command=("python", "-", *program),
        stdin=INSIDE.read_bytes(),
    )
    assert done.code == 0, done.err
    found: dict[str, str] = json.loads(done.stdout)
    assert sorted(found) == TOOLS
    return found


def test_stranger_is_refused(boxes: Boxes, company: Path) -> None:
    """Without the CA every tool refuses the server, and says that the certificate is why."""
    said = complaints(boxes, company)
    assert [tool for tool, text in said.items() if "certificate" not in text.lower()] == []


def test_variable(boxes: Boxes, company: Path) -> None:
    """STRATA_CA_FILE makes every tool trust the CA."""
    said = complaints(boxes, company, "--env", "STRATA_CA_FILE=/company/ca.crt")
    assert said == dict.fromkeys(TOOLS, "")


def test_mount(boxes: Boxes, company: Path) -> None:
    """So does a whole list of authorities, as a company's machine has one, over the image's."""
    listed = boxes.once("lab", "--network", "none", command=("cat", SYSTEM))
    whole = company / "ca-certificates.crt"
    whole.write_bytes(listed.stdout + (company / "ca.crt").read_bytes())
    said = complaints(boxes, company, "--volume", f"{whole}:{SYSTEM}:ro")
    assert said == dict.fromkeys(TOOLS, "")


def test_slip(boxes: Boxes) -> None:
    """A CA that can't be read ends the container with 78, and the command doesn't run."""
    missing = ("--env", "STRATA_CA_FILE=/nowhere")
    done = boxes.once("lab", "--network", "none", *missing, command=("echo", "ran"))
    assert (done.code, done.out) == (78, "")
    assert "STRATA_CA_FILE: /nowhere holds no certificate" in done.err
