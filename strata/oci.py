"""Reads images as an engine saves them: an OCI image layout in one tar stream.

The engine's API tells neither the digests of an image's layers nor their
compressed sizes (OCI image specification, "Image Layout").
"""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO

BLOBS = "blobs/sha256/"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
GZIP_MAGIC = b"\x1f\x8b"
TAR_MAGIC = b"ustar"
TAR_MAGIC_AT = 257
TAR_HEADER = 512
Compression = Literal["gzip", "none", "zstd"]


@dataclass(frozen=True, kw_only=True)
class LayerBlob:
    """One layer: its digest, its bytes as pulled, and the bytes of its files unpacked."""

    digest: str
    compressed: int
    unpacked: int


def read_layers(
    chunks: Iterable[bytes],
    visit: Callable[[str, tarfile.TarInfo, IO[bytes] | None], None] | None = None,
) -> dict[str, tuple[LayerBlob, ...]]:
    """Return the layers, lowest first, of each image in a saved stream, by manifest digest.

    A layer that several images share is read once.  What is no image (an
    attestation has a manifest, too) is passed over.  `visit` is called with the
    layer's digest, each entry of it, and the entry's content where it is a file.
    """
    documents: dict[str, Any] = {}
    layers: dict[str, LayerBlob] = {}
    with tarfile.open(fileobj=io.BufferedReader(_Stream(iter(chunks))), mode="r|") as layout:
        for member in layout:
            file = layout.extractfile(member) if member.isfile() else None
            if file is None or not member.name.startswith(BLOBS):
                continue
            digest = f"sha256:{member.name.removeprefix(BLOBS)}"
            head = file.peek(TAR_HEADER)  # type: ignore[attr-defined]  # it is a BufferedReader
            if mode := _mode_of(head):
                with open_layer(file, mode) as entries:
                    unpacked = 0
                    for entry in entries:
                        unpacked += entry.size
                        if visit is not None:
                            content = entries.extractfile(entry) if entry.isreg() else None
                            visit(digest, entry, content)
                layers[digest] = LayerBlob(digest=digest, compressed=member.size, unpacked=unpacked)
            elif head.startswith(b"{"):
                documents[digest] = json.load(file)
    return {
        digest: tuple(layers[layer["digest"]] for layer in document["layers"])
        for digest, document in documents.items()
        if "layers" in document and all(layer["digest"] in layers for layer in document["layers"])
    }


def open_layer(file: IO[bytes], mode: Compression) -> tarfile.TarFile:
    """Open a layer's blob as a tar archive that is read forwards."""
    if mode == "gzip":
        return tarfile.open(fileobj=file, mode="r|gz")
    if mode == "none":
        return tarfile.open(fileobj=file, mode="r|")
    import zstandard  # noqa: PLC0415 - only images that are new are read

    reader = zstandard.ZstdDecompressor().stream_reader(file)
    return tarfile.open(fileobj=reader, mode="r|")


def _mode_of(head: bytes) -> Compression | None:
    """Say how a blob is compressed by its first bytes, None where it is no layer."""
    if head.startswith(ZSTD_MAGIC):
        return "zstd"
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    return "none" if head[TAR_MAGIC_AT:].startswith(TAR_MAGIC) else None


class _Stream(io.RawIOBase):
    """An iterator of chunks, as a file that is read forwards."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - as io.RawIOBase has it
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count
