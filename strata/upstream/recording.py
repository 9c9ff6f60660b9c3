"""What the commands of a build fetched over HTTP, written down so that it can be fetched again."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from typing import TYPE_CHECKING

import requests

from strata.embedded.wheels import sha256_of
from strata.errors import BuildError, HostError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "strata.http/1"
CHUNK = 1 << 16  # bytes


class Recording:
    """A table of URLs, and the files that they stand for, by sha256."""

    def __init__(self, table: Path, files: Path) -> None:
        """Use the table (JSON) and the folder of files; either may be missing yet.

        Raises `BuildError` for a table that cannot be read.
        """
        self._table = table
        self._files = files
        self._lock = threading.Lock()
        self._hashes: dict[str, str] = {}
        if table.exists():
            try:
                document = json.loads(table.read_text())
                is_ours = document["schema"] == SCHEMA
                self._hashes = dict(document["urls"])
            except (ValueError, KeyError, TypeError):
                is_ours = False
            if not is_ours:
                raise BuildError.at(str(table), f"is no table of {SCHEMA}", "./inv fetch again")

    def __len__(self) -> int:
        """Return how many URLs it has."""
        return len(self._hashes)

    @property
    def hashes(self) -> frozenset[str]:
        """The sha256 of every file that it needs."""
        return frozenset(self._hashes.values())

    def find(self, url: str) -> Path | None:
        """Return the file of a URL, None where there is none.

        Raises `BuildError` for a file that is not what was written down.
        """
        sha256 = self._hashes.get(url)
        if sha256 is None:
            return None
        file = self._files / sha256
        if not file.is_file() or sha256_of(file) != sha256:
            raise BuildError.at(str(file), f"is not what {url} was", "./inv fetch again")
        return file

    def keep(self, url: str, answer: requests.Response) -> Path:
        """Write the body of an answer down, whole, and return its file.

        Raises what `requests` raises where the connection breaks, and `HostError`
        where the file cannot be written.
        """
        try:
            return self._keep(url, answer)
        except OSError as failed:
            if isinstance(failed, requests.RequestException):  # an OSError, too
                raise
            raise HostError.at(
                str(self._files), f"{url} cannot be kept: {failed.strerror}", "make room"
            ) from None

    def _keep(self, url: str, answer: requests.Response) -> Path:
        self._files.mkdir(parents=True, exist_ok=True)
        part = self._files / f".http-{os.getpid()}-{threading.get_ident()}.part"
        digest = hashlib.sha256()
        try:
            with part.open("wb") as sink:
                for chunk in answer.iter_content(CHUNK):
                    digest.update(chunk)
                    sink.write(chunk)
            file = part.replace(self._files / digest.hexdigest())
        finally:
            part.unlink(missing_ok=True)
        with self._lock:
            self._hashes[url] = digest.hexdigest()
            document = {"schema": SCHEMA, "urls": dict(sorted(self._hashes.items()))}
            new = self._table.with_name(f".{self._table.name}.new")
            new.write_text(json.dumps(document, indent=1) + "\n")
            new.replace(self._table)
        return file
