"""What the embedded base is made of, and when a kept one is used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from strata import apt
from strata.apt import IndexTarget
from strata.embedded import base
from strata.embedded.base import Source, base_key, make_base, sources_for
from strata.errors import BuildError, DefinitionError, HostError
from strata.model import BootstrapBase
from strata.workspace import Workspace

BOOTSTRAP = BootstrapBase(suite="bookworm", include=("python3",))
EPOCH = 1_700_000_000
MAIN = Source(uri="http://m.test/debian", suite="bookworm", components=("main",))


def target(uri: str, codename: str, component: str = "main", suite: str = "") -> IndexTarget:
    """Return an index target."""
    return IndexTarget(
        uri=uri, suite=suite or codename, codename=codename, component=component, source="x:1"
    )


TARGETS = (
    target("http://m.test/debian/", "bookworm"),
    target("http://m.test/debian/", "bookworm", "contrib"),
    target("http://m.test/debian/", "bookworm-updates"),
    target("http://m.test/security/", "bookworm-security"),
    target("http://m.test/debian/", "bookworm-backports"),
    target("http://m.test/debian/", "trixie"),
    target("file:///mnt/cd/", "bookworm"),
)


def test_updates_and_security_fixes_are_included() -> None:
    """The release, its updates and its security fixes are taken; other releases and media not."""
    assert [str(source) for source in sources_for("bookworm", TARGETS, "bookworm")] == [
        "deb http://m.test/debian bookworm main contrib",
        "deb http://m.test/debian bookworm-updates main",
        "deb http://m.test/security bookworm-security main",
    ]


def test_a_source_that_says_stable_is_written_with_its_codename() -> None:
    """An image must not move to the next release when "stable" does."""
    stable = (target("http://m.test/debian/", "bookworm", suite="stable"),)
    assert sources_for("bookworm", stable, "") == (MAIN,)


def test_another_debian_uses_its_own_mirror() -> None:
    """A Debian 13 machine that names no Debian 12 finds it where it finds its own release."""
    newer = (target("http://m.test/debian/", "trixie"),)
    assert sources_for("bookworm", newer, "trixie") == (MAIN,)


def test_a_debian_without_the_release_is_told() -> None:
    """A Debian whose apt names no mirror that can be reached: exit 8, with the way out."""
    with pytest.raises(HostError, match="no http") as error:
        sources_for("bookworm", (target("file:/srv/debian/", "trixie"),), "trixie")
    assert error.value.exit_code == 8


def test_another_system_leaves_the_mirror_to_mmdebstrap() -> None:
    """Ubuntu's mirrors have no Debian: no source is named, and the command names none."""
    assert sources_for("bookworm", (target("http://u.test/ubuntu/", "noble"),), "") == ()
    command = base.mmdebstrap_command(BOOTSTRAP, (), "amd64", Path("x.tar"), "root")
    assert command[-2:] == ["bookworm", "x.tar"]


def test_a_password_in_a_mirror_is_refused_and_masked() -> None:
    """It would be kept in every image; neither it nor the user is repeated in the message."""
    secret = (target("https://joe:hunter2@m.test/debian/", "bookworm"),)
    with pytest.raises(DefinitionError) as error:
        sources_for("bookworm", secret, "")
    assert "https://***@m.test/debian/" in str(error.value)
    assert "joe" not in str(error.value)
    assert "hunter2" not in str(error.value)


