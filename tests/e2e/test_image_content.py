"""What the layers of the built images hold, down to those that later layers hide (I5, S4)."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from strata.oci import LayerBlob, read_layers

if TYPE_CHECKING:
    import tarfile
    from typing import IO

    from docker import DockerClient

    from strata.engine import Engine
    from tests.e2e.boxes import Boxes, Image

IMAGES = ["train", "lab", "remote", "dev", "slim"]
FORBIDDEN = {
    "package cache": r"^opt/(\.pkgs|conda/pkgs|env/pkgs)/|\.(conda|whl|deb)$",
    "apt list": r"^var/lib/apt/lists/(?!partial$|auxfiles$|(\.wh\.)?lock$)|^var/cache/apt/.*\.bin$",
    "cache of pip's or a user's": r"^(root|home/[^/]+)/\.(cache|conda|config|local)(/|$)",
    "log": r"^var/log/.*(log|\.gz|tmp)$",
    "key": r"ssh_host_|(^|/)host_(ed25519|rsa)|(^|/)authorized_keys|(^|/)id_[a-z0-9]+$",
    "backup": r"^etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|^var/lib/dpkg/.*-old$",
    "history": r"^(root|home/[^/]+)/\.(bash_history|python_history|wget-hsts|jupyter|ipython)",
    "mount of the build": r"^mnt/.",
}
# A fixed part, found quickly in gigabytes, and all of it.
SECRETS = {
    "private key": (
        b" PRIVATE KEY",
        rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----\s+[A-Za-z0-9+/=:\s]{64}",
    ),
    "AWS key": (b"AKIA", rb"\bAKIA[0-9A-Z]{16}\b"),
    "Anthropic or OpenAI key": (b"sk-", rb"\bsk-(?:ant|proj)-[A-Za-z0-9_-]{32}"),
    "GitHub token": (b"gh", rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60})"),
    "GitLab token": (b"glpat-", rb"\bglpat-[A-Za-z0-9_-]{20}\b"),
    "Hugging Face token": (b"hf_", rb"\bhf_[A-Za-z]{34}\b"),
    "PyPI token": (b"pypi-AgEI", rb"\bpypi-AgEI[A-Za-z0-9_-]{50}"),
}
# What everybody has: the keys by which a library tests itself.
PUBLIC = re.compile(r"/tornado/test/test\.key$|/libgnutls\.so\.[0-9.]+$")
LARGEST = 16 << 20  # bytes of a file that is looked into: larger ones are compiled libraries
SIZES = r"find / -xdev -type f -printf '%i %s\n' | sort -u | awk '{ sum += $2 } END { print sum }'"


@dataclass(frozen=True)
class Content:
    """The images' layers, lowest first, by image name, and each layer's entries by its digest."""

    layers: dict[str, tuple[LayerBlob, ...]]
    entries: dict[str, list[tarfile.TarInfo]]
    secrets: dict[str, list[str]]

    def all(self) -> list[tuple[str, tarfile.TarInfo]]:
        """Return every entry of every layer, with its path."""
        return [(path(entry), entry) for entries in self.entries.values() for entry in entries]


def path(entry: tarfile.TarInfo) -> str:
    """Return an entry's path, without a leading ./ or /."""
    return entry.name.removeprefix("./").strip("/")


def kinds_of_secrets(text: bytes) -> list[str]:
    """Return the kinds of secrets that a file's content has."""
    found = [(kind, pattern) for kind, (part, pattern) in SECRETS.items() if part in text]
    return [kind for kind, pattern in found if re.search(pattern, text)]


@pytest.fixture(scope="module")
def content(engine: Engine, docker_client: DockerClient, image: Image) -> Content:
    """Read all images as `docker save` gives them; what they share is read once."""
    digests = {name: docker_client.images.get(image(name)).id for name in IMAGES}
    entries: dict[str, list[tarfile.TarInfo]] = defaultdict(list)
    secrets: dict[str, list[str]] = defaultdict(list)

    def visit(digest: str, entry: tarfile.TarInfo, file: IO[bytes] | None) -> None:
        entries[digest].append(entry)
        if file is not None and entry.size <= LARGEST:
            for kind in kinds_of_secrets(file.read()):
                secrets[kind].append(path(entry))

    argv = ["docker", "save", *(image(name) for name in IMAGES)]
    with subprocess.Popen(argv, env={**os.environ, **engine.env}, stdout=subprocess.PIPE) as save:
        stream = iter(lambda: save.stdout.read(1 << 20), b"")  # type: ignore[union-attr]
        layers = read_layers(stream, visit)
    assert save.returncode == 0
    by_image = {name: layers[str(digest)] for name, digest in digests.items()}
    return Content(by_image, dict(entries), dict(secrets))


