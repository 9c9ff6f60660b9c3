"""The engine's image store: which images are there, and what they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.errors import BuildError
from strata.oci import read_layers

if TYPE_CHECKING:
    from collections.abc import Collection

    import docker

    from strata.oci import LayerBlob


CHUNK = 1 << 20  # bytes


class Store:
    """What the engine holds, asked through the Docker SDK."""

    def __init__(self, sdk: docker.DockerClient) -> None:
        """Use this client; whoever made it closes it."""
        self.sdk = sdk

    def digests(self) -> dict[str, str]:
        """Return the digest of every tagged image, by `NAME:TAG`.

        In containerd's store an image's id is the digest of its manifest.
        """
        found = self.sdk.api.images()
        return {ref: image["Id"] for image in found for ref in image["RepoTags"] or ()}

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
            found = read_layers(answer.iter_content(CHUNK))
        for digest in set(digests) - set(found):
            raise BuildError.at(digest, "the engine did not save this image", "./inv build")
        return found
