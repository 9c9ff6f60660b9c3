"""All files of a variant at once, from servers or from a folder that was carried along."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from strata.embedded.base import checksum_file
from strata.errors import BuildError, DefinitionError, LockError
from strata.model import ImageBase, Variant
from strata.upstream.base import base_context, carry_base
from strata.upstream.carried import carried_tarball, open_folder, unpack_folder
from strata.upstream.download import Wanted
from strata.upstream.fetch import fetch
from strata.workspace import Workspace
from tests.packages.site import Site, serve_site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG, LAYER = b'{"os": "linux"}', b"a layer"


@pytest.fixture
def site() -> Iterator[Site]:
    """Serve on loopback."""
    with serve_site() as served:
        yield served


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Name three folders; none is there yet."""
    return Workspace(root=tmp_path / "root", build=tmp_path / "build", cache=tmp_path / "cache")


def sha256(content: bytes) -> str:
    """Return the hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def wanted(name: str, url: str, content: bytes) -> Wanted:
    """Describe a file that is pinned to a content."""
    where = "locks/cpu/conda-lock.yml"
    return Wanted(name=name, url=url, sha256=sha256(content), where=where, repin="./inv lock")


def test_all_failures_are_told_and_the_rest_is_kept(site: Site, workspace: Workspace) -> None:
    """Exit code 3, as one file is another one; the next run asks for what is missing alone."""
    good = wanted("good", site.put("/good", b"good"), b"good")
    wrong = wanted("wrong", site.put("/wrong", b"altered"), b"wrong")
    gone = replace(wanted("gone", f"{site.address}/gone", b"gone"), layer="30-pytorch")
    with pytest.raises(LockError) as failure:
        fetch(workspace, [good, gone, wrong])
    assert [problem.what.splitlines()[0] for problem in failure.value.problems] == [
        f"{site.address}/gone answers 404 Not Found",
        "wrong is not the file that is pinned",
    ]
    assert [problem.where for problem in failure.value.problems] == [
        "layers/30-pytorch: gone",
        "locks/cpu/conda-lock.yml",
    ]
    site.put("/wrong", b"wrong")
    site.put("/gone", b"gone")
    site.asked.clear()
    files = fetch(workspace, [good, wrong, gone])
    assert [files[sha256(text)].read_bytes() for text in (b"good", b"wrong", b"gone")] == [
        b"good",
        b"wrong",
        b"gone",
    ]
    assert sorted(site.paths()) == ["/gone", "/wrong"]


def carried(workspace: Workspace, *contents: bytes) -> Workspace:
    """Return the workspace with a folder that holds these files."""
    folder = workspace.root / "carried"
    (folder / "files").mkdir(parents=True)
    for content in contents:
        (folder / "files" / sha256(content)).write_bytes(content)
    return Workspace(
        root=workspace.root, build=workspace.build, cache=workspace.cache, carried=folder
    )


def test_a_carried_folder_is_asked_and_nobody_else(site: Site, workspace: Workspace) -> None:
    """What it lacks is told, exit code 4, and not looked for elsewhere."""
    offline = carried(workspace, b"here")
    here = wanted("here", site.put("/here", b"here"), b"here")
    there = wanted("there", site.put("/there", b"there"), b"there")
    assert fetch(offline, [here])[here.sha256].read_bytes() == b"here"
    with pytest.raises(BuildError) as failure:
        fetch(offline, [here, there])
    (problem,) = failure.value.problems
    assert (problem.where, problem.what) == ("there", f"is not in {offline.carried}")
    assert site.asked == []


def test_a_damaged_file_of_a_carried_folder_is_refused(workspace: Workspace) -> None:
    """Its name is its hash: exit code 3, and nothing of it gets into the cache."""
    offline = carried(workspace, b"here")
    (workspace.root / "carried/files" / sha256(b"here")).write_bytes(b"altered")
    with pytest.raises(LockError, match="here is not the file that is pinned"):
        fetch(offline, [wanted("here", "https://h.invalid/", b"here")])
    assert [path.name for path in (workspace.cache / "files").iterdir()] == [".lock"]


def variant(folder: Path, base: ImageBase) -> Variant:
    """Return a variant on a base of a registry."""
    return Variant(
        name="cpu",
        folder=folder,
        platforms=("linux/amd64",),
        epoch=0,
        base=base,
        args={},
        left_out={},
    )


def registry_with(site: Site, **changed: bytes) -> ImageBase:
    """Put an image for two platforms on the site, as a registry has it, some of it altered."""
    names = {"config": CONFIG, "layer": LAYER}
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "config": {"digest": f"sha256:{sha256(CONFIG)}", "size": len(CONFIG)},
            "layers": [{"digest": f"sha256:{sha256(LAYER)}", "size": len(LAYER)}],
        }
    ).encode()
    arm = b'{"schemaVersion": 2}'
    entries = [
        {
            "digest": f"sha256:{sha256(content)}",
            "platform": {"os": "linux", "architecture": architecture},
        }
        for content, architecture in ((arm, "arm64"), (manifest, "amd64"))
    ]
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
    digest = f"sha256:{sha256(index)}"
    site.put(f"/v2/base/manifests/{digest}", changed.get("index", index))
    site.put(f"/v2/base/manifests/sha256:{sha256(manifest)}", changed.get("manifest", manifest))
    for name, content in names.items():
        site.put(f"/v2/base/blobs/sha256:{sha256(content)}", changed.get(name, content))
    return ImageBase(image=f"{site.address.removeprefix('http://')}/base:1", digest=digest)


def test_a_base_is_carried_as_an_oci_layout(
    site: Site, workspace: Workspace, tmp_path: Path
) -> None:
    """Index, manifest, configuration and layers of the platform; what others need is left."""
    base = registry_with(site)
    folder = tmp_path / "to"
    layout = carry_base(workspace, variant(tmp_path, base), base, folder, "linux/amd64")
    index = json.loads((layout / "index.json").read_text())
    assert [(one["digest"], one["mediaType"]) for one in index["manifests"]] == [
        (base.digest, INDEX)
    ]
    blobs = {blob.name: blob.read_bytes() for blob in (layout / "blobs/sha256").iterdir()}
    assert len(blobs) == 4
    assert all(sha256(content) == name for name, content in blobs.items())
    assert {CONFIG, LAYER} <= set(blobs.values())
    online = Workspace(root=tmp_path, build=tmp_path, cache=tmp_path)
    found = base_context(online, variant(tmp_path, base), "linux/amd64")
    cached = tmp_path / "base" / base.digest.removeprefix("sha256:")
    assert found == f"oci-layout://{cached}@{base.digest}"
    assert sorted(blob.name for blob in (cached / "blobs/sha256").iterdir()) == sorted(blobs)
    site.answers.clear()
    offline = Workspace(root=tmp_path, build=tmp_path, cache=tmp_path, carried=folder)
    found = base_context(offline, variant(tmp_path, base), "linux/amd64")
    assert found == f"oci-layout://{layout}@{base.digest}"

    asked = len(site.asked)
    base_context(online, variant(tmp_path, base), "linux/amd64")
    assert len(site.asked) == asked  # whole in the cache: nobody is asked
    (layout / "blobs/sha256" / sha256(LAYER)).write_bytes(b"altered")
    with pytest.raises(BuildError, match="is not there, or damaged"):
        base_context(offline, variant(tmp_path, base), "linux/amd64")


@pytest.mark.parametrize("part", ["index", "manifest", "layer"])
def test_another_base_under_the_same_digest_is_refused(
    site: Site, workspace: Workspace, tmp_path: Path, part: str
) -> None:
    """Whichever of its parts is another one: exit code 3, and no layout is made."""
    base = registry_with(site, **{part: b"altered"})
    with pytest.raises(LockError) as failure:
        carry_base(workspace, variant(tmp_path, base), base, tmp_path / "to", "linux/amd64")
    assert failure.value.problems[0].where == "locks/cpu/sources.toml"
    offline = Workspace(root=tmp_path, build=tmp_path, cache=tmp_path, carried=tmp_path / "to")
    with pytest.raises(BuildError, match="is not there"):
        base_context(offline, variant(tmp_path, base), "linux/amd64")


def test_a_base_that_cannot_be_had_fails_the_build(
    site: Site, workspace: Workspace, tmp_path: Path
) -> None:
    """No such image, or none for the platform: exit code 4."""
    base = registry_with(site)
    with pytest.raises(BuildError, match="has no linux/riscv64"):
        carry_base(workspace, variant(tmp_path, base), base, tmp_path / "to", "linux/riscv64")
    site.answers.clear()
    with pytest.raises(BuildError, match="the registry has no such image"):
        carry_base(workspace, variant(tmp_path, base), base, tmp_path / "to", "linux/amd64")


def test_a_folder_that_fetch_has_not_filled_is_refused(
    workspace: Workspace, tmp_path: Path
) -> None:
    """An empty one, one for another variant, one for another lock: with exit codes 2, 2 and 3."""
    lock = workspace.root / "locks/cpu/conda-lock.yml"
    lock.parent.mkdir(parents=True)
    lock.write_text("new")
    with pytest.raises(DefinitionError, match="is no folder that"):
        open_folder(workspace, str(tmp_path), "cpu")
    table = {"schema": "strata.carried/1", "variants": {"cpu": {"conda-lock.yml": "old"}}}
    (tmp_path / "carried.json").write_text(json.dumps(table))
    with pytest.raises(DefinitionError, match="holds nothing for cuda129"):
        open_folder(workspace, str(tmp_path), "cuda129")
    with pytest.raises(LockError) as failure:
        open_folder(workspace, str(tmp_path), "cpu")
    assert failure.value.problems[0].where == "locks/cpu/conda-lock.yml"


def test_wheels_and_the_made_base_come_from_the_folder(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Wheels where pip's are kept, none over another; the base only while it is whole."""
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/a-1-py3-none-any.whl").write_text("a")
    unpack_folder(workspace, tmp_path)
    unpack_folder(workspace, tmp_path)
    assert (workspace.cache / "wheels/a-1-py3-none-any.whl").read_text() == "a"
    tar = tmp_path / "base/base.tar"
    tar.parent.mkdir()
    tar.write_bytes(b"base")
    with pytest.raises(BuildError, match="is missing or damaged"):
        carried_tarball(tmp_path)
    checksum_file(tar).write_text(f"{sha256(b'base')}  base.tar\n")
    assert carried_tarball(tmp_path) == tar
