"""Reading images as an engine saves them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from typing import TYPE_CHECKING

import pytest
import zstandard

from strata.oci import LayerBlob, read_layers

if TYPE_CHECKING:
    from collections.abc import Callable


def archive(*files: tuple[str, bytes]) -> bytes:
    """Return a tar archive of some files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def digest_of(blob: bytes) -> str:
    """Return a blob's digest."""
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def manifest(*layers: bytes) -> bytes:
    """Return the manifest of an image of these layers."""
    config = digest_of(b'{"config": 1}')
    entries = [{"digest": digest_of(layer)} for layer in layers]
    return json.dumps({"config": {"digest": config}, "layers": entries}).encode()


def layout(*blobs: bytes) -> bytes:
    """Return the saved stream: all blobs by digest, and the files of the layout."""
    return archive(
        ("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'),
        *((f"blobs/sha256/{digest_of(blob)[7:]}", blob) for blob in blobs),
        ("index.json", b'{"manifests": []}'),
    )


FILES = archive(("a", b"x" * 1000), ("b/c", b"y" * 50_000))
UPPER = archive(("d", b"z"))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip": gzip.compress,
    "none": bytes,
}


@pytest.mark.parametrize("packing", PACKERS)
def test_layers_are_read_however_they_are_packed(packing: str) -> None:
    """Their sizes are the bytes to pull and the bytes of the files."""
    lower, upper = PACKERS[packing](FILES), PACKERS[packing](UPPER)
    image = manifest(lower, upper)
    assert read_layers([layout(upper, b'{"config": 1}', image, lower)]) == {
        digest_of(image): (
            LayerBlob(digest=digest_of(lower), compressed=len(lower), unpacked=51_000),
            LayerBlob(digest=digest_of(upper), compressed=len(upper), unpacked=1),
        )
    }


def test_several_images_share_their_layers() -> None:
    """Each has its own, from the lowest on."""
    lower, upper = zstandard.compress(FILES), zstandard.compress(UPPER)
    small, large = manifest(lower), manifest(lower, upper)
    found = read_layers([layout(lower, upper, small, large)])
    assert {digest: len(layers) for digest, layers in found.items()} == {
        digest_of(small): 1,
        digest_of(large): 2,
    }


def test_the_stream_may_come_in_any_pieces() -> None:
    """As the network has it: nothing is read twice, and empty pieces are none."""
    blob = zstandard.compress(FILES)
    stream = layout(blob, manifest(blob))
    whole = read_layers([stream])
    pieces = (stream[at : at + 777] for at in range(0, len(stream), 777))
    assert read_layers(part for piece in pieces for part in (b"", piece)) == whole
    assert len(whole) == 1


def test_every_entry_can_be_looked_at() -> None:
    """With the digest of its layer, and its content."""
    blob = zstandard.compress(FILES)
    seen: list[tuple[str, str, bytes]] = []
    read_layers(
        [layout(blob, manifest(blob))],
        lambda digest, entry, file: seen.append((digest, entry.name, file.read() if file else b"")),
    )
    assert seen == [(digest_of(blob), "a", b"x" * 1000), (digest_of(blob), "b/c", b"y" * 50_000)]


def test_an_attestation_is_no_image() -> None:
    """Its manifest has layers, too, but they are documents."""
    document = b'{"predicateType": "https://slsa.dev/provenance/v0.2"}'
    blob = gzip.compress(FILES)
    image = manifest(blob)
    found = read_layers([layout(document, manifest(document), blob, image)])
    assert list(found) == [digest_of(image)]


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_a_stream_that_breaks_off_is_no_image(pack: Callable[[bytes], bytes]) -> None:
    """Half an image is told, and never taken for a whole one."""
    blob = pack(archive(*((str(number), os.urandom(30_000)) for number in range(3))))
    stream = layout(manifest(blob), blob)
    with pytest.raises(tarfile.ReadError, match="unexpected end"):
        read_layers([stream[: len(stream) // 2]])
