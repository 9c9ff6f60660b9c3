"""The public records in tests/records, laid out as a channel's folder."""

from __future__ import annotations

import lzma
from pathlib import Path

RECORDS = Path(__file__).parents[1] / "records"
CHANNEL = "https://conda.anaconda.org/conda-forge/"
CHANNEL_DIRS = ("linux-64", "linux-aarch64", "noarch")


def lay_out(folder: Path) -> Path:
    """Write `SUBDIR/repodata.json` below a folder, and return it."""
    for name in CHANNEL_DIRS:
        (folder / name).mkdir()
        text = lzma.decompress((RECORDS / f"{name}.json.xz").read_bytes())
        (folder / name / "repodata.json").write_bytes(text)
    return folder
