"""The table of checks, and what the doctor prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.checks import CHECKS, judge, markdown
from doctor.facts import CONTAINER, HOST, Unknown
from doctor.findings import Finding, Remark, is_fit, join
from doctor.main import main
from doctor.report import render_json, render_table
from tests.unit.doctor_machines import DGX, LAPTOP

ROOT = Path(__file__).parents[2]
FINDINGS = [
    Finding("memory", "ok", "64 GiB"),
    Finding("open-files", "error", "limit 64", "docker run --ulimit nofile=65536"),
    Finding("clocks", "unknown", "no NVML"),
]


@pytest.mark.parametrize("machine", [LAPTOP, DGX])
def test_every_check_makes_one_finding(machine: object) -> None:
    """In a container every check speaks exactly once, in the table's order."""
    found = judge(machine)  # type: ignore[arg-type]
    assert [finding.id for finding in found] == [check.id for check in CHECKS]


def test_a_host_has_fewer_checks() -> None:
    """What belongs to a process in a container is not asked on the host."""
    host = replace(DGX, scope=HOST, torch=Unknown("not on the host"))
    ids = [finding.id for finding in judge(host)]
    assert ids == [check.id for check in CHECKS if HOST in check.scopes]
    assert "open-files" not in ids
    assert "driver" in ids


def test_good_machines_are_fit() -> None:
    """A laptop without GPU and eight H100 have nothing to mend."""
    for machine in (LAPTOP, DGX):
        worse = [f.id for f in judge(machine) if f.severity not in ("ok", "info")]
        assert worse == []
    assert {f.id for f in judge(DGX) if f.severity != "ok"} == set()


def test_the_documentation_has_the_table() -> None:
    """docs/doctor.md lists the checks as the program has them."""
    assert markdown() in (ROOT / "docs/doctor.md").read_text()


def test_the_document_has_its_schema() -> None:
    """Keys and values of --json are a contract."""
    assert json.loads(render_json(CONTAINER, FINDINGS)) == {
        "schema": "strata.doctor/1",
        "scope": "container",
        "verdict": "unfit",
        "counts": {"ok": 1, "info": 0, "warning": 0, "error": 1, "unknown": 1},
        "findings": [
            {"id": "memory", "severity": "ok", "evidence": "64 GiB", "fix": None},
            {
                "id": "open-files",
                "severity": "error",
                "evidence": "limit 64",
                "fix": "docker run --ulimit nofile=65536",
            },
            {"id": "clocks", "severity": "unknown", "evidence": "no NVML", "fix": None},
        ],
    }


def test_people_get_a_table() -> None:
    """An error stands out, its fix stands below it, and the last line counts."""
    assert render_table("this container", FINDINGS).splitlines() == [
        "this container",
        "",
        "memory      ok       64 GiB",
        "open-files  ERROR    limit 64",
        "                     fix: docker run --ulimit nofile=65536",
        "clocks      unknown  no NVML",
        "",
        "verdict: unfit (1 ok, 1 error, 1 unknown)",
    ]


def test_only_errors_are_unfit() -> None:
    """A warning or an unknown doesn't fail a machine."""
    assert is_fit([FINDINGS[0], FINDINGS[2], Finding("x", "warning", "slow", "mend it")])
    assert not is_fit(FINDINGS)


def test_a_fault_without_a_fix_is_refused() -> None:
    """Nobody gets a warning or an error without a way out, nor a severity that isn't one."""
    for severity in ("warning", "error"):
        with pytest.raises(ValueError, match="without a fix"):
            Finding("x", severity, "broken")
    with pytest.raises(ValueError, match="no severity 'fatal'"):
        Finding("x", "fatal", "broken", "mend it")


def test_the_worst_remark_decides() -> None:
    """Several remarks are one finding: all texts, each fix once, the worst severity."""
    remarks = [
        Remark("info", "a"),
        Remark("warning", "b", "mend"),
        Remark("unknown", "c"),
        Remark("warning", "d", "mend"),
    ]
    assert join("x", remarks, "fine") == Finding("x", "warning", "a; b; c; d", "mend")
    assert join("x", remarks[:1] + remarks[2:3], "fine").severity == "unknown"
    worst = join("x", [*remarks, Remark("error", "e", "mend")], "fine")
    assert worst.severity == "error"
    assert join("x", [], "fine") == Finding("x", "ok", "fine")


@pytest.mark.parametrize("argv", [["--wrong"], ["--only", "nothing"], ["--only", "engine"]])
def test_bad_arguments_are_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What can't be done is refused with exit code 2 and a fix, before anything is read."""
    with pytest.raises(SystemExit) as refused:
        main(argv)
    said = capsys.readouterr()
    assert (refused.value.code, said.out) == (2, "")
    assert said.err.startswith("error: strata-doctor: ")
    assert said.err.splitlines()[1] == "  fix: strata-doctor --help shows every argument"
