"""Reading what engines and registries answer, without either."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
import requests
from docker.errors import APIError
from requests.adapters import BaseAdapter

from strata.credentials import Credentials, read_credentials
from strata.errors import PublishError
from strata.publish import Candidate, push_images
from strata.pusher import push_problem, read_push_stream
from strata.registry import PULL, PUSH, Registry, is_plain_http

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Script = dict[str, list[tuple[int, dict[str, str], bytes]]]  # status, headers, body

DIGEST = f"sha256:{'a' * 64}"
OTHER = f"sha256:{'b' * 64}"
PUSHED = {"status": f"cpu: digest: {DIGEST} size: 401"}
SECRET = Credentials(username="ada", password="lovelace")  # noqa: S106
MANIFEST = "https://r.example/v2/o/train/manifests/cpu"
BEARER = {"WWW-Authenticate": 'Bearer realm="https://t.example/token",service="r.example"'}


def ignore(_: str) -> None:
    """Log nothing."""


class Answers(BaseAdapter):
    """A network in which each request has one of the answers that are listed for it."""

    def __init__(self, answers: Script) -> None:
        """Keep the answers by `METHOD URL`, without the query."""
        super().__init__()
        self.answers = answers
        self.sent: list[requests.PreparedRequest] = []

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]  # noqa: ANN401
        """Give the next answer."""
        self.sent.append(request)
        url = str(request.url).partition("?")[0]
        status, headers, body = self.answers[f"{request.method} {url}"].pop(0)
        response = requests.Response()
        response.status_code = status
        response.reason = "because"
        response.headers.update(headers)
        response._content = body
        response.request = request
        response.url = url
        return response

    def close(self) -> None:
        """Close nothing."""


def ask(
    answers: Script,
    credentials: Credentials = SECRET,
    actions: str = PUSH,
) -> tuple[str | None, list[requests.PreparedRequest]]:
    """Ask r.example for the digest of o/train:cpu."""
    registry = Registry("r.example", credentials, plain_http=False, actions=actions)
    network = Answers(answers)
    registry._session.mount("https://", network)
    return registry.digest("r.example/o/train", "cpu"), network.sent


def test_stream_that_ends_well() -> None:
    """The digest is read, and each layer that arrived is logged once."""
    lines: list[str] = []
    items = [
        {"status": "Pushing", "id": "abc"},
        {"status": "Pushed", "id": "abc"},
        {"status": "Layer already exists", "id": "def"},
        PUSHED,
    ]
    assert read_push_stream(items, "h/o/n:t", lines.append) == DIGEST
    assert lines == ["  abc: Pushed", "  def: Layer already exists"]


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([{"error": "denied: no"}, PUSHED], "denied: no"),
        ([PUSHED, {"errorDetail": {"message": "no such host"}}], "no such host"),
        ([PUSHED, {"errorDetail": {}}], "an error without a text"),
        ([{"error": ""}, PUSHED], "an error without a text"),
        ([{"status": "Pushing", "id": "abc"}], "ended before the push did"),
        ([], "ended before the push did"),
        (["text", PUSHED], "the engine answered 'text'"),
    ],
)
def test_stream_that_does_not(items: list[object], reason: str) -> None:
    """An error anywhere in the stream, or a stream without an end, is a failure."""
    with pytest.raises(PublishError, match=reason):
        read_push_stream(items, "h/o/n:t", ignore)


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        ("unexpected status from POST request: 403 Forbidden", "docker login h:5"),
        ("dial tcp 1.2.3.4:443: connect: connection refused", "check the host"),
        ("x509: certificate signed by unknown authority", "its certificate"),
        ("unexpected status from PUT request: 500", "push again"),
    ],
)
def test_fix_suits_the_failure(message: str, fix: str) -> None:
    """Who is denied reads of the login, and who reaches nothing of the network."""
    assert fix in push_problem("h:5/o/n:t", message).fix


def test_digest_of_a_tag() -> None:
    """The registry's own header is the answer, and its absence on 404 is None."""
    assert ask({f"HEAD {MANIFEST}": [(200, {"Docker-Content-Digest": DIGEST}, b"")]})[0] == DIGEST
    assert ask({f"HEAD {MANIFEST}": [(404, {}, b"")]})[0] is None


