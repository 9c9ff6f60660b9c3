"""What CI runs leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / ".ci" / "run"
# It writes down how it is called, and its tests last until somebody ends them.
INV = """\
#!/bin/sh
echo "$*" >>calls
if [ "$1" = test ]; then
  echo running
  exec sleep ${SECONDS_OF_TESTS:?}
fi
"""


@pytest.mark.parametrize("order", [None, signal.SIGTERM, signal.SIGINT])
def test_the_engine_is_stopped_at_every_end(tmp_path: Path, order: signal.Signals | None) -> None:
    """When the tests are over, on a cancelled job's SIGTERM and on Ctrl-C; the exit code tells."""
    script, inv = tmp_path / ".ci" / "run", tmp_path / "inv"
    script.parent.mkdir()
    shutil.copy(RUN, script)
    inv.write_text(INV)
    inv.chmod(0o755)
    process = subprocess.Popen(
        ["sh", str(script)],
        env={**os.environ, "SECONDS_OF_TESTS": "30" if order else "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    if order:
        os.killpg(process.pid, order)
    process.communicate(timeout=20)

    assert process.returncode == (128 + order if order else 0)
    assert (tmp_path / "calls").read_text().splitlines() == ["test", "engine stop --purge"]
    assert not (tmp_path / "build" / "ci").exists()
