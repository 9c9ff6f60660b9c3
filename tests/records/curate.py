"""Copies the records that prove the committed locks: those of the locked packages, and rivals.

    python -m tests.records.curate CHANNEL

CHANNEL is a folder or a URL with the channel's records.  To be run after `./inv lock`;
the files beside this one are written anew.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rattler

from strata.load import load
from strata.lock import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strata.lock import LockedPackage

HERE = Path(__file__).parent
CHANNEL = "https://conda.anaconda.org/conda-forge/"
SUBDIRS = ("linux-64", "linux-aarch64", "noarch")
RIVALS = 3  # other records of each name, which the solver has to turn down
KEPT = (
    "build",
    "build_number",
    "constrains",
    "depends",
    "license",
    "md5",
    "name",
    "noarch",
    "sha256",
    "size",
    "subdir",
    "timestamp",
    "track_features",
    "version",
)


def locked_packages(root: Path) -> list[LockedPackage]:
    """Return the packages of all locks that were solved against the public channel."""
    locks = [read_lock(variant.lock) for variant in load(root).variants.values()]
    return [p for lock in locks for p in lock.packages if p.url.startswith(CHANNEL)]


def choose(records: Iterable[dict[str, Any]], locked: set[str]) -> list[dict[str, Any]]:
    """Return the locked records (by sha256) of one name, and its newest rivals."""
    own = [record for record in records if record["sha256"] in locked]
    rivals = [record for record in records if record["sha256"] not in locked]
    rivals.sort(key=lambda record: (record.get("timestamp", 0), record["build"]))
    return own + rivals[-RIVALS:]


async def query(channel: str, names: list[str]) -> list[rattler.RepoDataRecord]:
    """Ask a channel for all records of some names."""
    answers = await rattler.Gateway().query(
        [rattler.Channel(channel)], list(SUBDIRS), names, recursive=False
    )
    return [record for answer in answers for record in answer]


def main(channel: str) -> None:
    """Write the records of the committed locks from a channel."""
    packages = locked_packages(HERE.parents[1])
    locked = {package.sha256 for package in packages}
    if "://" not in channel:
        channel = Path(channel).resolve().as_uri()
    found = asyncio.run(query(channel, sorted({package.name for package in packages})))
    newest = max(r.timestamp for r in found if r.sha256.hex() in locked and r.timestamp)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in found:
        if record.timestamp and record.timestamp > newest:
            continue  # the lock was solved before it was there
        plain = json.loads(record.to_json())
        plain = {key: plain[key] for key in KEPT if plain.get(key) not in (None, [], "")}
        groups.setdefault((record.subdir, record.name.normalized), []).append(
            plain | {"fn": record.file_name}
        )
    for subdir in SUBDIRS:
        chosen = {
            record.pop("fn"): record
            for key, records in sorted(groups.items())
            if key[0] == subdir
            for record in choose(records, locked)
        }
        text = json.dumps(
            {"info": {"subdir": subdir}, "packages": {}, "packages.conda": chosen},
            indent=0,
            sort_keys=True,
        )
        (HERE / f"{subdir}.json.xz").write_bytes(lzma.compress(text.encode(), preset=9))
        print(subdir, len(chosen))


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # rattler may crash when the interpreter ends
