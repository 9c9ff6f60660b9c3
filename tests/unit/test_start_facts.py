"""What is asked before a container is started: this machine's engine, and strata's images."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

import strata.start.facts
from strata.engine import Engine
from strata.errors import DefinitionError, HostError
from strata.start.facts import host_facts, image_facts, local_engine, owner_of
from strata.start.settings import HostFacts, ImageFacts
from strata.workspace import Workspace

OURS = {
    "User": "1000:1001",
    "WorkingDir": "/home/dev/work",
    "ExposedPorts": {"2222/tcp": {}, "8888/tcp": {}},
}


def engine_with(config: dict[str, Any]) -> Any:  # noqa: ANN401 - it stands for the SDK's client
    """Return a client of an engine whose only image has this configuration."""
    image = SimpleNamespace(id="sha256:aa", attrs={"Config": config})
    return SimpleNamespace(images=SimpleNamespace(get=lambda _: image))


def test_an_image_says_how_it_is_started() -> None:
    """User, folder and ports are read from its configuration."""
    found = image_facts(engine_with(OURS), "strata/dev:embedded")
    assert found == ImageFacts(
        digest="sha256:aa",
        user=(1000, 1001),
        folder=PurePosixPath("/home/dev/work"),
        ports=frozenset({2222, 8888}),
    )


@pytest.mark.parametrize("change", [{"User": ""}, {"User": "dev"}, {"WorkingDir": ""}])
def test_an_image_of_others_is_refused(change: dict[str, str]) -> None:
    """Without a user by numbers and a working folder in its home nothing is guessed."""
    with pytest.raises(DefinitionError, match="it is none of strata's"):
        image_facts(engine_with({**OURS, **change}), "debian:12")


@pytest.mark.parametrize(
    ("runtimes", "offers_gpus"), [({"runc": {}}, False), ({"nvidia": {}}, True)]
)
def test_the_engine_says_what_it_offers(runtimes: dict[str, Any], *, offers_gpus: bool) -> None:
    """Memory in bytes, and GPUs where it has a runtime for them."""
    info = {"MemTotal": 1024, "DockerRootDir": "/d", "Driver": "x", "Runtimes": runtimes}
    sdk: Any = SimpleNamespace(info=lambda: info, version=lambda: {"Version": "26.1.5"})
    assert host_facts(sdk, "auto") == HostFacts(memory=1024, offers_gpus=offers_gpus)


def test_a_broken_cdi_file_matters_where_gpus_are_asked_for(tmp_path: Path) -> None:
    """With --gpus auto it ends the task with exit code 8, with --gpus none it does not."""
    (tmp_path / "nvidia.json").write_text("{")
    info = {"MemTotal": 1, "DockerRootDir": "/d", "Driver": "x", "CDISpecDirs": [str(tmp_path)]}
    sdk: Any = SimpleNamespace(info=lambda: info, version=lambda: {"Version": "26.1.5"})
    assert not host_facts(sdk, "none").offers_gpus
    with pytest.raises(HostError, match="is no CDI specification") as error:
        host_facts(sdk, "auto")
    assert error.value.exit_code == 8


@pytest.mark.parametrize(
    ("engine", "what"),
    [
        (None, "none runs here"),
        (Engine(host="ssh://gpus", origin="DOCKER_HOST"), "it is on another machine"),
        (Engine(host="tcp://gpus:2375", origin="context gpus"), "it is on another machine"),
    ],
)
def test_only_this_machines_engine_will_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: Engine | None, what: str
) -> None:
    """Another machine's loopback and folders are not ours."""
    monkeypatch.setattr(strata.start.facts, "find_engine", lambda _: engine)
    with pytest.raises(HostError, match=what):
        local_engine(Workspace.of(tmp_path))


def test_a_folder_has_an_owner(tmp_path: Path) -> None:
    """Without a folder there is none."""
    found = tmp_path.stat()
    assert owner_of(tmp_path) == (found.st_uid, found.st_gid)
    assert owner_of(None) is None
