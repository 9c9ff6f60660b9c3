"""Where a private engine lives."""

from __future__ import annotations

import os
import tomllib
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from strata.engine import private
from strata.engine.private import Place, containerd_config, daemon_settings, private_status
from strata.errors import HostError
from strata.workspace import Workspace

LONGEST_SOCKET_PATH = 107
LONGEST_LINK_NAME = 15


def workspace(root: Path) -> Workspace:
    """Return a workspace at that root."""
    return Workspace(root=root, build=root / "build", cache=root / "cache")


def test_names_fit_into_the_kernels_limits() -> None:
    """However deep the project lies, socket paths and the bridge's name stay short enough."""
    place = Place.of(workspace(Path("/" + "deep/" * 80)))
    assert len(str(place.containerd_address) + ".ttrpc") <= LONGEST_SOCKET_PATH
    assert len(place.name) <= LONGEST_LINK_NAME


def test_two_projects_share_nothing() -> None:
    """Engines of two clones have other folders, sockets and bridges."""
    one, two = (Place.of(workspace(Path(name))) for name in ("/a", "/b"))
    assert {one.name, one.run, one.data}.isdisjoint({two.name, two.run, two.data})


def test_all_that_the_engine_writes_is_in_its_place() -> None:
    """Every path in both configurations is inside the engine's own two folders."""
    place = Place.of(workspace(Path('/a "quoted" folder')))
    settings = daemon_settings(place, IPv4Network("172.30.0.0/20"))
    config = tomllib.loads(containerd_config(place))
    paths = [settings[key] for key in ("data-root", "exec-root", "pidfile", "containerd")]
    paths += [config["root"], config["state"], config["grpc"]["address"]]
    paths += [table["path"] for table in config["plugins"].values()]
    paths += [host.removeprefix("unix://") for host in settings["hosts"]]
    for path in paths:
        assert any(Path(path).is_relative_to(top) for top in (place.run, place.data)), path


def test_a_stale_pid_file_is_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pid file that points to another living process does not make an engine."""
    place = Place(name="strata0", run=tmp_path, data=tmp_path / "data")
    monkeypatch.setattr(private.Place, "of", lambda _workspace: place)
    place.pid_file("dockerd").write_text(f"{os.getpid()}\n")
    status = private_status(workspace(tmp_path))
    assert (status.is_running, status.pid) == (False, 0)


def test_only_root_starts_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user gets exit 8 and the way out before anything is touched."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("strata.apt.superuser", lambda: None)
    with pytest.raises(HostError, match="unset STRATA_ENGINE"):
        private.start_private(workspace(tmp_path))
    assert list(tmp_path.rglob("*")) == [tmp_path / "build"]


def test_stopping_what_never_ran_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop may be called at any time, by any user."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    private.stop_private(workspace(tmp_path), purge=True)
    assert list(tmp_path.iterdir()) == []
