"""Tell whether the container's Jupyter server answers: the image's health check.

Exit code 0 where every server answers, and where none was asked for (a container
that runs another command); 1 where one doesn't, with the reason on stdout.

A server is found by its process, and its port by that process's sockets: nothing
is guessed from port, base URL, proxy variables, home or runtime folder.  Any answer
counts, whatever page it is.
"""

from __future__ import annotations

import http.client
import os
import ssl
import sys
from pathlib import Path

PROC = Path("/proc")
PROGRAMS = {"jupyter-lab", "jupyter-server", "jupyter-notebook", "jupyter-nbclassic"}
ASKS_FOR_IT = {"serve", "jupyter", *PROGRAMS}
LISTEN = "0A"  # linux/include/net/tcp_states.h
PATIENCE = 3  # seconds; the engine's own limit is 5
LOOPBACKS = {"tcp": "127.0.0.1", "tcp6": "::1"}


def words(process: Path) -> list[str]:
    """Return a process's arguments."""
    return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")


def servers() -> list[Path]:
    """Return the processes of Jupyter servers in this container."""
    found = []
    for process in PROC.glob("[0-9]*"):
        try:
            argv = words(process)
            is_ours = (process / "ns/mnt").readlink() == (PROC / "self/ns/mnt").readlink()
        except OSError:  # it has ended, or is another user's
            continue
        if is_ours and PROGRAMS & {Path(word).name for word in argv[:2]}:
            found.append(process)
    return found


def addresses(process: Path) -> list[tuple[str, int]]:
    """Return host and port of what a process listens on."""
    sockets = {str(link.readlink()) for link in (process / "fd").iterdir()}
    found = []
    for family, loopback in LOOPBACKS.items():
        table = process / "net" / family
        # An image may run where IPv6 is off.
        lines = table.read_text().splitlines()[1:] if table.exists() else []
        for fields in map(str.split, lines):
            if fields[3] == LISTEN and f"socket:[{fields[9]}]" in sockets:
                host, _, port = fields[1].partition(":")
                found.append((_spoken(host) or loopback, int(port, 16)))
    return found


def _spoken(host: str) -> str:
    """Return an IPv4 address that /proc writes in hexadecimal; "" for any other, or for all."""
    octets = bytes.fromhex(host)[::-1] if len(host) == len("0100007F") else b""
    return ".".join(map(str, octets)) if any(octets) else ""


def answers(host: str, port: int, page: str) -> bool:
    """Tell whether a server at that port says anything, by HTTP or else by HTTPS."""
    context = ssl._create_unverified_context()  # noqa: S323, SLF001 - it is this container
    for line in (
        http.client.HTTPConnection(host, port, timeout=PATIENCE),
        http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=context),
    ):
        try:
            line.request("GET", page)
            return line.getresponse().status < http.client.INTERNAL_SERVER_ERROR
        except TimeoutError:
            return False
        except (OSError, http.client.HTTPException):
            continue  # a port that speaks TLS hangs up on plain HTTP
        finally:
            line.close()
    return False


def main() -> str:
    """Return what is wrong, nothing where all is well."""
    found = servers()
    if not found and ASKS_FOR_IT & {Path(word).name for word in words(PROC / "1")}:
        return "no Jupyter server runs"
    # Asked for a page that isn't there, the server would log a warning each time.
    base = os.environ.get("JUPYTER_BASE_URL", "").strip("/")
    page = f"/{base}/api" if base else "/api"
    for process in found:
        listening = addresses(process)
        if not listening:
            return f"the Jupyter server (pid {process.name}) does not listen yet"
        silent = [f"{host}:{port}" for host, port in listening if not answers(host, port, page)]
        if silent:
            return f"the Jupyter server (pid {process.name}) does not answer at {silent[0]}"
    return ""


if __name__ == "__main__":
    complaint = main()
    print(complaint or "well")
    sys.exit(1 if complaint else 0)
