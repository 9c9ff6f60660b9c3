"""Pushing with a real engine to real registries, and to ones that refuse (case I1)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
import requests
from docker.errors import ImageNotFound

from strata.errors import PublishError
from strata.publish import Candidate, Pushed, push_images
from strata.record import read_records
from tests.e2e.tiny import make_tiny_project, remove_images

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from docker import DockerClient

    from strata.engine import Engine
    from tests.e2e.registry import Gate

    MakeImage = Callable[[str], tuple[str, str]]

pytest_plugins = ("registry",)

TAG = "embedded-20261130-gabcdef1"
MOVING = "embedded"
WRONG = f"sha256:{'0' * 64}"


@pytest.fixture
def push(client: DockerClient) -> Callable[..., list[Pushed]]:
    """Push as the command line does, under OWNER `Strata-Test` of a host."""

    def act(host: str, *candidates: Candidate, dry_run: bool = False) -> list[Pushed]:
        return push_images(
            {},
            client,
            candidates,
            registry=f"{host}/Strata-Test",
            tag=TAG,
            moving_tag=MOVING,
            dry_run=dry_run,
            log=print,
        )

    return act


@pytest.fixture
def candidate(make_image: MakeImage) -> Callable[[str, str], Candidate]:
    """Make a tiny image, and of it the candidate that its checks would have let through."""

    def make(name: str, text: str) -> Candidate:
        reference, digest = make_image(text)
        return Candidate(image=name, variant="embedded", local_ref=reference, digest=digest)

    return make


def log_in(folder: Path, host: str, password: str = "lovelace: 36") -> None:  # noqa: S107
    """Leave what `docker login` leaves without a credential helper."""
    auth = base64.b64encode(f"ada:{password}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))


def tags(host: str, name: str) -> dict[str, str]:
    """Ask a registry, past all of our code, for an image's tags and their digests."""
    listed = requests.get(f"http://{host}/v2/strata-test/{name}/tags/list", timeout=10)
    found = (listed.json().get("tags") or []) if listed.ok else []
    return {tag: manifest_digest(host, name, tag) for tag in found}


def manifest_digest(host: str, name: str, tag: str) -> str:
    """Return the digest that a registry names for a tag."""
    answer = requests.head(
        f"http://{host}/v2/strata-test/{name}/manifests/{tag}",
        headers={"Accept": "application/vnd.oci.image.manifest.v1+json"},
        timeout=10,
    )
    return answer.headers["Docker-Content-Digest"]


def local_tags(client: DockerClient, digest: str) -> list[str]:
    """Return the engine's own names for an image."""
    return list(client.images.get(digest).tags)


def test_push_then_pull(
    client: DockerClient,
    open_host: str,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
) -> None:
    """The image that is pulled by the printed reference is the one that was checked."""
    train = candidate("train", "one")
    pushed = push(open_host, train)
    repository = f"{open_host}/strata-test/train"
    assert [item.reference for item in pushed] == [f"{repository}:{TAG}@{train.digest}"]
    assert [item.was_there for item in pushed] == [False]
    assert tags(open_host, "train") == {TAG: train.digest, MOVING: train.digest}
    assert local_tags(client, train.digest) == [train.local_ref]
    client.api.remove_image(train.local_ref, force=True)
    with pytest.raises(ImageNotFound):
        client.images.get(train.digest)
    try:
        client.api.pull(f"{repository}@{train.digest}")
        assert client.images.get(f"{repository}@{train.digest}").id == train.digest
        name, _, tag = train.local_ref.partition(":")
        client.api.tag(train.digest, name, tag)
    finally:
        client.api.remove_image(f"{repository}@{train.digest}")


def test_dry_run_writes_nothing(
    open_host: str, candidate: Callable[[str, str], Candidate], push: Callable[..., list[Pushed]]
) -> None:
    """A dry run leaves the registry without the image."""
    assert push(open_host, candidate("train", "one"), dry_run=True) == []
    assert tags(open_host, "train") == {}


def test_second_push_has_nothing_to_do(
    gate: Gate, candidate: Callable[[str, str], Candidate], push: Callable[..., list[Pushed]]
) -> None:
    """The same digest under the same tag is confirmed and not sent again."""
    train = candidate("train", "one")
    push(gate.host, train)
    assert any(call.startswith("PUT") for call in gate.seen)
    gate.seen.clear()
    assert [item.was_there for item in push(gate.host, train)] == [True]
    assert {call.split()[0] for call in gate.seen} == {"HEAD"}


