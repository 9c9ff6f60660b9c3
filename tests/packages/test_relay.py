"""The proxy of image builds: with real sockets on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
from typing import TYPE_CHECKING

import pytest
import requests

from strata.errors import BuildError, HostError
from strata.upstream.recording import Recording
from strata.upstream.relay import mirrored, serve_relay
from tests.packages.site import Answer, Site, serve_site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "127.0.0.1"
UBUNTU = "http://archive.ubuntu.com/ubuntu/dists/noble/InRelease"
INRELEASE = b"signed by Ubuntu"


@pytest.fixture
def site() -> Iterator[Site]:
    """Serve a mirror of the archive on loopback."""
    with serve_site() as served:
        served.put("/mirror/dists/noble/InRelease", INRELEASE)
        yield served


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """Begin a recording in an empty folder."""
    return Recording(tmp_path / "http.json", tmp_path / "files")


def get(proxy: str, url: str, **headers: str) -> requests.Response:
    """Ask by the proxy, whatever this machine's own is."""
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, proxies={"http": proxy}, headers=headers, timeout=10)


def without_password(proxy: str) -> str:
    """Return the proxy's URL as a stranger would guess it."""
    return f"http://{proxy.rpartition('@')[2]}"


def connect(proxy: str, target: str) -> tuple[str, socket.socket]:
    """Ask the proxy for a tunnel; return the first line of its answer, and the connection."""
    credentials, _, address = proxy.removeprefix("http://").rpartition("@")
    host, _, port = address.partition(":")
    plug = socket.create_connection((host, int(port)), timeout=10)
    token = base64.b64encode(credentials.encode()).decode()
    plug.sendall(
        f"CONNECT {target} HTTP/1.1\r\nProxy-Authorization: Basic {token}\r\n\r\n".encode()
    )
    return plug.recv(4096).decode().splitlines()[0], plug


@pytest.fixture
def echo() -> Iterator[str]:
    """Answer each connection with what it says; yield HOST:PORT."""
    with socket.create_server((HOST, 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"echo " + connection.recv(100))

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"{HOST}:{server.getsockname()[1]}"
        thread.join()


def test_the_mirror_is_asked_in_place_of_the_archive(site: Site) -> None:
    """With its own password, of which the build knows nothing; other places stay."""
    mirror = site.address.replace("http://", "http://ada:s3cr3t@") + "/mirror/"
    other = site.put("/other", b"plain")
    with serve_relay(HOST, mirror=mirror) as proxy:
        assert get(proxy, UBUNTU).content == INRELEASE
        assert get(proxy, other).content == b"plain"
    (_, mirrors_headers), (_, others_headers) = site.asked
    assert mirrors_headers["authorization"] == "Basic YWRhOnMzY3IzdA=="
    assert "authorization" not in others_headers
    assert "s3cr3t" not in proxy


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://security.ubuntu.com/ubuntu/pool/a.deb", "https://m.example/pool/a.deb"),
        ("http://ports.ubuntu.com/ubuntu-ports/pool/a.deb", "https://m.example/pool/a.deb"),
        ("http://archive.ubuntu.com/other", "http://archive.ubuntu.com/other"),
        ("http://debian.example/debian/pool/a.deb", "http://debian.example/debian/pool/a.deb"),
    ],
)
def test_a_mirror_stands_for_ubuntus_archives_alone(url: str, expected: str) -> None:
    """All three of them: whichever the machine's platform uses."""
    assert mirrored(url, "https://m.example/") == expected
    assert mirrored(url, "") == url


def test_strangers_are_turned_away(site: Site) -> None:
    """Who has not been told the password gets 407, and nothing is asked for them."""
    with serve_relay(HOST) as proxy:
        assert get(without_password(proxy), f"{site.address}/x").status_code == 407
    assert site.asked == []


def test_what_apt_asks_for_reaches_the_server(site: Site) -> None:
    """Conditions and parts go through, and so do their answers; 404 stays 404."""
    url = site.put("/file", Answer(body=b"0123456789", headers={"ETag": '"1"'}))
    with serve_relay(HOST) as proxy:
        answer = get(proxy, url, Range="bytes=4-")
        assert (answer.status_code, answer.content) == (206, b"456789")
        assert answer.headers["Content-Range"] == "bytes 4-9/10"
        assert get(proxy, url).headers["ETag"] == '"1"'
        assert get(proxy, f"{site.address}/none").status_code == 404


def test_a_server_that_is_not_there_is_a_bad_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    """The build is told, and the log says which address and why, without a secret."""
    with serve_site() as gone:
        mirror = gone.address.replace("http://", "http://ada:s3cr3t@") + "/"
    with serve_relay(HOST, mirror=mirror) as proxy:
        assert get(proxy, UBUNTU).status_code == 502
    said = capsys.readouterr().err
    assert "Connection refused" in said
    assert "s3cr3t" not in said


