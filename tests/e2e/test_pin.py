"""`./inv pin` against a real registry and a web server on loopback."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
import requests

from tests.e2e.registry import docker_config, open_host
from tests.packages.site import Answer, Site, serve_site
from tests.projects import SmallProject, make_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["docker_config", "open_host"]

SOURCES = "locks/embedded/sources.toml"
OLD, NEW = "Miniconda3-py312_26.7.1-1-Linux-{arch}.sh", "Miniconda3-py312_26.9.0-2-Linux-{arch}.sh"
INSTALLER = b"#!/bin/sh\n"
LEFT_OUT = "[left_out]\n"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture
def site() -> Iterator[Site]:
    """Serve on loopback."""
    with serve_site() as served:
        yield served


@pytest.fixture
def project(tmp_path: Path, open_host: str, site: Site) -> SmallProject:
    """Make a project whose base is in the registry and whose installer is on the site."""
    made = make_project(tmp_path / "project")
    base = f'image = "{open_host}/base:12"  # readable\ndigest = "unset"  # binding\n'
    made.replace(SOURCES, 'suite = "bookworm"\ninclude = ["python3"]\n', base)
    made.replace(
        SOURCES,
        LEFT_OUT,
        f'[installer]\nurl = "{site.address}/miniconda/{OLD}"\n'
        f'[installer.sha256]\n"linux/amd64" = "unset" # x86_64\n{LEFT_OUT}',
    )
    return made


def push(host: str, text: str) -> str:
    """Put an image without layers into a registry, as `base:12`; return its digest."""
    config = json.dumps({"architecture": "amd64", "os": "linux", "text": text}).encode()
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    start = requests.post(f"http://{host}/v2/base/blobs/uploads/", timeout=10)
    place = start.headers["Location"]
    separator = "&" if "?" in place else "?"
    requests.put(f"{place}{separator}digest={digest}", data=config, timeout=10).raise_for_status()
    described = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest}
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {**described, "size": len(config)},
            "layers": [],
        }
    ).encode()
    requests.put(
        f"http://{host}/v2/base/manifests/12",
        data=manifest,
        headers={"Content-Type": MANIFEST},
        timeout=10,
    ).raise_for_status()
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def page(*names: str, sha256: str = "") -> bytes:
    """Return the page of the site that lists these files."""
    return "".join(
        f'<a href="{name.format(arch="x86_64")}">.</a> {sha256}\n' for name in names
    ).encode()


def test_pin_writes_what_is_newest_and_keeps_the_rest(
    project: SmallProject, open_host: str, site: Site
) -> None:
    """Digest of the tag, newest installer with its published hash; comments stay, then nothing."""
    digest = push(open_host, "one")
    site.put("/miniconda/", page(OLD, NEW, sha256="a" * 64))
    before = (project.root / SOURCES).read_text()

    dry = project.inv("pin", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert f"{SOURCES}: base.digest: unset -> {digest}" in dry.stdout
    assert (project.root / SOURCES).read_text() == before

    done = project.inv("pin", "--variant", "embedded")
    assert done.returncode == 0, done.stderr
    expected = before.replace('digest = "unset"', f'digest = "{digest}"').replace(OLD, NEW)
    expected = expected.replace('"linux/amd64" = "unset"', f'"linux/amd64" = "{"a" * 64}"')
    assert (project.root / SOURCES).read_text() == expected

    again = project.inv("pin")
    assert again.stdout.splitlines() == [f"{SOURCES}: everything is the newest"]

    moved = push(open_host, "two")
    assert project.inv("pin").stdout.splitlines() == [
        f"{SOURCES}: base.digest: {digest} -> {moved}"
    ]


def test_pin_computes_what_is_not_published(
    project: SmallProject, open_host: str, site: Site
) -> None:
    """A site without a page, or a page without hashes: the file itself is hashed."""
    push(open_host, "one")
    site.put(f"/miniconda/{OLD.format(arch='x86_64')}", INSTALLER)
    done = project.inv("pin")
    assert done.returncode == 0, done.stderr
    assert "has no list of installers: the version stays" in done.stdout
    assert hashlib.sha256(INSTALLER).hexdigest() in (project.root / SOURCES).read_text()


def test_pin_says_what_could_not_be_asked(
    project: SmallProject, open_host: str, site: Site
) -> None:
    """Exit code 4, nothing written: no such tag, a list without such a file, a site in trouble."""
    before = (project.root / SOURCES).read_text()
    no_tag = project.inv("pin")
    assert (no_tag.returncode, "the registry has no such image" in no_tag.stderr) == (4, True)
    push(open_host, "one")
    site.put("/miniconda/", page("Miniconda3-py39_25.9.1-3-Linux-{arch}.sh"))
    no_file = project.inv("pin")
    assert (no_file.returncode, f"lists no {OLD} for linux/amd64" in no_file.stderr) == (4, True)
    site.put("/miniconda/", Answer(status=503))
    trouble = project.inv("pin")
    assert (trouble.returncode, "503 Service Unavailable" in trouble.stderr) == (4, True)
    assert (project.root / SOURCES).read_text() == before
