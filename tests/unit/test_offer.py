"""Which images a variant offers."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from strata.errors import DefinitionError
from strata.load import load
from strata.offer import choose_platform, not_offered, offered

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
