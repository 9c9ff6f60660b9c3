"""strata-doctor in containers of the built image: started badly, and as it should be."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "strata/slim:embedded"
COMMAND = "/opt/strata/bin/strata-doctor"
FILES = [
    *("-v", f"{ROOT}/train:/opt/strata/train:ro"),
    *("-v", f"{ROOT}/layers/30-pytorch/rootfs{COMMAND}:{COMMAND}:ro"),
]
# A warning of Python's or of torch's would be a finding of its own.
STRICT = ["-e", "PYTHONWARNINGS=error", "-e", "CUDA_VISIBLE_DEVICES="]
NARROW = [
    *("--cpus", "1", "--memory", "1g", "--pids-limit", "100", "--ulimit", "nofile=64"),
    *("-e", "OMP_NUM_THREADS=16", "-e", "NCCL_SOCKET_IFNAME=ens5"),
    *("-e", "NCCL_DEBUG_FILE=/nowhere/log.%p"),
]
CLOSED = ["--read-only", "--tmpfs=/tmp", "--cap-drop", "ALL", "--user", "54321:54321"]


def examine(options: list[str], *argv: str) -> subprocess.CompletedProcess[str]:
    """Run strata-doctor in a container of its own, started with these options."""
    run = ["docker", "run", "--rm", "--network", "none", *FILES, *STRICT, *options, IMAGE]
    return subprocess.run(
        [*run, "strata-doctor", *argv], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def narrow() -> subprocess.CompletedProcess[str]:
    """Return what it says in a container that is too narrow in many ways."""
    return examine(NARROW, "--json")


@pytest.fixture(scope="module")
def findings(narrow: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Return the findings of the narrow container by their check."""
    document = json.loads(narrow.stdout)
    return {finding["id"]: finding for finding in document["findings"]}


def test_a_narrow_container_is_not_fit(narrow: subprocess.CompletedProcess[str]) -> None:
    """Errors end in exit code 8 and "unfit", and nothing but the document is printed."""
    document = json.loads(narrow.stdout)
    assert (narrow.returncode, document["verdict"], narrow.stderr) == (8, "unfit", "")
    assert (document["schema"], document["scope"]) == ("strata.doctor/1", "container")


@pytest.mark.parametrize(
    ("check", "severity", "seen", "fix"),
    [
        ("shared-memory", "warning", "/dev/shm has 64 MiB", "--shm-size 1g"),  # noqa: S108
        ("threads", "warning", "OMP_NUM_THREADS=16, and a process may use 1 of", "THREADS=1 for"),
        ("open-files", "error", "limit 64", "--ulimit nofile=65536:65536"),
        ("memory", "warning", "1 GiB by the cgroup's limit", "docker run --memory 2g"),
        ("processes", "warning", "100 processes and threads", "--pids-limit -1"),
        ("interfaces", "error", "NCCL_SOCKET_IFNAME=ens5", "unset NCCL_SOCKET_IFNAME"),
        ("debugging", "warning", "/nowhere/log.%p can't be written to", "unset NCCL_DEBUG_FILE"),
    ],
)
def test_what_is_too_narrow_is_found(
    findings: dict[str, dict[str, Any]], check: str, severity: str, seen: str, fix: str
) -> None:
    """Each limit of the container is found, with what was seen and the exact remedy."""
    found = findings[check]
    assert found["severity"] == severity
    assert seen in found["evidence"]
    assert fix in found["fix"]


def test_a_plain_container_is_fit() -> None:
    """Docker's own 64 MiB of /dev/shm are a warning with both ways out, and exit code 0."""
    done = examine([], "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"]) == (0, "fit"), done.stdout
    (found,) = (found for found in document["findings"] if found["id"] == "shared-memory")
    assert (found["severity"], found["evidence"][:20]) == ("warning", "/dev/shm has 64 MiB:")  # noqa: S108
    assert found["fix"].startswith("docker run --shm-size 1g ")
    assert found["fix"].endswith("or --ipc=host")


def test_a_good_container_is_fit() -> None:
    """Read-only, without capabilities, as a stranger, with 1 GiB of /dev/shm: fit, all known."""
    done = examine([*CLOSED, "--shm-size", "1g"])
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "strata-doctor: this container"
    assert lines[-1].startswith("verdict: fit (")
    assert {line.split()[1] for line in lines[2:-2] if not line.startswith(" ")} == {"ok", "info"}