def test_immutable_tag_is_never_overwritten(
    open_host: str, candidate: Callable[[str, str], Candidate], push: Callable[..., list[Pushed]]
) -> None:
    """Another digest under a tag that is there is refused, and no image of the run is sent."""
    old = candidate("train", "old")
    push(open_host, old)
    with pytest.raises(PublishError, match="never overwritten") as failure:
        push(open_host, candidate("lab", "lab"), candidate("train", "new"))
    assert f"{open_host}/strata-test/train:{TAG}" in str(failure.value)
    assert tags(open_host, "train") == {TAG: old.digest, MOVING: old.digest}
    assert tags(open_host, "lab") == {}


def test_closed_port(
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
    docker_config: Path,
) -> None:
    """A port that nobody listens on is named."""
    assert docker_config.is_dir()
    with pytest.raises(PublishError, match=r"127\.0\.0\.1:1.*Connection refused") as failure:
        push("127.0.0.1:1", candidate("train", "one"))
    assert failure.value.exit_code == 7


@pytest.mark.parametrize("password", [None, "wrong"])
def test_denied_without_the_right_password(
    closed_host: str,
    docker_config: Path,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
    password: str | None,
) -> None:
    """A registry that answers 401 is told so, with the login to run and no password shown."""
    if password:
        log_in(docker_config, closed_host, password)
    with pytest.raises(PublishError, match="401") as failure:
        push(closed_host, candidate("train", "one"))
    assert f"docker login {closed_host}" in str(failure.value)
    assert "wrong" not in str(failure.value)


def test_login_is_used(
    closed_host: str,
    docker_config: Path,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
) -> None:
    """What `docker login` kept lets both the engine and the confirmation in (basic)."""
    log_in(docker_config, closed_host)
    train = candidate("train", "one")
    assert [item.digest for item in push(closed_host, train)] == [train.digest]


def test_token_is_fetched(
    gate: Gate,
    docker_config: Path,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
) -> None:
    """What `docker login` kept lets both the engine and the confirmation in (bearer)."""
    gate.token = "good"  # noqa: S105
    log_in(docker_config, gate.host)
    train = candidate("train", "one")
    assert [item.digest for item in push(gate.host, train)] == [train.digest]
    log_in(docker_config, gate.host, "wrong")
    with pytest.raises(PublishError, match="denied: the registry answers 401"):
        push(gate.host, train)


@pytest.mark.parametrize(
    "refusal",
    [
        (call, status)
        for call in ("POST .*/lab/blobs/uploads", "PUT .*/lab/manifests")
        for status in (401, 403, 500)
    ],
)
def test_denied_in_the_middle(
    gate: Gate,
    open_host: str,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
    refusal: tuple[str, int],
) -> None:
    """A registry that takes one image and refuses the next moves no moving tag."""
    old = candidate("train", "old")
    push(gate.host, old)
    before = tags(open_host, "train")
    gate.deny.update([refusal])
    new = [candidate("train2", "new"), candidate("lab", "lab")]
    with pytest.raises(PublishError, match="the push failed") as failure:
        push(gate.host, *new)
    assert f"{gate.host}/strata-test/lab:{TAG}" in str(failure.value)
    assert tags(open_host, "train") == before
    assert tags(open_host, "train2") == {TAG: new[0].digest}
    assert tags(open_host, "lab") == {}


def test_moving_tags_come_last(
    gate: Gate, candidate: Callable[[str, str], Candidate], push: Callable[..., list[Pushed]]
) -> None:
    """Every image is confirmed under its immutable tag before the first moving tag is sent."""
    push(gate.host, candidate("train", "one"), candidate("lab", "two"))
    calls = [call.replace("/v2/strata-test/", "") for call in gate.seen if "manifests" in call]
    written = [call for call in calls if call.startswith("PUT")]
    names = [call.rpartition("/")[2] for call in written]
    first_move = calls.index(f"PUT train/manifests/{MOVING}")
    confirmed = [f"HEAD {name}/manifests/{TAG}" for name in ("train", "lab")]
    last_write = max(calls.index(call) for call in written if call.endswith(TAG))
    assert sorted(names[:2]) == [TAG, TAG]
    assert names[2:] == [MOVING, MOVING]
    assert set(confirmed) <= set(calls[last_write + 1 : first_move])


