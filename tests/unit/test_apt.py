"""Reading what apt knows."""

from strata.apt import IndexTarget, install_commands, parse_index_targets

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
