"""A folder is filled from servers, and a build's contexts are laid out from it without them."""

from __future__ import annotations

import hashlib
import os
import zipfile
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

import strata.contexts
import strata.upstream.carry
from strata.contexts import make_contexts
from strata.errors import BuildError
from strata.upstream.carried import open_folder
from strata.upstream.carry import fill_folder
from strata.workspace import Workspace
from tests.packages.site import Site, serve_site
from tests.packages.test_fetch import registry_with
from tests.projects import CHANNEL, SmallProject, make_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENV = "10-one_20-two_30-env"
SOURCES = "locks/embedded/sources.toml"
INSTALLER = b"#!/bin/sh\n"
PACKAGES = ("library-1.0-h0_0.conda", "tool-1.0-h0_0.conda")


@pytest.fixture
def site() -> Iterator[Site]:
    """Serve on loopback."""
    with serve_site() as served:
        yield served


@pytest.fixture
def project(tmp_path: Path, site: Site) -> SmallProject:
    """Make a project whose base, packages and installer are all on the site."""
    made = make_project(tmp_path / "project")
    base = registry_with(site)
    made.replace(
        SOURCES,
        'suite = "bookworm"\ninclude = ["python3"]\n',
        f'image = "{base.image}"\ndigest = "{base.digest}"\n'
        f'[installer]\nurl = "{site.put("/conda.sh", INSTALLER)}"\n'
        f'[installer.sha256]\n"linux/amd64" = "{hashlib.sha256(INSTALLER).hexdigest()}"\n',
    )
    made.replace("layers/20-two/layer.toml", "summary", "installer = true\nsummary")
    text = made.lock.read_text().replace(CHANNEL, f"{site.address}/channel/")
    for name in PACKAGES:
        site.put(f"/channel/linux-64/{name}", name.encode())
        text = text.replace(name[0].encode().hex() * 32, hashlib.sha256(name.encode()).hexdigest())
    made.lock.write_text(text)
    return made


def test_what_fetch_brings_is_what_a_build_takes(
    project: SmallProject, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packages, installer and base: from servers into the folder, then without any server."""
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, "as it was")  # so that it is put back
    carry = strata.upstream.carry
    wheel = tmp_path / "rattler.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("rattler/__init__.py", "")
    monkeypatch.setattr(carry, "fetch_rattler", lambda *_: wheel)
    monkeypatch.setattr(carry, "installer_python", lambda *_: ())
    monkeypatch.setattr(carry, "ensure_engine", lambda *_: (None, None))
    monkeypatch.setattr(carry, "open_store", lambda *_: nullcontext())
    monkeypatch.setattr(carry, "build", lambda *_: None)
    monkeypatch.setattr(carry, "record_network", lambda *_: ())
    monkeypatch.setattr(strata.contexts, "installer_python", lambda *_: ())
    cached = tmp_path / "empty/wheels/rattler.whl"
    monkeypatch.setattr(strata.contexts, "fetch_rattler", lambda *_: cached)
    folder = tmp_path / "folder"
    online = Workspace(root=project.root, build=tmp_path / "build", cache=tmp_path / "cache")
    plan = project.plan()
    fill_folder(online, plan, folder)
    site.answers.clear()
    asked = len(site.asked)

    closed = Workspace(root=project.root, build=tmp_path / "build", cache=tmp_path / "empty")
    offline = open_folder(closed, str(folder), "embedded")
    assert (os.environ["PIP_NO_INDEX"], os.environ["PIP_FIND_LINKS"]) == ("1", f"{folder}/wheels")
    names = {step.name for step in plan.steps}
    contexts = make_contexts(offline, plan, names)
    packages = contexts.steps[ENV] / "packages"
    assert {path.name: path.read_text() for path in packages.iterdir()} == {
        name: name for name in PACKAGES
    }
    assert (contexts.rattler / "rattler/__init__.py").is_file()
    assert (contexts.installer / "miniconda.sh").read_bytes() == INSTALLER
    assert len(site.asked) == asked

    lost = hashlib.sha256(PACKAGES[1].encode()).hexdigest()
    (folder / "files" / lost).unlink()
    (closed.cache / "files" / lost).unlink()
    with pytest.raises(BuildError, match=f"{PACKAGES[1]}: is not in {folder}"):
        make_contexts(offline, plan, names)