def test_everything_was_read(content: Content) -> None:
    """Each image has its layers, and the walk below has seen their files."""
    assert all(len(layers) >= 5 for layers in content.layers.values())
    paths = {name for name, _ in content.all()}
    assert {"usr/bin/tini", "opt/env/bin/jupyter", "usr/sbin/sshd"} <= paths


@pytest.mark.parametrize("name", IMAGES)
def test_nothing_is_carried_twice(boxes: Boxes, content: Content, name: str) -> None:
    """An image's unpacked layers are at most 1.15 times what a container of it sees (case I5)."""
    done = boxes.once(
        name, "--user", "0", "--network", "none", "--entrypoint", "sh", command=("-c", SIZES)
    )
    assert done.code == 0, done.err
    final = int(done.out)
    unpacked = sum(layer.unpacked for layer in content.layers[name])
    assert final > 500_000_000
    assert unpacked <= 1.15 * final, f"{unpacked / final:.3f}"


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_no_leftover(content: Content, kind: str) -> None:
    """No layer holds one, not even one that a later layer removes (an empty lock file is none)."""
    pattern = re.compile(FORBIDDEN[kind])
    files = [name for name, entry in content.all() if not entry.isdir() and entry.size]
    assert [name for name in files if pattern.search(name)] == []


@pytest.mark.parametrize("kind", SECRETS)
def test_no_secret(content: Content, kind: str) -> None:
    """No file of any layer holds one, not even one that a later layer removes (case S4)."""
    found = content.secrets.get(kind, [])
    assert [name for name in found if not PUBLIC.search(name)] == []


def test_a_secret_is_found() -> None:
    """Keys and tokens would be found: some of each kind's shape are."""
    key = f"-----BEGIN OPENSSH {'PRIVATE KEY'}-----\n{'b3BlbnNz' * 9}\n".encode()
    texts = [key, b"AKIA" + b"A1" * 8, b"x=ghp_" + b"a" * 36, b"sk-ant-" + b"a" * 32]
    texts += [b"glpat-" + b"a" * 20, b"hf_" + b"a" * 34, b"pypi-AgEI" + b"a" * 50]
    found = [kind for text in texts for kind in kinds_of_secrets(b"\0" + text + b"\n")]
    assert sorted(found) == sorted(SECRETS)


def test_keys_that_everybody_has(content: Content) -> None:
    """The layers were looked into: the one public test key that packages bring was found."""
    names = {name.rpartition("site-packages/")[2] for name in content.secrets["private key"]}
    assert "tornado/test/test.key" in names


def test_compiled_once(content: Content) -> None:
    """No compiled module is in two layers of an image."""
    for layers in content.layers.values():
        counts = Counter(
            path(entry)
            for layer in layers
            for entry in content.entries.get(layer.digest, [])
            if entry.name.endswith(".pyc")
        )
        assert len(counts) > 1000
        assert [name for name, count in counts.items() if count > 1] == []


def test_no_program_changes_its_user(content: Content) -> None:
    """In what a container sees there is no setuid and no setgid program, in any folder."""
    for layers in content.layers.values():
        final: dict[str, int] = {}
        for layer in layers:
            for entry in content.entries.get(layer.digest, []):
                final[path(entry)] = entry.mode if entry.isfile() else 0
        assert [name for name, mode in final.items() if mode & 0o6000] == []


def test_no_layer_of_ours_brings_such_a_program(content: Content) -> None:
    """But for the base's own layer, no layer ever had a setuid or setgid program."""
    for layers in content.layers.values():
        entries = [entry for it in layers[1:] for entry in content.entries.get(it.digest, [])]
        special = [path(it) for it in entries if it.isfile() and it.mode & 0o6000]
        assert special == []


def test_nothing_is_newer_than_the_epoch(content: Content, docker_client: DockerClient) -> None:
    """No entry is newer than the variant's epoch: else two builds would differ."""
    labels = docker_client.images.get("strata/train:embedded").labels
    epoch = datetime.fromisoformat(labels["org.opencontainers.image.created"]).timestamp()
    assert [name for name, entry in content.all() if entry.mtime > epoch] == []


def test_images_share_their_layers(content: Content) -> None:
    """What two images have in common is the same layers, so that it is pulled once."""
    train = content.layers["train"]
    assert content.layers["slim"] == train
    for name in ("lab", "remote", "dev"):
        assert content.layers[name][: len(train)] == train
