"""Write a lock in conda-lock's unified format, with conda-lock's own code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conda_lock.lockfile import write_conda_lock_file
from conda_lock.lockfile.v2prelim.models import HashModel, LockedDependency, Lockfile, LockMeta
from conda_lock.models.channel import Channel, normalize_url_with_placeholders

from strata.lock.model import packages_digest
from strata.lock.read import PACKAGES_KEY, size_key
from strata.lock.slice import categorise


def write_lock(request: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """Write the solved entries of all platforms to the file that the request names."""
    channels = [Channel.from_string(channel) for channel in request["channels"]]
    packages = []
    for platform in request["platforms"]:
        own = [entry for entry in entries if entry["platform"] == platform["subdir"]]
        given = categorise(
            {entry["name"]: entry["dependencies"] for entry in own},
            [(category["name"], category["roots"]) for category in platform["categories"]],
        )
        packages += [
            LockedDependency(
                name=entry["name"],
                version=entry["version"],
                manager="conda",
                platform=entry["platform"],
                dependencies=entry["dependencies"],
                # What was an environment variable in the channel is one in the lock.
                url=normalize_url_with_placeholders(entry["url"], channels=channels),
                hash=HashModel(md5=entry["md5"], sha256=entry["sha256"]),
                categories={given[entry["name"]]},
            )
            for entry in own
        ]
    digest = packages_digest((p.platform, p.name, p.url, p.hash.sha256 or "") for p in packages)
    lock = Lockfile(
        package=packages,
        metadata=LockMeta(
            content_hash={one["subdir"]: request["digest"] for one in request["platforms"]},
            channels=request["channels"],
            platforms=sorted(one["subdir"] for one in request["platforms"]),
            sources=request["sources"],
            custom_metadata=request["metadata"] | {PACKAGES_KEY: digest} | _sizes(entries),
        ),
    )
    out = Path(request["out"])
    write_conda_lock_file(lock, out, metadata_choices=frozenset(), include_help_text=False)
    out.write_text(request["header"] + out.read_text(encoding="utf-8"), encoding="utf-8")


def _sizes(entries: list[dict[str, Any]]) -> dict[str, str]:
    """Return what is downloaded for each package, in bytes, where the channel says it."""
    sizes = {
        size_key(entry["platform"], entry["name"]): str(entry["size"])
        for entry in entries
        if entry["size"] is not None
    }
    return dict(sorted(sizes.items()))
