"""A folder in which nothing can be kept, while the commands of a build are answered by us."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests

from strata.upstream.recording import Recording
from strata.upstream.relay import serve_relay
from tests.packages.site import serve_site

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_cannot_be_kept_is_refused_with_the_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command gets no file that would be missing later, and nobody sees a traceback."""
    (tmp_path / "files").write_text("where a folder should be")
    recording = Recording(tmp_path / "http.json", tmp_path / "files")
    with serve_site() as site, serve_relay("127.0.0.1", recording=recording) as proxy:
        url = site.put("/file", b"content")
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(url, proxies={"http": proxy}, timeout=10)
    assert (answer.status_code, answer.text) == (
        507,
        f"strata: {url} cannot be kept: File exists\n",
    )
    said = capfd.readouterr().err
    assert f"relay: {url} cannot be kept: File exists" in said
    assert "strata/upstream" not in said  # the server may say that we hung up on it
    assert (len(recording), (tmp_path / "http.json").exists()) == (0, False)