def test_moving_tag_that_is_refused(
    gate: Gate,
    open_host: str,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
) -> None:
    """A refused moving tag is an error that says which tags moved and which did not."""
    gate.deny[f"PUT .*/lab/manifests/{MOVING}$"] = 403
    images = [candidate("train", "one"), candidate("lab", "two")]
    with pytest.raises(PublishError) as failure:
        push(gate.host, *images)
    assert f"moved: {gate.host}/strata-test/train; not moved: {gate.host}/strata-test/lab" in str(
        failure.value
    )
    assert tags(open_host, "lab") == {TAG: images[1].digest}


def test_registry_that_has_something_else(
    gate: Gate,
    open_host: str,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
) -> None:
    """A registry that names another digest after the push is an error, and no tag moves."""
    gate.lie_after_put = WRONG
    train = candidate("train", "one")
    with pytest.raises(PublishError, match=f"after the push the registry has {WRONG}"):
        push(gate.host, train)
    assert tags(open_host, "train") == {TAG: train.digest}


@pytest.mark.parametrize("reference", ["strata-test-push:absent", None])
def test_image_that_is_not_what_was_checked(
    open_host: str,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
    reference: str | None,
) -> None:
    """An image that is missing, or was built again since its checks, stops the whole push."""
    train = candidate("train", "one")
    other = candidate("lab", "two")
    bad = Candidate(
        image="lab", variant="embedded", local_ref=reference or other.local_ref, digest=WRONG
    )
    expected = "no such image" if reference else f"it is {other.digest} now"
    with pytest.raises(PublishError, match=expected) as failure:
        push(open_host, train, bad)
    assert "./inv build --image lab --variant embedded" in str(failure.value)
    assert tags(open_host, "train") == {}


def test_names_of_ones_own_stay(
    client: DockerClient,
    open_host: str,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
) -> None:
    """A local image that had the reference before a push has it afterwards."""
    other = candidate("train", "other")
    repository = f"{open_host}/strata-test/train"
    client.api.tag(other.digest, repository, MOVING)
    try:
        train = candidate("train", "one")
        push(open_host, train)
        assert client.images.get(f"{repository}:{MOVING}").id == other.digest
        assert local_tags(client, train.digest) == [train.local_ref]
        assert tags(open_host, "train")[MOVING] == train.digest
    finally:
        client.api.remove_image(f"{repository}:{MOVING}")


def test_proxy_is_not_asked_for_loopback(
    open_host: str,
    candidate: Callable[[str, str], Candidate],
    push: Callable[..., list[Pushed]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy in the environment is left alone for a registry on this machine."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    train = candidate("train", "one")
    assert [item.digest for item in push(open_host, train)] == [train.digest]


def test_the_command_pushes_what_passed_and_nothing_else(
    open_host: str, tmp_path: Path, engine: Engine, client: DockerClient
) -> None:
    """`./inv push` ends with 0 after a checked build, with 7 and no tag moved after any other."""
    project = make_tiny_project(tmp_path, engine.env)
    test = 'def test_the_colour(host):\n    assert host.check_output("cat /colour")\n'
    project.write("tests/layers/10-one/test_one.py", test)
    push = ("push", "--image", "small", "--registry", f"{open_host}/Strata-Test")
    try:
        commit = project.commit()
        assert project.build("--image", "small")[0] == 0
        record = read_records(project.record)["embedded", "small"]
        tag = f"embedded-{record.day:%Y%m%d}-g{commit[:7]}"
        done = project.inv(*push, env=project.env)
        assert done.returncode == 0, done.stderr
        repository = f"{open_host}/strata-test/small"
        said = f"{repository}:{tag}@{record.digest}  (also {repository}:embedded)"
        assert said in done.stdout.splitlines()
        before = {tag: record.digest, "embedded": record.digest}
        assert tags(open_host, "small") == before

        project.mark()
        project.commit()
        assert project.build("--image", "small", "--no-check")[0] == 0
        done = project.inv(*push, env=project.env)
        assert done.returncode == 7, done.stderr
        assert "strata/small:embedded: its checks did not pass (none was run)" in done.stderr
        assert tags(open_host, "small") == before
    finally:
        remove_images(client)
