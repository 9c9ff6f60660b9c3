"""Files from real servers on loopback, with all that can go wrong on the way."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from strata.errors import BuildError, DefinitionError, HostError, LockError
from strata.upstream.download import Wanted, download
from tests.packages.site import Answer, Site, serve_site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def site() -> Iterator[Site]:
    """Serve on loopback."""
    with serve_site() as served:
        yield served


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Name a folder for what is kept; it isn't there yet."""
    return tmp_path / "cache"


def wanted(url: str, sha256: str = SHA256) -> Wanted:
    """Describe the package that the tests are after."""
    return Wanted(
        name="tool-1.0-h0_0.conda",
        url=url,
        sha256=sha256,
        where="locks/cpu/conda-lock.yml",
        repin="./inv lock --variant cpu",
    )


def get(url: str, cache: Path, sha256: str = SHA256) -> tuple[Path, list[float]]:
    """Download without waiting; return the file and the pauses that would have been made."""
    pauses: list[float] = []
    return download(wanted(url, sha256), cache, pause=pauses.append), pauses


def names(cache: Path) -> list[str]:
    """Return what a folder holds."""
    return sorted(path.name for path in cache.iterdir())


def test_a_file_is_kept_under_its_hash_and_asked_for_once(site: Site, cache: Path) -> None:
    """The second call finds it whole, and asks nobody."""
    url = site.put("/linux-64/tool.conda", BODY)
    file, pauses = get(url, cache)
    assert (file.read_bytes(), file.name, pauses) == (BODY, SHA256, [])
    assert get(url, cache)[0] == file
    assert site.paths() == ["/linux-64/tool.conda"]
    assert names(cache) == [SHA256]


def test_a_damaged_file_is_fetched_again(site: Site, cache: Path) -> None:
    """What is in the cache is believed only as far as its hash goes."""
    url = site.put("/tool", BODY)
    get(url, cache)[0].write_bytes(BODY[:-1] + b"!")
    assert get(url, cache)[0].read_bytes() == BODY
    assert len(site.asked) == 2


def test_a_server_in_trouble_is_asked_again(site: Site, cache: Path) -> None:
    """500 twice and then the file: two pauses, each longer than the last."""
    url = site.put("/tool", Answer(status=500), Answer(status=500), Answer(body=BODY))
    file, pauses = get(url, cache)
    assert (file.read_bytes(), pauses) == (BODY, [0.5, 1.0])


def test_a_server_that_stays_in_trouble_fails_the_build(site: Site, cache: Path) -> None:
    """After five attempts the error has the address and the status; the cache stays empty."""
    url = site.put("/tool", Answer(status=503))
    with pytest.raises(BuildError) as failure:
        get(url, cache)
    (problem,) = failure.value.problems
    assert problem.where == "tool-1.0-h0_0.conda"
    assert problem.what == f"{url}: answers 503 Service Unavailable (5 attempts)"
    assert (failure.value.exit_code, len(site.asked), names(cache)) == (4, 5, [])


def test_a_broken_connection_is_taken_up_where_it_ended(site: Site, cache: Path) -> None:
    """The second request asks for the rest, and only that is sent."""
    url = site.put("/tool", Answer(body=BODY, sent=150_000), Answer(body=BODY))
    assert get(url, cache)[0].read_bytes() == BODY
    assert [headers.get("range") for _, headers in site.asked] == [None, "bytes=131072-"]


def test_where_parts_are_not_served_it_starts_over(site: Site, cache: Path) -> None:
    """A server that ignores the range sends all, and all of that is taken."""
    site.ranges = False
    url = site.put("/tool", Answer(body=BODY, sent=150_000), Answer(body=BODY))
    assert get(url, cache)[0].read_bytes() == BODY


def test_the_next_run_goes_on_where_the_last_one_ended(site: Site, cache: Path) -> None:
    """What a run that failed has got is kept beside, under a name that nobody takes for whole."""
    url = site.put("/tool", Answer(body=BODY, sent=70_000), Answer(status=503))
    with pytest.raises(BuildError, match="5 attempts"):
        get(url, cache)
    assert names(cache) == [f".{SHA256}.part"]
    site.put("/tool", BODY)
    assert get(url, cache)[0].read_bytes() == BODY
    assert site.asked[-1][1]["range"] == "bytes=65536-"


@pytest.mark.parametrize("left", [b"x" * 7, b"x" * (len(BODY) + 1)])
def test_a_useless_beginning_is_thrown_away(site: Site, cache: Path, left: bytes) -> None:
    """Whatever an earlier attempt left, the right file comes of it."""
    cache.mkdir()
    (cache / f".{SHA256}.part").write_bytes(left)
    assert get(site.put("/tool", BODY), cache)[0].read_bytes() == BODY
    assert names(cache) == [SHA256]


