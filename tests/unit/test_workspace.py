"""Where things are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("STRATA_CACHE", raising=False)


def test_the_build_folder_is_in_the_project_and_the_cache_in_the_home(tmp_path: Path) -> None:
    """Without a word, the cache is where programs keep theirs."""
    workspace = Workspace.of(tmp_path / "project" / ".." / "project")
    assert workspace.root == tmp_path / "project"
    assert workspace.build == tmp_path / "project" / "build"
    assert workspace.cache == tmp_path / "home" / ".cache" / "strata"


def test_xdg_moves_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CACHE_HOME is obeyed; an empty one counts for none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Workspace.of(tmp_path).cache == tmp_path / "xdg" / "strata"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert Workspace.of(tmp_path).cache == tmp_path / "home" / ".cache" / "strata"


def test_our_own_variable_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """STRATA_CACHE is the cache itself, from wherever it is written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("STRATA_CACHE", "~/mine")
    assert Workspace.of(tmp_path).cache == tmp_path / "home" / "mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRATA_CACHE", "near")
    assert Workspace.of(tmp_path).cache == tmp_path / "near"