def test_everything_that_decides_a_base_is_in_its_key() -> None:
    """Another package, time, mirror or architecture is another base."""
    keys = {
        base_key(BOOTSTRAP, EPOCH, (MAIN,), "amd64"),
        base_key(BootstrapBase(suite="bookworm", include=()), EPOCH, (MAIN,), "amd64"),
        base_key(BOOTSTRAP, EPOCH + 1, (MAIN,), "amd64"),
        base_key(BOOTSTRAP, EPOCH, (), "amd64"),
        base_key(BOOTSTRAP, EPOCH, (MAIN,), "arm64"),
    }
    assert len(keys) == 5
    assert base_key(BOOTSTRAP, EPOCH, (MAIN,), "amd64") in keys


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Make a workspace on a machine with a mirror and an mmdebstrap that writes "base N"."""
    programs = tmp_path / "bin"
    programs.mkdir()
    count = tmp_path / "count"
    stub = programs / "mmdebstrap"
    stub.write_text(
        "#!/bin/sh\n"
        f"echo x >>{count}\n"
        '[ ! -e "$0.silent" ] || exit 0\n'
        "for word; do case $word in *.tar.*)\n"
        '  [ ! -e "$0.empty" ] || { : >"$word"; exit 0; }\n'
        '  echo "base $SOURCE_DATE_EPOCH" >"$word"\n'
        '  [ ! -e "$0.fails" ] || { echo no mirror; exit 25; }\n'
        "esac; done\n"
    )
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(apt, "architecture", lambda: "amd64")
    monkeypatch.setattr(apt, "index_targets", lambda: TARGETS)
    monkeypatch.setattr(apt, "proxies", dict)
    return Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")


def calls(workspace: Workspace) -> int:
    """Return how often mmdebstrap ran."""
    return len((workspace.root / "count").read_text().splitlines())


def test_a_base_is_made_once(workspace: Workspace) -> None:
    """The second call takes the kept file, whose sha256 stands beside it."""
    tar = make_base(workspace, BOOTSTRAP, EPOCH)
    assert make_base(workspace, BOOTSTRAP, EPOCH) == tar
    assert calls(workspace) == 1
    assert tar.read_text() == f"base {EPOCH}\n"
    assert base.checksum_file(tar).read_text() == f"{base.sha256(tar)}  {tar.name}\n"


@pytest.mark.parametrize("damage", ["truncated", "changed", "no checksum"])
def test_a_damaged_base_is_made_again(workspace: Workspace, damage: str) -> None:
    """A kept file that lost or changed a byte, or its sha256, is not used."""
    tar = make_base(workspace, BOOTSTRAP, EPOCH)
    whole = tar.read_bytes()
    if damage == "truncated":
        tar.write_bytes(whole[:-1])
    elif damage == "changed":
        tar.write_bytes(b"B" + whole[1:])
    else:
        base.checksum_file(tar).unlink()
    assert make_base(workspace, BOOTSTRAP, EPOCH).read_bytes() == whole
    assert calls(workspace) == 2


def test_a_failed_bootstrap_leaves_nothing(workspace: Workspace) -> None:
    """No half-written file is kept, the error has the last lines and exit code 4."""
    (workspace.root / "bin/mmdebstrap.fails").touch()
    with pytest.raises(BuildError, match="no mirror") as error:
        make_base(workspace, BOOTSTRAP, EPOCH)
    assert error.value.exit_code == 4
    assert list((workspace.cache / "base").iterdir()) == []


@pytest.mark.parametrize("fault", ["silent", "empty"])
def test_a_bootstrap_that_writes_nothing_has_failed(workspace: Workspace, fault: str) -> None:
    """Exit 0 without a file, or with an empty one, names the file and the log: exit code 4."""
    (workspace.root / f"bin/mmdebstrap.{fault}").touch()
    with pytest.raises(BuildError) as error:
        make_base(workspace, BOOTSTRAP, EPOCH)
    (problem,) = error.value.problems
    assert (problem.where, error.value.exit_code) == ("embedded base", 4)
    assert problem.what.startswith("mmdebstrap ended with 0 and has written no ")
    assert problem.fix.startswith(f"read {workspace.build}/logs/base.log; ")
    assert problem.fix.endswith(str(workspace.root / "bin/mmdebstrap"))
    assert list((workspace.cache / "base").iterdir()) == []


def test_the_bootstrap_is_asked_for_in_full(tmp_path: Path) -> None:
    """Release, packages, sources and target stand in the command, documentation is kept out."""
    command = base.mmdebstrap_command(BOOTSTRAP, (MAIN,), "arm64", tmp_path / "x.tar", "root")
    assert command[-3:] == ["bookworm", str(tmp_path / "x.tar"), str(MAIN)]
    assert {"--variant=minbase", "--architectures=arm64", "--include=python3"} <= set(command)
    assert any("'path-exclude=/usr/share/doc/*'" in word for word in command)
    nothing = BootstrapBase(suite="bookworm", include=())
    assert not any(
        word.startswith("--include")
        for word in base.mmdebstrap_command(nothing, (MAIN,), "amd64", tmp_path / "x.tar", "root")
    )


def test_the_hooks_leave_licences_and_no_trace_of_the_host(tmp_path: Path) -> None:
    """Run on a small tree, the hooks delete what they should and nothing else."""
    kept = (
        "usr/share/doc/bash/copyright",
        "usr/share/locale/locale.alias",
        "etc/dpkg/dpkg.cfg.d/unread",
        "etc/passwd",
    )
    gone = (
        "usr/share/doc/bash/README",
        "usr/share/man/man1/bash.1.gz",
        "usr/share/info/dir",
        "usr/share/locale/de/LC_MESSAGES/bash.mo",
        "etc/hostname",
        "etc/resolv.conf",
        "var/log/apt/term.log",
        "var/cache/ldconfig/aux-cache",
        "var/lib/dpkg/status-old",
    )
    for name in (*kept, *gone, "etc/machine-id"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("host")
    command = base.mmdebstrap_command(BOOTSTRAP, (MAIN,), "amd64", tmp_path / "x.tar", "root")
    for word in command:
        if "-hook=" in word:
            script = word.partition("-hook=")[2]
            subprocess.run(["sh", "-ec", script, "exec", str(tmp_path)], check=True)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {*kept, "etc/machine-id"}
    assert (tmp_path / "etc/machine-id").read_text() == ""
    assert (tmp_path / "usr/share/man/man1").is_dir()
    settings = (tmp_path / "etc/dpkg/dpkg.cfg.d/unread").read_text()
    assert settings.splitlines() == list(base.UNREAD)


def test_the_callers_environment_stays_outside() -> None:
    """Of ours, the packages' scripts see where things are, and no setting of Python's."""
    ours = {"PATH": "/bin", "http_proxy": "http://p", "PYTHONDONTWRITEBYTECODE": "", "LANG": "de"}
    assert base.environment(7, ours) == {
        "PATH": "/bin",
        "http_proxy": "http://p",
        "SOURCE_DATE_EPOCH": "7",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
