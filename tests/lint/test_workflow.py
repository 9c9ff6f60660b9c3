"""The workflow: safe by the linters' rules and by ours, and broken copies are found out."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOW = Path(__file__).parents[2] / ".github/workflows/build.yml"
TEXT = WORKFLOW.read_text()

PIN = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
CREDENTIALS = "        with:\n          persist-credentials: false\n"
ORDER = ("./inv build", "docker login", "./inv push", "docker logout")
# What runs as root leaves folders below build/engine that nobody else may read; a pattern
# that has to look into them ends the upload.
READABLE = ("build/record.json", "build/logs/", "build/checks/", "build/engine/log/")
COMMANDS = (
    r"\./inv [^|;&`$]*(?:\"\$(?:VARIANT|REGISTRY)\"[^|;&`$]*)*",
    r'\./inv plan --json >> "\$GITHUB_OUTPUT"',
    r'echo "(?:plan<<)?END_OF_PLAN" >> "\$GITHUB_OUTPUT"',
    r'echo "\$TOKEN" \| docker login ghcr\.io --username "\$ACTOR" --password-stdin',
    r"docker logout ghcr\.io",
)


def run_linter(name: str, *arguments: str) -> str:
    """Run one of our environment's linters and return what it has to say, or nothing."""
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if program is None:
        pytest.fail(f"{name} is missing; ./inv test installs it")
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return f"{done.stdout}{done.stderr}" if done.returncode else ""


def zizmor(path: Path) -> str:
    """Return zizmor's findings, without asking GitHub and with its stricter rules."""
    return run_linter("zizmor", "--offline", "--no-progress", "--persona=pedantic", str(path))


def schema(path: Path) -> str:
    """Return what the schema of GitHub's workflows has against the file."""
    return run_linter("check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(path))


def pins(path: Path) -> str:
    """Return the actions that are not pinned by commit with their version beside it."""
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    return "\n".join(line for line in lines if not PIN.search(line))


def commands(path: Path) -> str:
    """Return the commands that are neither ./inv nor the login."""
    lines = [line for step in steps(path) for line in step.get("run", "").splitlines()]
    return "\n".join(
        line for line in lines if not any(re.fullmatch(pattern, line) for pattern in COMMANDS)
    )


def uploads(path: Path) -> str:
    """Return the patterns of uploads that look into folders of the build which only root reads."""
    listed = [step["with"]["path"] for step in steps(path) if "/upload-" in step.get("uses", "")]
    patterns = [line for text in listed for line in text.splitlines()]
    return "\n".join(
        pattern
        for pattern in patterns
        if pattern.startswith(("*", "build", ".")) and not pattern.startswith(READABLE)
    )


def permissions(path: Path) -> str:
    """Return the permissions that go beyond reading where nothing is pushed."""
    document = yaml.safe_load(path.read_text())
    found = [] if document.get("permissions") == {"contents": "read"} else ["workflow"]
    for name, job in document["jobs"].items():
        pushes = any("./inv push" in step.get("run", "") for step in job["steps"])
        allowed = {"contents": "read", "packages": "write"} if pushes else None
        if job.get("permissions") != allowed:
            found.append(name)
    return "\n".join(found)


def steps(path: Path) -> list[dict[str, Any]]:
    """Return all steps of all jobs, in order."""
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def broken_copy(workflow: Path, right: str, wrong: str, folder: Path) -> Path:
    """Return a copy of a workflow, below `folder`, with `wrong` in place of `right`."""
    text = workflow.read_text()
    assert right in text
    copy = folder / ".github/workflows" / workflow.name
    copy.parent.mkdir(parents=True)
    copy.write_text(text.replace(right, wrong))
    return copy


@pytest.mark.parametrize("check", [zizmor, schema, pins, commands, uploads, permissions])
def test_workflow_is_clean(check: Any) -> None:  # noqa: ANN401  # any of the above
    """No check has anything against the workflow."""
    assert check(WORKFLOW) == ""


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (zizmor, '--variant "$VARIANT"', "--variant ${{ github.head_ref }}"),
        (zizmor, CREDENTIALS, ""),
        (zizmor, "contents: read # check out the definitions\n\nconc", "contents: write\n\nconc"),
        (zizmor, "  pull_request:\n", "  pull_request_target:\n"),
        (zizmor, "@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7"),
        (schema, "runs-on: ubuntu-24.04", "run-on: ubuntu-24.04"),
        (schema, "timeout-minutes: 15", "timeout-minutes: soon"),
        (pins, "@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7"),
        (pins, "@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1", "@043fb46 # v7.0.1"),
        (pins, "1273ba90b1 # v7.0.1", "1273ba90b1"),
        (commands, './inv build --variant "$VARIANT"', "docker build ."),
        (commands, './inv build --variant "$VARIANT"', './inv build "$VARIANT" || true'),
        (commands, './inv build --variant "$VARIANT"', "./inv build $(curl example.com)"),
        (uploads, "build/logs/**", "build/**/*.log"),
        (uploads, "build/engine/log/*.log", "build/*/log/*.log"),
        (uploads, "build/checks/**", "build"),
        (permissions, "permissions:\n  contents: read", "permissions:\n  contents: write"),
        (permissions, "packages: write", "packages: write\n      id-token: write"),
        (permissions, "    name: plan\n", "    name: plan\n    permissions: write-all\n"),
    ],
)
def test_broken_copy_is_found_out(
    check: Any,  # noqa: ANN401  # any of the above
    right: str,
    wrong: str,
    tmp_path: Path,
) -> None:
    """Each check has something against a copy with the fault that it is there for."""
    assert check(broken_copy(WORKFLOW, right, wrong, tmp_path)) != ""


def test_token_comes_after_the_build() -> None:
    """In the job that pushes, the build ends before the login, and the push comes last."""
    job = yaml.safe_load(TEXT)["jobs"]["publish"]
    run = [step["run"] for step in job["steps"] if "run" in step]
    order = [next(i for i, line in enumerate(run) if word in line) for word in ORDER]
    assert order == [0, 1, 2, 3]


def test_pull_requests_push_nothing() -> None:
    """The job with the right to push runs on the default branch and on no pull request."""
    assert yaml.safe_load(TEXT)["jobs"]["publish"]["if"] == (
        "github.event_name != 'pull_request' && "
        "github.ref_name == github.event.repository.default_branch"
    )


def test_matrix_comes_from_the_plan() -> None:
    """No variant is written into the workflow: the plan's document names them all."""
    jobs = yaml.safe_load(TEXT)["jobs"]
    expected = {"variant": "${{ fromJSON(needs.plan.outputs.plan).variants }}"}
    assert [jobs[name]["strategy"]["matrix"] for name in ("check", "publish")] == [expected] * 2


def test_every_job_ends() -> None:
    """Every job has a time limit of at most three hours."""
    limits = [job["timeout-minutes"] for job in yaml.safe_load(TEXT)["jobs"].values()]
    assert all(0 < limit <= 180 for limit in limits)