def test_digest_without_the_header_is_counted() -> None:
    """A registry that names no digest gives the manifest, whose hash it is."""
    expected = f"sha256:{hashlib.sha256(b'{}').hexdigest()}"
    answers: Script = {f"HEAD {MANIFEST}": [(200, {}, b"")], f"GET {MANIFEST}": [(200, {}, b"{}")]}
    assert ask(answers)[0] == expected


@pytest.mark.parametrize(("actions", "scope"), [(PUSH, "pull%2Cpush"), (PULL, "pull")])
def test_nothing_is_sent_before_it_is_asked_for(actions: str, scope: str) -> None:
    """The password goes out only after a challenge, to where that points, for what is done."""
    _, sent = ask(
        {
            f"HEAD {MANIFEST}": [(401, BEARER, b""), (200, {"Docker-Content-Digest": DIGEST}, b"")],
            "GET https://t.example/token": [(200, {}, b'{"access_token": "t"}')],
        },
        actions=actions,
    )
    authorizations = [request.headers.get("Authorization") for request in sent]
    assert authorizations == [None, SECRET.basic, "Bearer t"]
    assert str(sent[1].url).endswith(f"scope=repository%3Ao%2Ftrain%3A{scope}")


def test_identity_token_is_exchanged() -> None:
    """A login by token is exchanged as OAuth2 has it."""
    _, sent = ask(
        {
            f"HEAD {MANIFEST}": [(401, BEARER, b""), (404, {}, b"")],
            "POST https://t.example/token": [(200, {}, b'{"token": "t"}')],
        },
        Credentials(identity_token="refresh"),  # noqa: S106
    )
    assert "refresh_token=refresh" in str(sent[1].body)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({f"HEAD {MANIFEST}": [(401, {}, b"")]}, "denied: the registry answers 401"),
        ({f"HEAD {MANIFEST}": [(403, {}, b"")]}, "denied: the registry answers 403"),
        ({f"HEAD {MANIFEST}": [(500, {}, b"")]}, "the registry answers 500"),
        (
            {f"HEAD {MANIFEST}": [(200, {"Docker-Content-Digest": "md5:1"}, b"")]},
            "no sha256 digest",
        ),
        (
            {
                f"HEAD {MANIFEST}": [(401, BEARER, b"")],
                "GET https://t.example/token": [(200, {}, b"[]")],
            },
            "without a token",
        ),
        (
            {f"HEAD {MANIFEST}": [(401, {"WWW-Authenticate": 'Bearer realm="http://t/"'}, b"")]},
            "would show the password",
        ),
    ],
)
def test_registry_that_refuses(answers: Any, reason: str) -> None:  # noqa: ANN401
    """Every answer that is neither a digest nor 404 is a failure without the password."""
    with pytest.raises(PublishError, match=reason) as failure:
        ask(answers)
    assert "lovelace" not in str(failure.value)


