"""Pip in the images: it adds packages, and replaces none of the lock's (case C8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.packages.conftest import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Box, Boxes, Ended
    from tests.packages.conftest import WheelMaker

__all__ = ["make_wheel"]
INSTALL = ("install", "--disable-pip-version-check", "--no-index", "--find-links", "/wheels")


@pytest.fixture
def box(boxes: Boxes, make_wheel: WheelMaker, tmp_path: Path) -> Box:
    """Start a container that has an index of three projects, one of them the lock's."""
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "numpy", "1.0")
    make_wheel(wheels, "greeting", metadata="Requires-Dist: numpy\n")
    make_wheel(wheels, "ancient", metadata="Requires-Dist: numpy<2\n")
    wheels.chmod(0o755)  # whatever the umask: the image's user reads them
    options = ("--network", "none", "--volume", f"{wheels}:/wheels:ro")
    return boxes.start("train", *options, command=("sleep", "infinity"))


def pip(box: Box, *argv: str) -> Ended:
    """Run pip as the image's user."""
    return box.run("python", "-m", "pip", *argv)


def test_pip_replaces_nothing_of_the_lock(box: Box) -> None:
    """Another version of a locked package is refused and named; what suits the lock is added."""
    version = box.run("python", "-c", "import numpy; print(numpy.__version__)").out
    locked = f"The user requested (constraint) numpy=={version}"
    for asked, conflict in (
        (("numpy==1.0",), "The user requested numpy==1.0"),
        (("--upgrade", "--force-reinstall", "numpy==1.0"), "The user requested numpy==1.0"),
        (("ancient",), "ancient 1.0 depends on numpy<2"),
    ):
        refused = pip(box, *INSTALL, *asked)
        assert refused.code == 1, refused.out
        said = refused.out + refused.err
        assert conflict in said
        assert locked in said
    # As a child image's RUN does it: nobody else may write into the environment.
    root = ("exec", "--user", "0", "--env", "PIP_ROOT_USER_ACTION=ignore", box.name)
    added = box.docker(*root, "python", "-m", "pip", *INSTALL, "greeting")
    assert (added.code, added.out.splitlines()[-1]) == (0, "Successfully installed greeting-1.0")
    assert pip(box, "check").out == "No broken requirements found."
    assert box.run("python", "-c", "import numpy; print(numpy.__version__)").out == version


def test_environments_of_ones_own_are_free(box: Box) -> None:
    """In an environment that a user makes, pip takes the version that is asked for."""
    made = box.run("python", "-m", "venv", "--without-pip", "/tmp/mine")  # noqa: S108
    assert made.code == 0, made.err
    done = pip(box, "--python", "/tmp/mine", *INSTALL, "ancient")  # noqa: S108
    assert done.code == 0, done.err
    assert "Successfully installed ancient-1.0 numpy-1.0" in done.out
