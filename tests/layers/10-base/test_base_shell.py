"""Every shell finds the same programs first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

PRINT = 'printf %s "$PATH"'


@pytest.mark.parametrize(
    "shell",
    ["sh -c", "bash -c", "bash -euo pipefail -c", "sh -lc", "bash -lc", "bash -euo pipefail -lc"],
)
def test_path_is_the_same(layer: Layer, shell: str) -> None:
    """Each kind of shell has the image's PATH, from first to last."""
    assert layer.out(f"{shell} '{PRINT}'") == layer.out(PRINT)


@pytest.mark.parametrize("shell", ["sh -lc", "bash -lc", "bash -euo pipefail -lc"])
def test_added_path_survives_login(layer: Layer, shell: str) -> None:
    """What a child image or `docker run -e` puts onto PATH is there in a login shell too."""
    path = f"/app/bin:{layer.out(PRINT)}:/a folder/bin"
    assert layer.out(f"PATH='{path}' {shell} '{PRINT}'") == path


@pytest.mark.parametrize("shell", ["sh -lc", "bash -lc", "bash -euo pipefail -lc"])
def test_active_environment_survives_login(layer: Layer, shell: str) -> None:
    """An environment of one's own, whose programs took the image's place on PATH, stays active."""
    path = layer.out(PRINT).replace("/opt/env/bin", "/mine/bin")
    show = 'printf "%s\\n" "$PATH" "$CONDA_PREFIX"'
    said = layer.lines(f"PATH='{path}' CONDA_PREFIX=/mine {shell} '{show}'")
    assert said == [path, "/mine"]


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash", "/bin/bash -euo pipefail"])
def test_login_from_nothing(layer: Layer, shell: str) -> None:
    """A login that knows nothing of the image (su, cron) still finds the environment first."""
    said = layer.out(f"env -i HOME=/tmp {shell} -lc '{PRINT}'").split(":")
    assert said[:2] == ["/opt/env/bin", "/opt/strata/bin"]
    assert {"/usr/bin", "/bin"} <= set(said)


def test_serve_without_services(layer: Layer) -> None:
    """Where no layer brings a service, `serve` ends with 64 and says what to do instead."""
    assert layer.host.file("/opt/strata/bin/serve").mode == 0o755
    if layer.host.file("/opt/strata/services").exists:
        return  # the layers that bring the services test them
    done = layer.host.run("serve")
    assert done.rc == 64
    assert done.stderr == "serve: this image has no service; fix: name a command, such as bash\n"
