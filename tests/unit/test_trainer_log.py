"""What rank 0 writes: CSV, TensorBoard's event files, and the bar."""

import csv
import io
import struct
import sys
from pathlib import Path

import pytest

from trainer.events import EventFile, crc32c, scalars_event
from trainer.log import Line, Log, draw_bar, keep_until


def line(step: int) -> Line:
    """Return a line of the log."""
    return Line(step, 0, "train", 1.5, 0.25, 0.001, 10.0)


def steps(file: Path) -> list[str]:
    """Return the first column."""
    with file.open(newline="") as stream:
        return [row[0] for row in csv.reader(stream)]


def records(data: bytes) -> list[bytes]:
    """Return the records of an event file, their checksums compared."""
    found = []
    while data:
        (length,) = struct.unpack_from("<Q", data)
        body = data[12 : 12 + length]
        for text, at in ((data[:8], 8), (body, 12 + length)):
            crc = crc32c(text)
            masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            assert struct.unpack_from("<I", data, at) == (masked,)
        found.append(body)
        data = data[16 + length :]
    return found


@pytest.mark.parametrize(
    ("data", "crc"),
    [(b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_the_checksum_is_castagnolis(data: bytes, crc: int) -> None:
    """The check values of RFC 3720, B.4, come out."""
    assert crc32c(data) == crc


def test_an_event_is_encoded_as_protocol_buffers_are() -> None:
    """Wall time, step and one scalar, byte by byte."""
    assert (
        scalars_event(1.0, 300, {"a": 0.5}).hex()
        == (
            "09" + "000000000000f03f"  # wall_time, field 1: double
            "10" + "ac02"  # step, field 2: varint 300
            "2a" + "0a"  # summary, field 5: 10 bytes
            "0a" + "08"  # value, field 1: 8 bytes
            "0a" + "0161"  # tag, field 1: 1 byte, "a"
            "15" + "0000003f"  # simple_value, field 2: float
        )
    )


def test_an_event_file_begins_with_version_and_session(tmp_path: Path) -> None:
    """The first record names the format, the second voids later steps, then come the values."""
    events = EventFile(tmp_path, 7)
    events.write(7, {"loss": 1.0})
    events.close()
    (file,) = tmp_path.iterdir()
    version, session, values = records(file.read_bytes())
    assert file.name.startswith("events.out.tfevents.")
    assert version.endswith(b"\x1a\x0dbrain.Event:2")
    assert session.endswith(bytes.fromhex("10073a020801"))
    assert b"\x0a\x04loss" in values


def test_lines_after_the_checkpoint_are_void(tmp_path: Path) -> None:
    """A log that goes on after step 2 has lost what was logged of later steps."""
    log = Log(tmp_path, 0, 4)
    for step in (1, 2, 3):
        log.write(line(step))
    log.close()
    log = Log(tmp_path, 2, 4)
    log.write(line(3))
    log.close()
    assert steps(tmp_path / "log.csv") == ["step", "1", "2", "3"]


def test_a_line_cut_short_is_dropped(tmp_path: Path) -> None:
    """A log without its last line's end, as a killed run leaves it, goes on with whole lines."""
    file = tmp_path / "log.csv"
    file.write_text("step,epoch\n1,0\n2,0\n3,1\n2")
    keep_until(file, 2)
    assert steps(file) == ["step", "1", "2"]


class Terminal(io.StringIO):
    """A stderr that a person looks at."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def test_a_terminal_gets_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is redrawn in its line, and a line of the log takes its place."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    log = Log(tmp_path, 0, 4)
    log.progress(1)
    log.write(line(1))
    log.close()
    bar, said, end = terminal.getvalue().partition("\r\x1b[Kstep 1 of 4, epoch 0, train: ")
    assert bar.startswith("\r[######..................] 1/4 ")
    assert (said != "", end) == (True, "loss 1.5000, accuracy 0.2500, 10 samples/s\n\n")


def test_a_file_gets_no_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where stderr is no terminal, only lines are written."""
    log = Log(tmp_path, 0, 4)
    log.progress(1)
    log.close()
    assert capsys.readouterr().err == ""


def test_the_bar_fills() -> None:
    """Half of the steps is half of the bar."""
    assert draw_bar(5, 10) == "[############............] 5/10"
    assert draw_bar(0, 0) == "[........................] 0/0"