def test_what_breaks_on_the_way_is_not_taken_for_whole(site: Site) -> None:
    """The length that was announced does not arrive."""
    url = site.put("/file", Answer(body=b"0123456789", sent=4))
    with serve_relay(HOST) as proxy, pytest.raises(requests.RequestException):
        get(proxy, url)


def test_what_was_written_down_is_served_without_any_server(
    site: Site, recording: Recording, tmp_path: Path
) -> None:
    """By the address that the build uses; what was not there then is not there now."""
    with serve_relay(HOST, mirror=f"{site.address}/mirror/", recording=recording) as proxy:
        assert get(proxy, UBUNTU).content == INRELEASE
        assert get(proxy, f"{UBUNTU}.gpg").status_code == 404
    sha256 = hashlib.sha256(INRELEASE).hexdigest()
    table = json.loads((tmp_path / "http.json").read_text())
    assert table == {"schema": "strata.http/1", "urls": {UBUNTU: sha256}}
    asked = len(site.asked)
    again = Recording(tmp_path / "http.json", tmp_path / "files")
    with serve_relay(HOST, recording=again, replay=True) as proxy:
        assert get(proxy, UBUNTU).content == INRELEASE
        assert get(proxy, f"{UBUNTU}.gpg").status_code == 404
        (tmp_path / "files" / sha256).write_bytes(b"signed by nobody")
        assert get(proxy, UBUNTU).status_code == 502
    assert len(site.asked) == asked


def test_half_a_download_is_not_written_down(site: Site, recording: Recording) -> None:
    """Nor is anything left of it."""
    url = site.put("/file", Answer(body=b"0123456789", sent=4))
    with serve_relay(HOST, recording=recording) as proxy:
        assert get(proxy, url).status_code == 502
    assert (len(recording), recording.find(url)) == (0, None)


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    """Exit code 4, with the command that writes it anew."""
    (tmp_path / "http.json").write_text('{"schema": "another"}')
    with pytest.raises(BuildError, match=r"is no table of strata\.http/1"):
        Recording(tmp_path / "http.json", tmp_path)


def test_tls_passes_through(echo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As bytes that nobody here can read."""
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serve_relay(HOST) as proxy:
        line, plug = connect(proxy, echo)
        with plug:
            plug.sendall(b"hello")
            assert (line, plug.recv(100)) == (
                "HTTP/1.1 200 Connection established",
                b"echo hello",
            )


@pytest.fixture
def company() -> Iterator[tuple[str, list[bytes]]]:
    """Run a proxy that wants ada's password; yield HOST:PORT, and what it has been asked."""
    asked: list[bytes] = []
    with socket.create_server((HOST, 0)) as server:

        def answer() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    asked.append(connection.recv(4096))
                    if b"Proxy-Authorization: Basic YWRhOnMzY3IzdA==" not in asked[-1]:
                        connection.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
                        continue
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                    connection.sendall(b"echo " + connection.recv(100))

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"{HOST}:{server.getsockname()[1]}", asked
        thread.join()


def test_tls_passes_through_the_companys_proxy(
    company: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the password that mirrors.toml has for it; without, the build is told."""
    address, asked = company
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serve_relay(HOST) as proxy:
        monkeypatch.setenv("https_proxy", f"http://{address}")
        line, plug = connect(proxy, "archive.invalid:443")
        plug.close()
        assert line == "HTTP/1.1 502 Bad Gateway"
        monkeypatch.setenv("https_proxy", f"http://ada:s3cr3t@{address}")
        line, plug = connect(proxy, "archive.invalid:443")
        with plug:
            plug.sendall(b"hello")
            assert (line[:12], plug.recv(100)) == ("HTTP/1.1 200", b"echo hello")
    assert asked[-1].startswith(b"CONNECT archive.invalid:443 HTTP/1.1\r\n")


def test_tls_cannot_be_written_down(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rather than be missing later: the build ends, and the log says why."""
    with serve_relay(HOST, recording=recording) as proxy:
        line, plug = connect(proxy, "archive.ubuntu.com:443")
        plug.close()
    assert line == "HTTP/1.1 403 Forbidden"
    assert "archive.ubuntu.com:443 is asked by TLS" in capsys.readouterr().err


def test_an_engine_elsewhere_cannot_be_served() -> None:
    """Its bridge is not an address of this machine: exit code 8."""
    with pytest.raises(HostError) as failure, serve_relay("192.0.2.1"):  # RFC 5737
        pass
    assert failure.value.exit_code == 8
