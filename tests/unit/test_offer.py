"""Which images a variant offers."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from strata.errors import DefinitionError, HostError
from strata.load import load
from strata.model import ImageBase
from strata.offer import choose, choose_platform, not_offered, offered, refuse_foreign_base
from strata.pipeline import build_images, prepare
from strata.workspace import Workspace
from tests.projects import NOWHERE

if TYPE_CHECKING:
    from tests.projects import SmallProject

SOURCES = "locks/embedded/sources.toml"
AMD64, ARM64 = "linux/amd64", "linux/arm64"


def test_an_image_is_that_image_without_an_optional_layer(project: SmallProject) -> None:
    """It is built without the layer, and the plan says so."""
    project.leave_out("30-env")
    loaded = load(project.root)
    assert not_offered(loaded, loaded.variants["embedded"], AMD64) == {}
    (whole,) = project.plan("whole").images
    assert dict(whole.left_out) == {"30-env": "not needed here"}


def test_an_image_without_another_of_its_layers_is_not_offered(project: SmallProject) -> None:
    """Be it the top one or one below: it would be another image under that name."""
    project.leave_out("20-two")
    plan = project.plan()
    reason = "20-two is left out: not needed here"
    assert plan.not_offered == {"pair": reason, "whole": reason}
    assert [image.name for image in plan.images] == ["small"]
    assert [step.layer.name for step in plan.steps] == ["10-one"]


def test_asking_for_an_image_that_is_not_offered_is_an_error(project: SmallProject) -> None:
    """Exit code 2 with the reason; without a name, the others are taken."""
    project.leave_out("20-two")
    loaded = load(project.root)
    variant = loaded.variants["embedded"]
    assert [image.name for image in offered(loaded, variant, AMD64)] == ["small"]
    with pytest.raises(DefinitionError) as failure:
        offered(loaded, variant, AMD64, ["small", "whole"])
    assert failure.value.exit_code == 2
    assert str(failure.value).startswith(
        "error: --image whole: the variant embedded does not offer it on linux/amd64:"
        " 20-two is left out: not needed here\n"
    )


def test_an_image_may_be_missing_on_one_platform(project: SmallProject) -> None:
    """What one platform lacks, the other offers."""
    project.replace(SOURCES, f'["{AMD64}"]', f'["{AMD64}", "{ARM64}"]')
    project.replace(SOURCES, "[left_out]\n", f'[left_out_on."{ARM64}"]\n20-two = "no"\n')
    loaded = load(project.root)
    variant = loaded.variants["embedded"]
    assert not_offered(loaded, variant, AMD64) == {}
    assert list(not_offered(loaded, variant, ARM64)) == ["pair", "whole"]


def test_the_platform_is_the_wanted_one_or_this_machines(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the variant's first, where it has neither."""
    project.replace(SOURCES, f'["{AMD64}"]', f'["{AMD64}", "{ARM64}"]')
    variant = load(project.root).variants["embedded"]
    for machine, expected in (("x86_64", AMD64), ("aarch64", ARM64), ("riscv64", AMD64)):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert choose_platform(variant) == expected
        assert choose_platform(variant, ARM64) == ARM64
    with pytest.raises(DefinitionError, match=r'has no such platform.*"linux/arm64"'):
        choose_platform(variant, "linux/arm46")


def test_a_base_is_bootstrapped_for_this_machine_alone(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere it may be planned, and a build ends with 8 before an engine is asked for."""
    monkeypatch.setenv("DOCKER_HOST", NOWHERE)
    place = Workspace(root=project.root, build=project.root / "build", cache=project.root / "cache")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    plan = prepare(place, ["small"], "embedded")
    with pytest.raises(HostError) as failure:
        build_images(place, plan, None, lambda _: None)
    assert failure.value.exit_code == 8
    assert str(failure.value).startswith(
        "error: variant embedded: its base is made on the spot, which gives one for aarch64,"
        " not for linux/amd64\n"
    )
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    refuse_foreign_base(plan.variant, plan.platform)


def test_a_base_from_a_registry_may_be_of_another_machine(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine emulates it, or says that it cannot."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    variant = load(project.root).variants["embedded"]
    pulled = ImageBase(image="docker.io/library/ubuntu:24.04", digest=f"sha256:{'0' * 64}")
    refuse_foreign_base(replace(variant, base=pulled), AMD64)


@pytest.mark.parametrize(
    ("variant", "place", "where"),
    [
        ("embeded", "", "--variant embeded"),
        ("embedded", "linux/arm46", "--platform linux/arm46"),
    ],
)
def test_every_name_that_is_wrong_is_told_at_once(
    project: SmallProject, variant: str, place: str, where: str
) -> None:
    """An unknown variant or platform does not hide unknown images."""
    with pytest.raises(DefinitionError) as failure:
        choose(load(project.root), variant, place, ["smal", "pair", "hole"])
    places = [problem.where for problem in failure.value.problems]
    assert places == [where, "--image smal", "--image hole"]
