"""Asks an HTTPS server by every way that the image has; runs inside the container.

    python - CERTIFICATE KEY <ca_inside.py

Serves pip's index and a git repository on the loopback with that certificate for
`localhost`, and prints as JSON, by tool, "" or its complaint.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

WHEEL = "probe-1-py3-none-any.whl"
URLLIB = "import urllib.request, sys; urllib.request.urlopen(sys.argv[1]).read()"
REQUESTS = "import requests, sys; requests.get(sys.argv[1]).raise_for_status()"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def make_site(folder: Path) -> None:
    """Make an index with one wheel, and a repository for git's plain HTTP."""
    index = folder / "simple/probe"
    index.mkdir(parents=True)
    info = "probe-1.dist-info"
    with zipfile.ZipFile(index / WHEEL, "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: probe\nVersion: 1\n")
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{info}/WHEEL", tags)
        wheel.writestr(f"{info}/RECORD", "")
    (index / "index.html").write_text(f'<a href="{WHEEL}">{WHEEL}</a>')
    git = ["git", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "--quiet", "--bare", folder / "it.git"], check=True)
    subprocess.run([*git, "-C", folder / "it.git", "update-server-info"], check=True)


def serve(folder: Path, certificate: str, key: str) -> str:
    """Serve a folder by HTTPS; return the server's address."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"https://localhost:{server.server_port}"


def ways(root: str, folder: Path) -> dict[str, list[str]]:
    """Return the command lines, by tool."""
    index = f"{root}/simple/"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--retries=0"]
    return {
        "curl": ["curl", "--fail", "--silent", "--show-error", index],
        "git": ["git", "ls-remote", f"{root}/it.git"],
        "pip": [*pip, "--no-deps", f"--dest={folder}", f"--index-url={index}", "probe"],
        "requests": [sys.executable, "-c", REQUESTS, index],
        "ssl": [sys.executable, "-c", URLLIB, index],
    }


def main(certificate: str, key: str) -> dict[str, str]:
    """Return each tool's complaint."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_site(folder)
        root = serve(folder, certificate, key)
        # What the machine says about indexes and proxies is not what is tested.
        env = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "localhost"}
        for tool, argv in ways(root, folder).items():
            done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
            complaint = done.stdout + done.stderr or f"exit code {done.returncode}"
            found[tool] = complaint if done.returncode else ""
    return found


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
