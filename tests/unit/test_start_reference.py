"""Which image is meant: nothing unknown is started, and nothing is pulled from a stranger."""

from __future__ import annotations

import pytest

from strata.errors import DefinitionError
from strata.start.reference import Reference, choose_reference

PROJECTS = ["dev", "lab", "remote", "slim", "train"]
PRESENT = [
    "strata/lab:embedded",
    "strata/train:cpu",
    "mine:latest",
    "ghcr.io/me/lab:cpu",
    "ghcr.io/me/lab@sha256:aa",
]


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("lab", Reference(text="strata/lab:embedded", short="lab")),
        ("strata/lab:embedded", Reference(text="strata/lab:embedded", short="lab")),
        ("mine:latest", Reference(text="mine:latest", short="mine")),
        ("ghcr.io/me/lab:cpu", Reference(text="ghcr.io/me/lab:cpu", short="lab")),
        ("ghcr.io/me/lab@sha256:aa", Reference(text="ghcr.io/me/lab@sha256:aa", short="lab")),
        (
            "ghcr.io/me/dev",
            Reference(text="ghcr.io/me/dev:latest", short="dev", needs_pull=True),
        ),
        (
            "localhost:5000/me/dev:cpu",
            Reference(text="localhost:5000/me/dev:cpu", short="dev", needs_pull=True),
        ),
    ],
)
def test_an_image_is_found(image: str, found: Reference) -> None:
    """A name of the project, a reference that is there, or one that names its registry."""
    assert choose_reference(image, "embedded", PROJECTS, PRESENT) == found


@pytest.mark.parametrize(
    ("image", "what", "fix"),
    [
        (
            "labb",
            'error: image labb: no image "labb" (did you mean "lab"?)',
            "./inv list shows every image",
        ),
        (
            "slim",
            "error: image slim: it is not built for the variant embedded",
            "./inv build --image slim --variant embedded",
        ),
        (
            "train",
            "it is not built for the variant embedded (of it there is strata/train:cpu)",
            "./inv build --image train --variant embedded",
        ),
        (
            "strata/lab:embeded",
            'it names no registry (did you mean "strata/lab:embedded"?)',
            "such as docker.io/strata/lab:embeded",
        ),
        (
            "Foo/bar",
            "the engine has no such image, and it names no registry",
            "such as docker.io/Foo/bar:latest",
        ),
    ],
)
def test_an_image_that_is_not_there_is_an_error(image: str, what: str, fix: str) -> None:
    """With the closest name and the fix, and exit code 2."""
    with pytest.raises(DefinitionError) as caught:
        choose_reference(image, "embedded", PROJECTS, PRESENT)
    assert what in str(caught.value)
    assert fix in str(caught.value)
    assert caught.value.exit_code == 2
