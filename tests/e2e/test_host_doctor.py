"""`./inv doctor` on this very host: with the engine, and with one that is not there."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tests.e2e.boxes import ROOT, Ended, call
from tests.projects import NOWHERE

if TYPE_CHECKING:
    from docker import DockerClient

    from strata.engine import Engine

DOCTOR = (sys.executable, "-m", "strata", "--search-root", str(ROOT), "doctor")


def doctor(env: dict[str, str], *argv: str) -> Ended:
    """Run the task to its end."""
    return call(*DOCTOR, *argv, env={"PYTHONPATH": str(ROOT), **env}, patience=60)


def finding(done: Ended, name: str) -> dict[str, Any]:
    """Return the one finding of that name in the document that was printed."""
    (found,) = [f for f in json.loads(done.stdout)["findings"] if f["id"] == name]
    return dict(found)


def test_the_engine_is_examined(engine: Engine, docker_client: DockerClient) -> None:
    """The engine's own version is in the evidence, and the exit code is the verdict's."""
    done = doctor(engine.env, "--json")
    document = json.loads(done.stdout)
    assert (document["schema"], document["scope"]) == ("strata.doctor/1", "host")
    assert done.code == {"fit": 0, "unfit": 8}[document["verdict"]]
    found = finding(done, "engine")
    assert found["severity"] == "ok"
    assert found["evidence"].startswith(f"version {docker_client.version()['Version']}, buildx ")


def test_a_missing_engine_is_not_fit() -> None:
    """Exit code 8, all findings are printed all the same, and the error says where to look."""
    done = doctor({"DOCKER_HOST": NOWHERE, "STRATA_ENGINE": ""}, "--json")
    assert done.code == 8
    assert finding(done, "engine")["severity"] == "error"
    assert finding(done, "engine-gpus")["severity"] == "unknown"
    assert finding(done, "memory")["severity"] in ("ok", "warning")
    assert done.err.splitlines()[-2].startswith("error: this host: not fit: engine")
    assert done.err.splitlines()[-1] == "  fix: see each finding's fix"