def test_a_redirect_is_followed(site: Site, cache: Path) -> None:
    """As far as it leads."""
    site.put("/there", BODY)
    url = site.put("/here", Answer(status=302, headers={"Location": "/there"}))
    assert get(url, cache)[0].read_bytes() == BODY


def test_a_circle_of_redirects_fails_the_build(site: Site, cache: Path) -> None:
    """At once: it would not be another one next time."""
    url = site.put("/here", Answer(status=302, headers={"Location": "/here"}))
    with pytest.raises(BuildError) as failure:
        get(url, cache)
    assert failure.value.problems[0].what == f"{url} redirects in a circle"


def test_another_file_under_the_right_name_is_refused(site: Site, cache: Path) -> None:
    """Exit code 3 with the package, the address and both hashes; nothing is kept."""
    url = site.put("/tool", b"another file")
    with pytest.raises(LockError) as failure:
        get(url, cache)
    found = hashlib.sha256(b"another file").hexdigest()
    (problem,) = failure.value.problems
    assert problem.where == "locks/cpu/conda-lock.yml"
    assert problem.what.splitlines() == [
        "tool-1.0-h0_0.conda is not the file that is pinned",
        f"    from:   {url}",
        f"    pinned: sha256 {SHA256}",
        f"    found:  sha256 {found}",
    ]
    assert (failure.value.exit_code, names(cache), len(site.asked)) == (3, [], 1)


def test_a_missing_file_fails_the_build_at_once(site: Site, cache: Path) -> None:
    """404 is no trouble that passes."""
    with pytest.raises(BuildError) as failure:
        get(f"{site.address}/tool", cache)
    assert failure.value.problems[0].what == f"{site.address}/tool answers 404 Not Found"
    assert (failure.value.exit_code, len(site.asked)) == (4, 1)


@pytest.mark.parametrize("status", [401, 403])
def test_where_a_token_is_needed_the_error_says_so(site: Site, cache: Path, status: int) -> None:
    """And names the page that tells where a token goes."""
    url = site.put("/tool", Answer(status=status))
    with pytest.raises(BuildError, match="wants a token, or another one") as failure:
        get(url, cache)
    assert "docs/mirrors.md" in failure.value.problems[0].fix


def test_a_token_of_the_environment_is_sent_and_never_shown(
    site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`$VAR` in an address is what errors show, and its value what the server sees."""
    monkeypatch.setenv("CHANNEL_TOKEN", "s3cr3t")
    site.put("/s3cr3t/tool", Answer(status=500))
    url = f"{site.address}/$CHANNEL_TOKEN/tool"
    with pytest.raises(BuildError) as failure:
        get(url, cache)
    assert f"{url}: answers 500" in str(failure.value)
    assert "s3cr3t" not in str(failure.value)
    site.put("/s3cr3t/tool", Answer(status=302, headers={"Location": "/s3cr3t/gone"}))
    with pytest.raises(BuildError) as failure:
        get(url, cache)
    assert f"{site.address}/$CHANNEL_TOKEN/gone answers 404" in str(failure.value)
    assert "s3cr3t" not in str(failure.value)
    site.put("/s3cr3t/tool", BODY)
    assert get(url, cache)[0].read_bytes() == BODY


def test_a_variable_that_is_not_set_is_named(cache: Path) -> None:
    """Before anything is asked of anybody."""
    with pytest.raises(DefinitionError, match=r"needs \$NO_SUCH_TOKEN, which is not set"):
        get("https://h.invalid/${NO_SUCH_TOKEN}/tool", cache)


def test_a_password_in_an_address_is_masked(site: Site, cache: Path) -> None:
    """It goes to the server as basic authentication (RFC 7617), and into no message."""
    address = site.address.replace("http://", "http://ada:s3cr3t@")
    with pytest.raises(BuildError) as failure:
        get(f"{address}/tool", cache)
    assert site.asked[0][1]["authorization"] == "Basic YWRhOnMzY3IzdA=="
    assert "s3cr3t" not in str(failure.value)


def test_a_file_without_a_hash_is_never_fetched(site: Site, cache: Path) -> None:
    """A lock that pins nothing is broken: exit code 3."""
    with pytest.raises(LockError, match="has no sha256") as failure:
        get(site.put("/tool", BODY), cache, sha256="")
    assert (failure.value.exit_code, site.asked) == (3, [])


def test_a_closed_port_fails_the_build(cache: Path) -> None:
    """After all attempts, with the reason that people know."""
    with serve_site() as gone:
        address = gone.address
    with pytest.raises(BuildError, match="Connection refused") as failure:
        get(f"{address}/tool", cache)
    assert failure.value.exit_code == 4


def test_a_cache_that_cannot_be_written_is_the_hosts_fault(site: Site, tmp_path: Path) -> None:
    """Exit code 8, with the place and the variable that moves it."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(HostError) as failure:
        get(site.put("/tool", BODY), blocked / "cache")
    assert "STRATA_CACHE" in failure.value.problems[0].fix
