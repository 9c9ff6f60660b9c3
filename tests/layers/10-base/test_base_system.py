"""What the base brings: tools, locales, time zones, certificates; and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

TOOLS = {
    "curl --version": "curl 7",
    "git --version": "git version 2",
    "less --version": "less ",
    "nano --version": "GNU nano",
    "ps --version": "ps from procps-ng",
    "rsync --version": "rsync  version 3",
    "ssh -V 2>&1": "OpenSSH_",
    "tini --version": "tini version 0.",
}


@pytest.mark.parametrize("command", sorted(TOOLS))
def test_tools_run(layer: Layer, command: str) -> None:
    """Each tool that people miss is there and tells its version."""
    said = layer.out(command)
    family = TOOLS[command].rstrip("0123456789")
    assert said.lstrip().startswith(family)


def test_locales(layer: Layer) -> None:
    """The two locales that people expect are there."""
    assert {"C.utf8", "en_US.utf8"} <= set(layer.lines("locale -a"))


@pytest.mark.parametrize("lang", ["", "LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8"])
@pytest.mark.parametrize("program", ["perl -e 1", "bash -c true", "bash -lc true", "git --version"])
def test_no_locale_warning(layer: Layer, lang: str, program: str) -> None:
    """Programs accept the image's locale and the American one without a warning."""
    done = layer.host.run(f"env {lang} {program}")
    assert (done.rc, done.stderr) == (0, "")


def test_default_locale(layer: Layer) -> None:
    """The image's own locale is C.UTF-8: English, sorted by bytes, and everything is UTF-8."""
    assert layer.out("echo $LANG; locale charmap").splitlines() == ["C.UTF-8", "UTF-8"]


def test_time_zone(layer: Layer) -> None:
    """TZ is obeyed, and without it the time is UTC."""
    assert layer.out("TZ=Asia/Tokyo date --date=@0 +%H:%M%z") == "09:00+0900"
    assert layer.out("date --date=@0 +%H:%M%z") == "00:00+0000"


def test_certificates(layer: Layer) -> None:
    """The certificates of the public authorities are where TLS libraries look."""
    count = layer.out("grep -c 'BEGIN CERTIFICATE' /etc/ssl/certs/ca-certificates.crt")
    assert int(count) > 100
    assert layer.host.file("/etc/ssl/certs/ca-certificates.crt").mode == 0o644


def test_names_of_services(layer: Layer) -> None:
    """The service names that Python's socket module reads are there."""
    assert layer.out("getent services ssh").split() == ["ssh", "22/tcp"]


@pytest.mark.parametrize(
    "folder", ["/var/lib/apt/lists", "/var/cache/apt", "/var/log", "/run", "/var/cache/ldconfig"]
)
def test_no_leftovers(layer: Layer, folder: str) -> None:
    """The package manager's lists, caches and logs are not in the image."""
    assert layer.find("-type f", folder) == []


def test_no_backups(layer: Layer) -> None:
    """No backup that differs from build to build, and no lock file, is in the image."""
    names = ("passwd-", "group-", "shadow-", "gshadow-", "subuid-", "subgid-", ".pwd.lock")
    assert [name for name in names if layer.host.file(f"/etc/{name}").exists] == []
    assert layer.find("-name '*-old'", "/var/lib/dpkg /var/cache/debconf") == []


def test_nothing_of_the_build(layer: Layer) -> None:
    """What the build mounts is gone, and the temporary folders are empty but for this test's."""
    assert layer.find("-mindepth 1", "/mnt") == []
    assert layer.find("-mindepth 1", "/var/tmp") == []  # noqa: S108


def test_packages_are_whole(layer: Layer) -> None:
    """Every Debian package is installed and configured."""
    states = set(layer.lines("dpkg-query --show --showformat '${db:Status-Abbrev}\\n'"))
    assert states == {"ii "}
