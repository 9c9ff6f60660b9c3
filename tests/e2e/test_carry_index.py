"""The Python index of mirrors.toml: pip asks it with its secrets, and nobody says them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from strata.embedded.wheels import fetch_wheels
from strata.errors import BuildError, LockError
from strata.upstream.mirrors import read_mirrors
from strata.workspace import Workspace
from tests.packages.site import Answer, serve_site

if TYPE_CHECKING:
    from pathlib import Path

    from strata.errors import StrataError

PASSWORD = "of-the-index-s3cret"  # noqa: S105 - of a server that lives for one test
TOKEN = "t0ken-of-the-index"  # noqa: S105
PLACE = f"/t/{TOKEN}/simple/absent/"
WHEEL = "absent-1.0-py3-none-any.whl"
PAGE = Answer(body=f'<a href="{WHEEL}">{WHEEL}</a>'.encode(), headers={"Content-Type": "text/html"})
NO_PAGE = Answer(body=b"none", headers={"Content-Type": "text/plain"})


@pytest.mark.parametrize(
    "fault",
    [
        (Answer(status=401), b"", BuildError, "No matching distribution"),
        (NO_PAGE, b"", BuildError, "Skipping page"),
        (PAGE, Answer(status=403), BuildError, "403"),
        (PAGE, b"another file", LockError, "DO NOT MATCH"),
    ],
    ids=["unauthorized", "no-page", "forbidden", "another-file"],
)
def test_the_secrets_of_the_index_are_not_said(
    fault: tuple[Answer, Answer | bytes, type[StrataError], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Neither pip's output in the error nor a log has them, though the index was given them."""
    page, file, kind, said = fault
    requirements = tmp_path / "wheels.txt"
    requirements.write_text(f"absent==1.0 --hash=sha256:{'0' * 64}\n")
    with serve_site() as site:
        site.put(PLACE, page)
        site.put(f"{PLACE}{WHEEL}", file)
        address = site.address.replace("http://", "http://ada:$INDEX_PASSWORD@")
        given = {
            "STRATA_PYTHON_INDEX": f"{address}/t/$INDEX_TOKEN/simple/",
            "INDEX_PASSWORD": PASSWORD,
            "INDEX_TOKEN": TOKEN,
        }
        found = read_mirrors({**given, "XDG_CONFIG_HOME": str(tmp_path)}).environment(given)
        assert PASSWORD in found["PIP_INDEX_URL"]
        alone = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
        for name, value in {**found, **alone}.items():
            monkeypatch.setenv(name, value)
        workspace = Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")
        with pytest.raises(kind, match=said) as caught:
            fetch_wheels(workspace, requirements)
        headers = [asked for path, asked in site.asked if path == PLACE]
    assert headers[-1]["authorization"].startswith("Basic ")
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    everything = [str(caught.value), *capfd.readouterr(), *written]
    assert [text for text in everything if PASSWORD in text or TOKEN in text] == []
