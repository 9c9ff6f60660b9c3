"""A connection to HOST:PORT, through this machine's proxy where it has one."""

from __future__ import annotations

import base64
import http.client
import socket
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from requests.utils import get_environ_proxies

if TYPE_CHECKING:
    from urllib.parse import SplitResult

TIMEOUT = 20.0  # seconds to connect
HTTPS = 443


class TunnelError(Exception):
    """There is no way to that place; the text says why, without a secret."""


def open_tunnel(target: str) -> socket.socket:
    """Return a connected socket to `HOST:PORT`; raises `TunnelError`."""
    parts = urlsplit(f"//{target}")
    host, port = parts.hostname or "", parts.port or HTTPS
    proxy = get_environ_proxies(f"https://{target}").get("https", "")
    try:
        if not proxy:
            return socket.create_connection((host, port), timeout=TIMEOUT)
        return _by_proxy(urlsplit(proxy), host, port)
    except (OSError, http.client.HTTPException) as failed:
        raise TunnelError(f"{type(failed).__name__}: {failed}") from None


def _by_proxy(proxy: SplitResult, host: str, port: int) -> socket.socket:
    kind = http.client.HTTPSConnection if proxy.scheme == "https" else http.client.HTTPConnection
    connection = kind(proxy.hostname or "", proxy.port, timeout=TIMEOUT)
    headers = {}
    if proxy.username:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    # Not set_tunnel: with it an HTTPSConnection would begin TLS with the target itself.
    connection.putrequest("CONNECT", f"{host}:{port}", skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": f"{host}:{port}", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.response_class(connection.sock, method="CONNECT")
    answer.begin()
    if answer.status != http.client.OK:
        connection.close()
        raise TunnelError(f"the proxy answers {answer.status} {answer.reason}")
    tunnel: socket.socket = connection.sock
    return tunnel
