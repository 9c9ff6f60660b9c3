"""`fetch` where there is a network, `build --from` where there is none, and secret mirrors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e.registry import docker_config, open_host
from tests.e2e.tiny import TinyProject, make_tiny_project, remove_images, tiny_base
from tests.packages.site import Site, serve_site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from docker import DockerClient

    from strata.engine import Engine

__all__ = ["docker_config", "open_host"]

SOURCES = "locks/embedded/sources.toml"
# What apt does, with the means of the tiny base: it gets a file of Ubuntu's archive by the
# proxy that the environment names, and fails where the file isn't what it should be.
ARCHIVE = """\
FROM parent
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG COLOUR
RUN <<'END'
echo "$COLOUR" > /colour
proxy=${http_proxy#http://}
address=${proxy#*@}
token=$(printf '%s' "${proxy%@*}" | base64 --wrap=0)
exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
printf 'GET http://archive.ubuntu.com/ubuntu/dists/noble/InRelease HTTP/1.0\\r\\n' >&3
printf 'Proxy-Authorization: Basic %s\\r\\n\\r\\n' "$token" >&3
answer=$(cat <&3)
[[ $answer == *"200 OK"*"signed by Ubuntu" ]] || { echo "$answer" >&2; exit 1; }
END
"""
PAIR = "strata/pair:embedded"
SECRET = "s3cr3t-of-the-mirror"  # noqa: S105  # it is looked for


@pytest.fixture
def site() -> Iterator[Site]:
    """Serve the archive's mirror on loopback."""
    with serve_site() as served:
        served.put("/apt/dists/noble/InRelease", b"signed by Ubuntu")
        yield served


@pytest.fixture
def project(
    tmp_path: Path, engine: Engine, docker_client: DockerClient, open_host: str
) -> Iterator[TinyProject]:
    """Make the tiny project on a base of the registry, with a layer that fetches."""
    made = make_tiny_project(tmp_path, engine.env)
    base = f"{open_host}/base"
    docker_client.api.import_image_from_data(tiny_base(), repository=base, tag="1")
    try:
        docker_client.images.push(base, "1")
        digest = docker_client.images.get(f"{base}:1").id
    finally:
        docker_client.images.remove(f"{base}:1", force=True)
    made.replace(
        SOURCES,
        'suite = "bookworm"\ninclude = ["python3"]\n',
        f'image = "{base}:1"\ndigest = "{digest}"\n',
    )
    made.write("layers/10-one/Dockerfile", ARCHIVE)
    yield made
    remove_images(docker_client)


def holders(secret: str, *folders: Path) -> list[Path]:
    """Return the files below the folders that hold a secret."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if secret.encode() in path.read_bytes()]


def test_mirrors_fetch_and_a_build_without_network(
    project: TinyProject,
    site: Site,
    tmp_path: Path,
    docker_client: DockerClient,
    open_host: str,
) -> None:
    """The build by the mirror leaves no secret; the one from the folder asks nobody."""
    assert open_host
    mirrors = tmp_path / "mirrors.toml"
    address = site.address.replace("http://", "http://ada:$APT_PASSWORD@")
    mirrors.write_text(f'apt = "{address}/apt"\n')
    # The company's proxy: what this machine has itself is not asked by it.
    proxy = f"http://ada:{SECRET}@127.0.0.1:9"
    env = {"STRATA_MIRRORS": str(mirrors), "APT_PASSWORD": SECRET, "STRATA_PROXY": proxy}

    code, out, err = project.build("--no-check", "--image", "pair", env=env)
    assert code == 0, err
    headers = dict(site.asked)["/apt/dists/noble/InRelease"]
    assert headers["authorization"].startswith("Basic ")

    history = subprocess.run(
        ["docker", "history", "--no-trunc", PAIR],
        env={**os.environ, **project.env},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    image = docker_client.images.get(PAIR)
    base = image.attrs["RootFS"]["Layers"][0]
    said = [out, err, history, json.dumps(image.attrs)]
    saved = b"".join(image.save()).decode("latin-1")
    passwords = [SECRET, "STRATA_RELAY=", "http://strata:"]
    assert [text for text in passwords for where in (*said, saved) if text in where] == []
    assert holders(SECRET, project.root) == []
    assert "${STRATA_RELAY}" in (project.root / "build/bake-embedded.json").read_text()

    folder = tmp_path / "carried"
    done = project.inv("fetch", "--image", "pair", "--to", str(folder), env={**project.env, **env})
    assert done.returncode == 0, done.stderr
    assert "written down: 1 downloads of 10-one" in done.stdout
    assert holders(SECRET, folder, project.root) == []

    # Another machine, in a closed network: no image, no cache, no registry, no archive.
    remove_images(docker_client)
    shutil.rmtree(project.root / "build")
    site.answers.clear()
    asked = len(site.asked)
    closed = {"STRATA_REGISTRY_MIRROR": "127.0.0.1:9", "STRATA_PROXY": "http://127.0.0.1:9"}
    code, _, err = project.build("--no-check", "--image", "pair", "--from", str(folder), env=closed)
    assert code == 0, err
    assert docker_client.images.get(PAIR).attrs["RootFS"]["Layers"][0] == base
    assert len(site.asked) == asked

    # What was not written down does not exist, and what is pinned otherwise is refused.
    table = folder / "http.json"
    table.write_text(json.dumps({"schema": "strata.http/1", "urls": {}}))
    project.mark()
    code, _, err = project.build("--no-check", "--image", "pair", "--from", str(folder), env=closed)
    assert (code, "404" in err, "it was not fetched" in err) == (4, True, True)
    project.replace(SOURCES, "epoch = 17", "epoch = 18")
    code, _, err = project.build("--no-check", "--image", "pair", "--from", str(folder), env=closed)
    assert (code, f"{SOURCES}: is not the one that {folder} was filled for" in err) == (3, True)
