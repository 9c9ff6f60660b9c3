"""Reading what apt knows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from strata.apt import IndexTarget, index_targets, install_commands, parse_index_targets
from strata.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path

LISTING = """\
http://mirror.test/debian/|bookworm|bookworm|main|/etc/apt/sources.list.d/debian.sources:1|Packages
http://mirror.test/debian/|bookworm|bookworm|main|/etc/apt/sources.list.d/debian.sources:1|Translations
http://mirror.test/debian/|stable|$(CODENAME)|main|/etc/apt/sources.list:3|Packages
"""


def test_only_package_indexes_are_read() -> None:
    """Translations and other indexes are no places where packages come from."""
    assert [target.suite for target in parse_index_targets(LISTING)] == ["bookworm", "stable"]


def test_a_codename_that_apt_does_not_know_is_the_suite() -> None:
    """Before the first update apt echoes the name of the field: then the suite stands in."""
    assert parse_index_targets(LISTING)[1] == IndexTarget(
        uri="http://mirror.test/debian/",
        suite="stable",
        codename="stable",
        component="main",
        source="/etc/apt/sources.list:3",
    )


def test_installing_asks_nothing_and_waits_for_another_apt() -> None:
    """Lists are fetched first, no question is asked even through sudo, nothing extra comes."""
    update, install = install_commands(("runc", "iptables"))
    assert update[-1] == "update"
    assert install[-4:] == ("install", "--no-install-recommends", "runc", "iptables")
    for command in (update, install):
        assert command[:2] == ("env", "DEBIAN_FRONTEND=noninteractive")
        assert "DPkg::Lock::Timeout=120" in command


@pytest.fixture
def bare_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put first on PATH an apt that names its sources only once it has fetched its lists."""
    (tmp_path / "listing").write_text(LISTING)
    (tmp_path / "apt-get").write_text(
        "#!/bin/sh\n"
        'cd "$(dirname "$0")"\n'
        'case "$*" in\n'
        "  *update) touch lists;;\n"
        "  indextargets*) [ ! -e lists ] || cat listing;;\n"
        "esac\n"
    )
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("strata.apt.architecture", lambda: "amd64")
    return tmp_path


def test_a_bare_machine_fetches_its_lists_first(
    bare_apt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apt names no source before its first update: then, and only then, we run one."""
    monkeypatch.setattr("strata.apt.superuser", tuple)
    assert len(index_targets()) == 2
    (bare_apt / "apt-get").write_text((bare_apt / "apt-get").read_text().replace("touch", "false"))
    assert len(index_targets()) == 2


def test_lists_that_we_may_not_fetch_are_named(
    bare_apt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user than root gets exit 8 and the command to run."""
    monkeypatch.setattr("strata.apt.superuser", lambda: None)
    with pytest.raises(HostError, match="sudo apt-get update") as error:
        index_targets()
    assert error.value.exit_code == 8
    assert not (bare_apt / "lists").exists()
