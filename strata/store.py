"""The engine's image store: which images are there, and what they are made of."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from strata.errors import BuildError, HostError
from strata.oci import read_layers
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Collection

    import docker

    from strata.engine import Engine
    from strata.oci import LayerBlob


CHUNK = 1 << 20  # bytes


def list_images(engine: Engine) -> dict[str, str]:
    """Return the digest of every tagged image in the engine's store, by `NAME:TAG`.

    In containerd's store an image's id is the digest of its manifest.  The
    client is asked, not the SDK, which takes longer to import than this takes.
    """
    listing = run(
        ["docker", "image", "ls", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}"],
        error=HostError,
        where=f"Docker engine at {engine.host} ({engine.origin})",
        fix="docker version says whether it answers",
        env=engine.env,
        quiet=True,
    )
    pairs = (line.rsplit(" ", 1) for line in listing.splitlines())
    return {ref: digest for ref, digest in pairs if "<none>" not in ref}


class Store:
    """What the engine holds, asked through the Docker SDK."""

    def __init__(self, sdk: docker.DockerClient) -> None:
        """Use this client; whoever made it closes it."""
        self.sdk = sdk

    def tag(self, ref: str, alias: str) -> None:
        """Give the image `ref` the second name `alias`."""
        repository, _, tag = alias.rpartition(":")
        self.sdk.api.tag(ref, repository, tag)

    def layer_count(self, digest: str) -> int:
        """Return how many layers an image has."""
        return len(self.sdk.images.get(digest).attrs["RootFS"]["Layers"])

    def layers(self, digests: Collection[str]) -> dict[str, tuple[LayerBlob, ...]]:
        """Return the layers, lowest first, of the images with these digests.

        Raises `BuildError` for an image that the engine does not save.
        """
        if not digests:
            return {}
        api = self.sdk.api  # a requests session; the SDK itself saves one image at a time
        url = f"{api.base_url}/v{api.api_version}/images/get"
        with api.get(url, params={"names": sorted(digests)}, stream=True) as answer:
            answer.raise_for_status()
            try:
                found = read_layers(answer.iter_content(CHUNK))
            except tarfile.TarError as broken:
                what = f"the engine broke off while it saved images: {broken}"
                raise BuildError.at(url, what, "run it again") from None
        for digest in set(digests) - set(found):
            raise BuildError.at(digest, "the engine did not save this image", "./inv build")
        return found
