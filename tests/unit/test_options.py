"""How checks run, from the command line."""

from __future__ import annotations

from typing import Any

import pytest

from strata.check.options import CheckOptions, check_options, choose_gpus, why_no_gpu
from strata.engine.facts import EngineFacts
from strata.errors import DefinitionError, HostError

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


def host(*, offers: bool, runtime: bool) -> EngineFacts:
    """Return an engine that offers GPUs or not, by NVIDIA's runtime or by CDI alone."""
    return EngineFacts(
        product="Engine",
        version="28.2.0",
        buildx="0.13.1",
        data_root="/var/lib/docker",
        free_bytes=None,
        storage_driver="overlayfs",
        has_containerd_store=True,
        offers_gpus=offers,
        has_nvidia_runtime=runtime,
    )


@pytest.mark.parametrize(
    ("asked", "offers", "runtime", "chosen"),
    [
        ("auto", True, True, "all"),
        ("auto", True, False, "all by CDI"),
        ("auto", False, False, "none"),
        ("none", True, True, "none"),
        ("all", True, False, "all by CDI"),
        ("all", True, True, "all"),
    ],
)
def test_gpus_are_chosen_as_the_engine_can_give_them(
    asked: str, *, offers: bool, runtime: bool, chosen: str
) -> None:
    """Without NVIDIA's runtime it can't give them for their capabilities."""
    found = host(offers=offers, runtime=runtime)
    assert choose_gpus(CheckOptions(gpus=asked), found) == chosen
    assert choose_gpus(None, found) == "none"


def test_gpus_that_are_asked_for_must_be_there() -> None:
    """Exit 8 before any container is started, not a failed layer or training check (case G1)."""
    with pytest.raises(HostError) as failed:
        choose_gpus(CheckOptions(gpus="all"), host(offers=False, runtime=False))
    assert failed.value.exit_code == 8
    (problem,) = failed.value.problems
    assert (problem.where, problem.what) == ("--gpus all", "the engine gives containers no GPUs")
    assert "--gpus none" in problem.fix


@pytest.mark.parametrize(
    ("asked", "chosen", "reason"),
    [
        ("none", "none", "--gpus none was given; the training check ran on the CPU with gloo"),
        (
            "auto",
            "none",
            "the engine offers no GPU here; the training check ran on the CPU with gloo",
        ),
        ("auto", "all", ""),
        ("all", "all by CDI", ""),
    ],
)
def test_a_check_without_gpus_says_why(asked: str, chosen: str, reason: str) -> None:
    """That none was asked for is another reason than that there is none."""
    assert why_no_gpu(asked, chosen) == reason
