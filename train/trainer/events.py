"""Event files that TensorBoard reads, written without it.

A file is a row of records: length, its checksum, the bytes, their checksum
(tensorflow/core/lib/io/record_writer.h); the bytes are an Event message
(tensorflow/core/util/event.proto) in the encoding of Protocol Buffers.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CASTAGNOLI = 0x82F63B78  # CRC-32C's polynomial, bits reversed (RFC 3720, B.4)
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
START = 1  # SessionLog.START: what is there of this step and later ones is void


def _table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (CASTAGNOLI if number & 1 else 0)  # noqa: PLW2901
        table.append(number)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _field(number: int, kind: int, value: bytes) -> bytes:
    length = _varint(len(value)) if kind == BYTES else b""
    return _varint(number << 3 | kind) + length + value


def scalars_event(wall_time: float, step: int, values: Mapping[str, float]) -> bytes:
    """Return the message that says what `values` are in a step."""
    summary = b"".join(
        _field(
            1,
            BYTES,
            _field(1, BYTES, tag.encode()) + _field(2, FIXED32, struct.pack("<f", value)),
        )
        for tag, value in values.items()
    )
    return (
        _field(1, FIXED64, struct.pack("<d", wall_time))
        + _field(2, VARINT, _varint(step))
        + _field(5, BYTES, summary)
    )


class EventFile:
    """One event file in a folder, flushed with each record."""

    def __init__(self, folder: Path, step: int) -> None:
        """Begin a new file; what others in the folder say of `step` and later steps is void."""
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}.{step}"
        self._stream = (folder / name).open("xb")
        head = _field(1, FIXED64, struct.pack("<d", now))
        self._record(head + _field(3, BYTES, b"brain.Event:2"))
        session = _field(7, BYTES, _field(1, VARINT, _varint(START)))
        self._record(head + _field(2, VARINT, _varint(step)) + session)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values, by tag, of a step."""
        self._record(scalars_event(time.time(), step, values))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _record(self, data: bytes) -> None:
        length = struct.pack("<Q", len(data))
        self._stream.write(length + _checksum(length) + data + _checksum(data))
        self._stream.flush()
