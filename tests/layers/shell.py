"""One shell in the container, kept open: a `docker exec` per command costs more than most tests."""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
import uuid
from typing import TYPE_CHECKING

from testinfra.backend.base import BaseBackend

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from testinfra.backend.base import CommandResult

CHUNK = 1 << 16
TAIL = 64  # bytes: a mark, an exit code and a line's end


class ContainerShell(BaseBackend):  # type: ignore[misc] # testinfra is not followed by mypy
    """A backend of testinfra's that gives each command a shell of its own, through one exec.

    A command's environment, user and folder are those of `docker exec`; its stdin is empty.
    What it leaves running must not keep its stdout or stderr.
    """

    NAME = "docker"

    def __init__(self, container: str) -> None:
        """Open the shell in the running container of this name."""
        super().__init__(container)
        self._process = subprocess.Popen(
            ["docker", "exec", "--interactive", container, "/bin/sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        """Return this open shell."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the shell."""
        with self._process:
            self._process.terminate()

    def run(self, command: str, *args: str, **_unused: object) -> CommandResult:
        """Run a command and return what it said.

        Raises `ConnectionError` when the shell ends, as it does with its container.
        """
        text = self.get_command(command, *args)
        mark = uuid.uuid4().hex
        self._send(
            f"/bin/sh -c {shlex.quote(text)} </dev/null\n"
            f"printf '{mark}%s\\n' $?; printf '{mark}\\n' >&2\n"
        )
        streams = self._read_until(mark.encode())
        said, _, code = streams[0].rpartition(mark.encode())
        return self.result(int(code), text.encode(), said, streams[1].rpartition(mark.encode())[0])

    def _send(self, script: str) -> None:
        stdin = self._process.stdin
        try:
            stdin.write(script.encode())  # type: ignore[union-attr]  # it is a pipe
            stdin.flush()  # type: ignore[union-attr]
        except BrokenPipeError:
            raise self._lost(b"") from None

    def _read_until(self, mark: bytes) -> tuple[bytes, bytes]:
        """Return both streams up to the line with the mark."""
        out, err = bytearray(), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ, out)  # type: ignore[arg-type]
            selector.register(self._process.stderr, selectors.EVENT_READ, err)  # type: ignore[arg-type]
            while selector.get_map():
                for key, _ in selector.select():
                    chunk = os.read(key.fd, CHUNK)
                    if not chunk:
                        raise self._lost(bytes(err))
                    key.data.extend(chunk)
                    if mark in key.data[-TAIL:] and chunk.endswith(b"\n"):
                        selector.unregister(key.fileobj)
        return bytes(out), bytes(err)

    def _lost(self, said: bytes) -> ConnectionError:
        text = said.decode(errors="replace").strip()
        return ConnectionError(f"the shell in container {self.hostname} has ended: {text}")
