"""The environment's libraries are for the environment's programs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer


@pytest.mark.parametrize("shell", ["sh -c", "bash -c", "bash -lc"])
def test_no_door_sets_a_library_path(layer: Layer, shell: str) -> None:
    """A path for the loader would make system programs load conda's OpenSSL or libstdc++."""
    script = "echo ${LD_LIBRARY_PATH-unset} ${LD_PRELOAD-unset}"
    assert layer.out(f"{shell} '{script}'") == "unset unset"


def test_system_programs_load_the_systems_libraries(layer: Layer) -> None:
    """Neither the loader's settings nor any library of curl, git, rsync and ssh lead to /opt."""
    programs = "/usr/bin/curl /usr/bin/git /usr/bin/rsync /usr/bin/ssh"
    found = layer.lines(f"ldd {programs}")
    assert len(found) > 20
    assert [line for line in found if "/opt/" in line or "not found" in line] == []
    assert layer.out("cat /etc/ld.so.conf /etc/ld.so.conf.d/*.conf | grep /opt || true") == ""