def test_netrc_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what `docker login` kept is sent, not what ~/.netrc has for the host."""
    (tmp_path / "netrc").write_text("machine r.example login eve password x\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    _, sent = ask({f"HEAD {MANIFEST}": [(404, {}, b"")]})
    assert "Authorization" not in sent[0].headers


@pytest.mark.parametrize(
    ("host", "info", "expected"),
    [
        ("localhost:5000", {}, True),
        ("127.1.2.3:5000", {}, True),
        ("[::1]:5000", {}, True),
        ("ghcr.io", {}, False),
        ("10.0.0.7:5000", {}, False),
        ("10.0.0.7:5000", {"RegistryConfig": {"InsecureRegistryCIDRs": ["10.0.0.0/8"]}}, True),
        ("r:5000", {"RegistryConfig": {"IndexConfigs": {"r:5000": {"Secure": False}}}}, True),
        ("r:5000", {"RegistryConfig": {"IndexConfigs": {"r:5000": {"Secure": True}}}}, False),
        ("r:5000", {"RegistryConfig": None}, False),
    ],
)
def test_plain_http_is_where_the_engine_uses_it(
    host: str,
    info: dict[str, object],
    expected: bool,  # noqa: FBT001
) -> None:
    """TLS is left out for loopback and for what the engine lists, and nowhere else."""
    assert is_plain_http(host, info) is expected


def test_credentials_of_the_file(tmp_path: Path) -> None:
    """Password and identity token are read as `docker login` wrote them."""
    auths = {"a.example": {"auth": "YWRhOmxvdmVsYWNl"}, "b.example": {"identitytoken": "t"}}
    (tmp_path / "config.json").write_text(json.dumps({"auths": auths}))
    environ = {"DOCKER_CONFIG": str(tmp_path)}
    assert read_credentials("a.example", environ) == SECRET
    assert read_credentials("b.example", environ) == Credentials(identity_token="t")  # noqa: S106
    assert read_credentials("c.example", environ).is_empty


def test_credentials_of_a_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential helper is asked; one that is missing is a failure with its host."""
    (tmp_path / "config.json").write_text(json.dumps({"credHelpers": {"a.example": "fake"}}))
    environ = {"DOCKER_CONFIG": str(tmp_path), "PATH": str(tmp_path)}
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PublishError, match=r"a\.example: docker's credentials cannot be read"):
        read_credentials("a.example", environ)
    helper = tmp_path / "docker-credential-fake"
    helper.write_text('#!/bin/sh\necho \'{"Username": "ada", "Secret": "lovelace"}\'\n')
    helper.chmod(0o755)
    assert read_credentials("a.example", environ) == SECRET


def test_broken_file_of_credentials(tmp_path: Path) -> None:
    """Credentials that cannot be decoded are a failure, not an anonymous push."""
    (tmp_path / "config.json").write_text('{"auths": {"a.example": {"auth": "%%%"}}}')
    with pytest.raises(PublishError, match="cannot be read"):
        read_credentials("a.example", {"DOCKER_CONFIG": str(tmp_path)})


def test_credentials_hide_themselves() -> None:
    """No log or traceback shows a password."""
    assert "lovelace" not in repr(SECRET)


class Engine:
    """An engine that is asked for nothing but images and fails at that, if told to."""

    def __init__(self, inspect: Callable[[str], dict[str, str]]) -> None:
        """Be both docker's client and its low-level half."""
        self.api = self
        self.inspect_image = inspect


def push(engine: Engine, *candidates: Candidate, tag: str = "cpu-20261130-gabcdef1") -> None:
    """Push to a registry that must not be asked."""
    push_images(
        {},
        engine,  # type: ignore[arg-type]
        candidates,
        registry="r.example/o",
        tag=tag,
        moving_tag="cpu",
        dry_run=False,
        log=ignore,
    )


def fail(_: str) -> dict[str, str]:
    """Fail as an engine does that is out of order."""
    raise APIError("500 Server Error", explanation="out of order")


def test_engine_that_fails() -> None:
    """An engine that cannot be asked is a failure with its own words."""
    candidate = Candidate(image="train", variant="cpu", local_ref="train:cpu", digest=DIGEST)
    with pytest.raises(PublishError, match="out of order"):
        push(Engine(fail), candidate)


def test_nothing_to_push() -> None:
    """A push of no image is a failure, not a quiet success."""
    with pytest.raises(PublishError, match="there is no image to push"):
        push(Engine(fail))


def test_two_images_for_one_tag() -> None:
    """Two variants of one image do not fight for a tag."""
    one = Candidate(image="train", variant="cpu", local_ref="train:cpu", digest=DIGEST)
    other = Candidate(image="train", variant="slim", local_ref="train:slim", digest=OTHER)
    with pytest.raises(PublishError, match="two images want this tag: train:cpu and train:slim"):
        push(Engine(fail), one, other)


def test_all_missing_images_are_named() -> None:
    """Every image that changed since its checks is reported, not only the first."""
    names = ("train", "lab")
    candidates = [
        Candidate(image=name, variant="cpu", local_ref=f"{name}:cpu", digest=DIGEST)
        for name in names
    ]
    with pytest.raises(PublishError) as failure:
        push(Engine(lambda _: {"Id": OTHER}), *candidates)
    assert [problem.where for problem in failure.value.problems] == ["train:cpu", "lab:cpu"]
