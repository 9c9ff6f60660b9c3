"""What an image holds, asked in a container of it: the recipes must make the same image."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from strata.bench.model import differences
from strata.errors import BuildError
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from strata.engine import Engine

# Both imports must work, and every package is listed: Python's and Debian's.
ASK = """
import json, subprocess
from importlib.metadata import distributions
import jupyterlab, torch
python = {f"{d.metadata['Name'].lower().replace('_', '-')}=={d.version}" for d in distributions()}
listing = ["dpkg-query", "--show", "--showformat=${Package}=${Version}\\n"]
debian = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
print(json.dumps(sorted(python | set(debian.split()))))
"""


def ask_content(engine: Engine, ref: str) -> frozenset[str]:
    """Return the packages of an image: `NAME==VERSION` Python's, `NAME=VERSION` Debian's.

    Raises `BuildError` where PyTorch or JupyterLab can't be imported.
    """
    argv = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "python", ref, "-c", ASK]
    fix = f"docker run --rm {ref} python -c 'import torch, jupyterlab'"
    answer = run(argv, error=BuildError, where=ref, fix=fix, env=engine.env, quiet=True)
    return frozenset(json.loads(answer))


def demand_same(contents: Mapping[str, Collection[str]]) -> None:
    """Raise `BuildError` unless all recipes made images with the same packages."""
    if unequal := differences(contents):
        raise BuildError.at(
            "bench",
            "the images don't hold the same packages, so nothing can be compared:"
            + "".join(f"\n    {line}" for line in unequal),
            "make bench/*.Dockerfile install what the layers install",
        )
