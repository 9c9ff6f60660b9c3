"""Which installers a page lists."""

from __future__ import annotations

from strata.upstream.installers import newest_release

NAME = "Miniconda3-py312_26.7.1-1-Linux-{arch}.sh"
BOTH = ("linux/amd64", "linux/arm64")


def page(*rows: tuple[str, str]) -> str:
    """Return a page like the one of the installers' site."""
    lines = "".join(
        f'<tr>\n<td><a href="{name}">{name}</a></td>\n<td class="s">155.5M</td>\n'
        f"<td>2026-07-29 10:00:00</td>\n<td>{sha256}</td>\n</tr>\n"
        for name, sha256 in rows
    )
    return f'<html><a href="../">up</a><table>\n{lines}</table></html>\n'


def row(version: str, machine: str, sha256: str = "") -> tuple[str, str]:
    """Return the row of one installer."""
    return f"Miniconda3-{version}-Linux-{machine}.sh", sha256


def test_the_newest_version_for_all_platforms_is_found() -> None:
    """By number, not by letter; one that lacks a platform does not count."""
    release = newest_release(
        page(
            row("latest", "x86_64", "f" * 64),
            row("py312_26.9.0-1", "x86_64", "1" * 64),
            row("py312_26.9.0-1", "aarch64", "2" * 64),
            row("py312_26.10.0-1", "x86_64", "3" * 64),
            row("py312_26.10.0-1", "aarch64", "4" * 64),
            row("py312_26.11.0-1", "x86_64", "5" * 64),
            row("py313_27.1.0-1", "x86_64", "6" * 64),
            row("py313_27.1.0-1", "aarch64", "7" * 64),
        ),
        NAME,
        BOTH,
    )
    assert release is not None
    assert release.name == "Miniconda3-py312_26.10.0-1-Linux-{arch}.sh"
    assert release.sha256 == {"linux/amd64": "3" * 64, "linux/arm64": "4" * 64}


def test_a_hash_that_is_not_published_is_empty() -> None:
    """So that it is computed: the hash of the next file is never taken for it."""
    release = newest_release(
        page(row("py312_26.7.1-1", "x86_64"), row("py312_26.7.1-1", "aarch64", "2" * 64)),
        NAME,
        BOTH,
    )
    assert release is not None
    assert release.sha256 == {"linux/amd64": "", "linux/arm64": "2" * 64}


def test_a_name_without_a_version_stands_for_itself() -> None:
    """Its hash may have changed all the same."""
    release = newest_release(page(("install.sh", "a" * 64)), "install.sh", ["linux/amd64"])
    assert release is not None
    assert (release.name, release.sha256) == ("install.sh", {"linux/amd64": "a" * 64})


def test_a_page_without_such_a_file_has_none() -> None:
    """Other versions of Python are other installers, and an older one is never gone back to."""
    older = page(row("py312_26.1.0-1", "x86_64"))
    assert newest_release(older, NAME, ["linux/amd64"]) is None
    assert newest_release(page(row("py39_25.9.1-3", "x86_64")), NAME, ["linux/amd64"]) is None
