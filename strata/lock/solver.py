"""Solve with rattler and write the lock with conda-lock: a program of its own.

`solve.py` starts it as `python -m strata.lock.solver REQUEST.json OUTCOME.json`,
because rattler may crash when the interpreter ends, after its work is done.
The outcome is `{"problem": null, "order": …}`, or a problem's kind, place and text:
the `specs` have no solution, a channel's `address`, its `folder` or the `network`
to it is no good; `order` says for each package of the lock before whether its new version is
higher (1), lower (-1) or the same (0), as conda orders versions.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rattler
from rattler.exceptions import (
    GatewayError,
    InvalidChannelError,
    InvalidMatchSpecError,
    SolverError,
)

from strata.lock.urls import base_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class UnsolvableError(Exception):
    """The request can't be solved: the place of the reason, the reason, and its kind."""

    def __init__(self, where: str, what: str, kind: str = "specs") -> None:
        """Keep place, reason and kind."""
        super().__init__(where, what, kind)
        self.where = where
        self.what = what
        self.kind = kind


def main(request_path: str, outcome_path: str) -> None:
    """Answer one request."""
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    problem = None
    order: dict[str, dict[str, int]] = {}
    try:
        entries = [entry for one in request["platforms"] for entry in _solve(request, one)]
        # conda-lock takes a second to import: a request without solution needn't wait.
        from strata.lock.writer import write_lock  # noqa: PLC0415 - see above

        write_lock(request, entries)
        order = _order(request["before"], entries)
    except UnsolvableError as failure:
        problem = {"kind": failure.kind, "where": failure.where, "what": failure.what}
    outcome = {"problem": problem, "order": order}
    Path(outcome_path).write_text(json.dumps(outcome), encoding="utf-8")


def _order(
    before: dict[str, dict[str, str]], entries: list[dict[str, Any]]
) -> dict[str, dict[str, int]]:
    order: dict[str, dict[str, int]] = {platform: {} for platform in before}
    for entry in entries:
        name, platform = entry["name"], entry["platform"]
        if was := before.get(platform, {}).get(name):
            old, new = rattler.Version(was), rattler.Version(entry["version"])
            order[platform][name] = (new > old) - (new < old)
    return order


def _solve(request: dict[str, Any], platform: dict[str, Any]) -> list[dict[str, Any]]:
    """Solve all layers of one platform together; return plain entries."""
    subdir = platform["subdir"]
    newest = request["newest"]
    places = _places(request)
    sources = [
        source
        for channel, place in places.items()
        for source in (
            _records(channel, Path(request["channel_dir"]), subdir)
            if place == request["channel_dir"]
            else [_channel(place)]
        )
    ]
    try:
        records = asyncio.run(
            rattler.solve(
                sources,
                gateway=rattler.Gateway(cache_dir=request["cache"]),
                specs=_match_specs(platform["specs"]),
                constraints=_match_specs(request["constraints"]),
                platforms=[subdir, "noarch"],
                virtual_packages=[_virtual(entry) for entry in platform["virtual_packages"]],
                channel_priority=rattler.ChannelPriority.Strict,
                channel_relations="disabled",
                exclude_newer=datetime.fromtimestamp(newest, UTC) if newest else None,
                # Records of old packages don't all say when they were built.
                timestamp_policy="allow-missing",
            )
        )
    except SolverError as failure:
        # rattler tells a constraint once for each package that it rules out.
        reason = "\n".join(dict.fromkeys(str(failure).splitlines()))
        raise UnsolvableError(request["pins"], f"{subdir}: {reason}") from None
    except GatewayError as failure:
        # Of a folder, too, what the solve asks for is read only here.
        kind = "folder" if set(places.values()) == {request["channel_dir"]} else "network"
        what = f"can't be read: {failure}"
        raise UnsolvableError(" ".join(places.values()), what, kind) from None
    return [_entry(record, subdir, request) for record in records]


def _places(request: dict[str, Any]) -> dict[str, str]:
    """Return where each channel is read: a folder, or a URL, which may hold `$VAR`."""
    places = {channel: channel for channel in request["channels"]}
    if stand_in := request["channel_dir"] or request["mirror_url"]:
        places[request["canonical_url"]] = stand_in
    return places


def _channel(place: str) -> rattler.Channel:
    try:
        return rattler.Channel(os.path.expandvars(place))
    except InvalidChannelError as failure:
        raise UnsolvableError(place, f"is no channel: {failure}", "address") from None


def _records(channel: str, folder: Path, subdir: str) -> list[rattler.SparseRepoData]:
    """Return the records of a folder that stands for a URL, so that they carry the URL."""
    files = {name: folder / name / "repodata.json" for name in (subdir, "noarch")}
    there = {name: file for name, file in files.items() if file.is_file()}
    try:
        return [
            rattler.SparseRepoData(rattler.Channel(channel), name, file)
            for name, file in there.items()
        ]
    except OSError as failure:
        raise UnsolvableError(str(folder), f"can't be read: {failure}", "folder") from None


def _match_specs(entries: Iterable[dict[str, str]]) -> list[rattler.MatchSpec]:
    specs = []
    for entry in entries:
        try:
            specs.append(rattler.MatchSpec(entry["spec"], strict=False))
        except InvalidMatchSpecError as failure:
            what = f'"{entry["spec"]}" is not a spec that conda knows: {failure}'
            raise UnsolvableError(entry["where"], what) from None
    return specs


def _virtual(entry: dict[str, str]) -> rattler.GenericVirtualPackage:
    version, _, build = entry["version"].partition(" ")
    try:
        return rattler.GenericVirtualPackage(
            rattler.PackageName(entry["name"]),
            rattler.Version(version),
            rattler.BuildString(build or "0"),
        )
    except Exception as failure:  # noqa: BLE001 - rattler has a class per kind, without a base
        what = f'{entry["name"]} "{entry["version"]}" is not VERSION or VERSION BUILD: {failure}'
        raise UnsolvableError(entry["where"], what) from None


def _entry(record: rattler.RepoDataRecord, subdir: str, request: dict[str, Any]) -> dict[str, Any]:
    if record.md5 is None or record.sha256 is None:
        raise UnsolvableError(record.channel or "channel", f"{record.url} has no md5 and sha256")
    dependencies: dict[str, set[str]] = {}
    for text in record.depends:
        spec = rattler.MatchSpec(text, strict=False)
        name = re.split(r"[\s<>=!~\[]", text.strip(), maxsplit=1)[0].lower()
        dependencies.setdefault(name, set()).update({str(spec.version)} if spec.version else set())
    return {
        "name": record.name.normalized,
        "version": str(record.version),
        "platform": subdir,
        "dependencies": {name: ",".join(sorted(specs)) for name, specs in dependencies.items()},
        "url": _canonical(str(record.url), request),
        "md5": record.md5.hex(),
        "sha256": record.sha256.hex(),
        "size": record.size,
    }


def _canonical(url: str, request: dict[str, Any]) -> str:
    """Return where the channel's own server has a package that a mirror gave."""
    if request["mirror_url"]:
        # As rattler writes addresses: small letters in hosts, no `..`, no usual port.
        mirror = base_of(str(_channel(request["mirror_url"]).base_url))
        if url.startswith(mirror):
            return f"{base_of(request['canonical_url'])}{url.removeprefix(mirror)}"
    return url


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
