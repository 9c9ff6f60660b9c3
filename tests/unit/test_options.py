"""How checks run, from the command line."""

from __future__ import annotations

from typing import Any

import pytest

from strata.check.options import CheckOptions, check_options
from strata.errors import DefinitionError

GOOD: dict[str, Any] = {"nproc": "", "nodes": 1, "gpus": "auto", "force": False}


@pytest.mark.parametrize("nproc", ["", "auto", "1", "16"])
def test_a_number_of_ranks_is_taken(nproc: str) -> None:
    """Also none, for the image's own default."""
    expected = CheckOptions(nproc=nproc, gpus="auto", force=False)
    assert check_options(**GOOD | {"nproc": nproc}) == expected


def test_several_nodes_are_taken() -> None:
    """One engine can hold them all."""
    assert check_options(**GOOD | {"nodes": 3}) == CheckOptions(nodes=3)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"nproc": "0"}, "--nproc"),
        ({"nproc": "-1"}, "--nproc"),
        ({"nproc": "two"}, "--nproc"),
        ({"nproc": "²"}, "--nproc"),
        ({"nodes": 0}, "--nodes"),
        ({"nodes": -1}, "--nodes"),
        ({"gpus": "one"}, "--gpus"),
        ({"gpus": ""}, "--gpus"),
    ],
)
def test_what_cannot_be_done_is_refused(given: dict[str, Any], place: str) -> None:
    """With the flag as the place."""
    with pytest.raises(DefinitionError) as failure:
        check_options(**GOOD | given)
    assert [problem.where for problem in failure.value.problems] == [place]


def test_all_flags_are_told_at_once() -> None:
    """In the order of the help."""
    with pytest.raises(DefinitionError) as failure:
        check_options(nproc="x", nodes=0, gpus="x", force=True)
    places = [problem.where for problem in failure.value.problems]
    assert places == ["--nproc", "--nodes", "--gpus"]
