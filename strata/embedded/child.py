"""The process that does rattler's work, so that a crash at its end can't reach ours.

rattler and rattler-build may crash when the interpreter that loaded them ends.
The result is written first, and the process leaves without that end.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from strata.embedded.convert import convert_wheel
from strata.embedded.interpreter import PROJECT, write_interpreter
from strata.errors import BuildError, StrataError
from strata.run import run

CODE = Path(__file__).resolve().parents[2]


def call_child(job: dict[str, Any], where: str) -> Any:  # noqa: ANN401 - it is JSON
    """Run one job in a child process and return its result, both plain JSON values.

    Raises `BuildError` when the child fails.
    """
    environment = {"PYTHONPATH": os.pathsep.join([str(CODE), os.environ.get("PYTHONPATH", "")])}
    output = run(
        [sys.executable, "-P", "-m", "strata.embedded.child"],
        error=BuildError,
        where=where,
        fix="see what it says; ./inv clean empties the cache",
        env=environment,
        stdin=json.dumps(job),
        quiet=True,
    )
    return json.loads(output)


def convert_all(job: dict[str, Any]) -> dict[str, str]:
    """Write the packages of a job into a folder; return their file names by project.

    A job holds `out`, `epoch`, `rename` and `wheels`: by project, the `path` of
    its wheel and its `extras`; `null` stands for the interpreter's package.
    """
    out = Path(job["out"])
    made = {}
    for project, wheel in job["wheels"].items():
        if project == PROJECT:
            made[project] = write_interpreter(out, epoch=job["epoch"]).name
        else:
            package = convert_wheel(
                Path(wheel["path"]),
                out,
                rename=job["rename"],
                epoch=job["epoch"],
                extras=wheel["extras"],
            )
            made[project] = package.name
    return made


def index(job: dict[str, Any]) -> None:
    """Write the repodata of the channel that a job names, the same whenever it is written."""
    import asyncio  # noqa: PLC0415 - not loaded where it is not used

    from rattler.index import index_fs  # noqa: PLC0415 - the same

    channel = Path(job["channel"])
    asyncio.run(index_fs(channel, force=True, write_zst=False, write_shards=False))
    for repodata in channel.glob("*/repodata.json"):
        content = json.loads(repodata.read_text())
        for record in content["packages.conda"].values():
            record.pop("indexed_timestamp", None)  # the clock's time
        repodata.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def unpack(job: dict[str, Any]) -> None:
    """Unpack the `packages` (path by file name) of a job, one over the other, into `out`."""
    from rattler.package_streaming import extract  # noqa: PLC0415 - not loaded where it is not used

    with tempfile.TemporaryDirectory(prefix="strata-unpack-") as scratch:
        for name, path in sorted(job["packages"].items()):
            named = Path(scratch, name)  # rattler knows the kind of an archive by its name alone
            named.symlink_to(path)
            extract(named, Path(job["out"]))


def _main() -> int:
    job = json.load(sys.stdin)
    try:
        result = {"convert": convert_all, "index": index, "unpack": unpack}[job.pop("do")](job)
    except StrataError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    code = _main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
