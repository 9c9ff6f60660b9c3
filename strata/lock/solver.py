"""Solve with rattler and write the lock with conda-lock: a program of its own.

`solve.py` starts it as `python -m strata.lock.solver REQUEST.json OUTCOME.json`,
because rattler may crash when the interpreter ends, after its work is done.
The outcome is `{"problem": null}`, or a problem's place and text.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rattler
from rattler.exceptions import GatewayError, InvalidMatchSpecError, SolverError

if TYPE_CHECKING:
    from collections.abc import Iterable


class UnsolvableError(Exception):
    """The request can't be solved: the place of the reason, and the reason."""

    def __init__(self, where: str, what: str) -> None:
        """Keep place and reason."""
        super().__init__(where, what)
        self.where = where
        self.what = what


def main(request_path: str, outcome_path: str) -> None:
    """Answer one request."""
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    problem = None
    try:
        entries = [entry for one in request["platforms"] for entry in _solve(request, one)]
        # conda-lock takes a second to import: a request without solution needn't wait.
        from strata.lock.writer import write_lock  # noqa: PLC0415 - see above

        write_lock(request, entries)
    except UnsolvableError as failure:
        problem = {"where": failure.where, "what": failure.what}
    Path(outcome_path).write_text(json.dumps({"problem": problem}), encoding="utf-8")


def _solve(request: dict[str, Any], platform: dict[str, Any]) -> list[dict[str, Any]]:
    """Solve all layers of one platform together; return plain entries."""
    subdir = platform["subdir"]
    sources: list[Any] = []
    for channel in request["channels"]:
        if channel != request["canonical_url"] or request["channel_dir"] is None:
            sources.append(rattler.Channel(os.path.expandvars(channel)))
            continue
        # The folder stands for the URL, so that records carry the URL.
        folder = Path(request["channel_dir"])
        sources += [
            rattler.SparseRepoData(rattler.Channel(channel), name, folder / name / "repodata.json")
            for name in (subdir, "noarch")
            if (folder / name / "repodata.json").is_file()
        ]
    try:
        records = asyncio.run(
            rattler.solve(
                sources,
                specs=_match_specs(request["specs"]),
                constraints=_match_specs(request["constraints"]),
                platforms=[subdir, "noarch"],
                virtual_packages=[_virtual(entry) for entry in platform["virtual_packages"]],
                channel_priority=rattler.ChannelPriority.Strict,
                channel_relations="disabled",
            )
        )
    except SolverError as failure:
        raise UnsolvableError(request["pins"], f"{subdir}: {failure}") from None
    except GatewayError as failure:
        raise UnsolvableError(request["pins"], f"a channel can't be read: {failure}") from None
    return [_entry(record, subdir) for record in records]


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


def _entry(record: rattler.RepoDataRecord, subdir: str) -> dict[str, Any]:
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
        "url": str(record.url),
        "md5": record.md5.hex(),
        "sha256": record.sha256.hex(),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
