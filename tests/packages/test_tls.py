"""A company's certificates: a server that only they vouch for."""

from __future__ import annotations

import hashlib
import ipaddress
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from strata.errors import BuildError
from strata.upstream.download import Wanted, download
from strata.upstream.mirrors import Mirrors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = b"a package"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Write a certificate for 127.0.0.1 that vouches for itself, with its key behind it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "company.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "company.pem"
    file.write_bytes(certificate.public_bytes(encoding) + private)
    return file


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Keep quiet about who hangs up since it trusts us not."""


@pytest.fixture
def url(bundle: Path) -> Iterator[str]:
    """Serve a package by TLS, with that certificate; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(bundle)
    server = _Server(("127.0.0.1", 0), Handler)
    # The handshake waits for the first read, in the request's own thread.
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/tool"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_is_trusted_by_the_companys_certificates_alone(
    url: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ca_bundle the download ends with exit code 4 and says where certificates go."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    wanted = Wanted(
        name="tool",
        url=url,
        sha256=hashlib.sha256(BODY).hexdigest(),
        where="locks/cpu/conda-lock.yml",
        repin="./inv lock",
    )
    with pytest.raises(BuildError, match="the certificate is not trusted") as failure:
        download(wanted, tmp_path / "cache")
    assert "ca_bundle" in failure.value.problems[0].fix
    for name, value in Mirrors(ca_bundle=str(bundle)).environment({}).items():
        monkeypatch.setenv(name, value)
    assert download(wanted, tmp_path / "cache").read_bytes() == BODY
