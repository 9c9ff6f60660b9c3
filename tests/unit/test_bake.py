"""The bake file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata.bake import Contexts, render_bake
from strata.build import missing_steps

if TYPE_CHECKING:
    from strata.plan import Plan
    from tests.projects import SmallProject

ONE, TWO, ENV, TOP = (
    "10-one",
    "10-one_20-two",
    "10-one_20-two_30-env",
    "10-one_20-two_30-env_40-top",
)
ALL = {ONE, TWO, ENV, TOP}


def render(
    project: SmallProject, build: set[str], base_ref: str | None = None, plan: Plan | None = None
) -> dict[str, Any]:
    """Render the bake file of the small project."""
    contexts = Contexts(
        tools=Path("/tools"),
        rattler=Path("/rattler"),
        base=Path("/base"),
        installer=Path("/installer"),
        steps={ENV: Path("/env")},
    )
    return render_bake(plan or project.plan(), build, project.root, contexts, base_ref)


def parents(bake: dict[str, Any]) -> dict[str, str]:
    """Return what each target stands on."""
    targets = bake["target"].items()
    return {name: target["contexts"]["parent"] for name, target in targets if "contexts" in target}


def test_each_step_stands_on_its_parents_target(project: SmallProject) -> None:
    """So that a parent is built before its children, in one call."""
    bake = render(project, ALL)
    assert parents(bake) == {
        ONE: "target:base",
        TWO: f"target:{ONE}",
        ENV: f"target:{TWO}",
        TOP: f"target:{ENV}",
    }
    assert bake["group"]["default"]["targets"] == [ONE, TWO, ENV, TOP]


def test_the_base_is_built_but_kept_nowhere(project: SmallProject) -> None:
    """Only the layers on it become images."""
    base = render(project, ALL)["target"]["base"]
    assert (base["context"], base["output"]) == ("/base", ["type=cacheonly"])


def test_a_step_that_is_there_is_no_target(project: SmallProject) -> None:
    """Its children name its image, by the digest of its inputs (case I4)."""
    plan = project.plan()
    refs = {step.name: step.ref for step in plan.steps}
    bake = render(project, {ENV, TOP}, plan=plan)
    assert parents(bake) == {ENV: f"docker-image://{refs[TWO]}", TOP: f"target:{ENV}"}
    assert "base" not in bake["target"]


def test_a_base_from_a_registry_is_named(project: SmallProject) -> None:
    """By its digest, and is no target."""
    old = 'suite = "bookworm"\ninclude = ["python3"]\n'
    digest = f"sha256:{'0' * 64}"
    new = f'image = "debian"\ndigest = "{digest}"\n'
    project.replace("locks/embedded/sources.toml", old, new)
    bake = render(project, {ONE}, f"docker-image://debian@{digest}")
    assert parents(bake) == {ONE: f"docker-image://debian@{digest}"}
    assert list(bake["target"]) == [ONE]


def test_contexts_are_mounted_by_their_last_name(project: SmallProject) -> None:
    """Only a layer with an environment gets one, and rattler."""
    targets = render(project, ALL)["target"]
    assert targets[TWO]["contexts"] == {"parent": f"target:{ONE}", "tools": "/tools"}
    assert targets[ENV]["contexts"] == {
        "parent": f"target:{TWO}",
        "tools": "/tools",
        "rattler": "/rattler",
        "env": "/env",
        "data": str(project.root / "data"),
    }


def test_an_image_has_its_steps_name_and_its_own(project: SmallProject) -> None:
    """The name that people use is a second one of the last step's image."""
    plan = project.plan()
    targets = render(project, ALL, plan=plan)["target"]
    tags = {step.layer.name: targets[step.name]["tags"] for step in plan.steps}
    refs = {step.layer.name: step.ref for step in plan.steps}
    assert tags == {
        "10-one": [refs["10-one"], "strata/small:embedded"],
        "20-two": [refs["20-two"], "strata/pair:embedded"],
        "30-env": [refs["30-env"]],
        "40-top": [refs["40-top"], "strata/whole:embedded"],
    }


def test_every_target_has_the_epoch_and_its_arguments(project: SmallProject) -> None:
    """Without the epoch no build is the same twice."""
    targets = render(project, ALL)["target"]
    assert targets[ONE]["args"] == {"SOURCE_DATE_EPOCH": "1700000000", "COLOUR": "red"}
    assert {target["args"]["SOURCE_DATE_EPOCH"] for target in targets.values()} == {"1700000000"}


def test_texts_reach_the_image_as_they_are(project: SmallProject) -> None:
    """Bake reads `${…}` and `%{…}` as templates, in JSON too, unless they are escaped."""
    project.replace("layers/10-one/layer.toml", '"red"', '"${HOME} %{x} $y"')
    project.replace("layers/10-one/layer.toml", "The lowest layer", "Costs ${5}")
    target = render(project, {ONE})["target"][ONE]
    assert target["args"]["COLOUR"] == "$${HOME} %%{x} $y"
    assert target["labels"]["org.opencontainers.image.description"] == "Costs $${5}"


def test_missing_steps_are_those_without_an_image(project: SmallProject) -> None:
    """Whatever other images the engine has."""
    plan = project.plan()
    there = {step.ref: "sha256:1" for step in plan.steps[:2]} | {"debian:12": "sha256:2"}
    assert [step.name for step in missing_steps(plan, there)] == [ENV, TOP]


def test_a_layer_that_installs_miniconda_gets_the_installer(project: SmallProject) -> None:
    """As a file of this machine, verified: the build downloads nothing."""
    installer = '[installer]\nurl = "https://h.example/{arch}.sh"\n'
    pinned = f'[installer.sha256]\n"linux/amd64" = "{"0" * 64}"\n[left_out]\n'
    project.replace("locks/embedded/sources.toml", "[left_out]\n", installer + pinned)
    project.replace("layers/20-two/layer.toml", "summary", "installer = true\nsummary")
    targets = render(project, ALL)["target"]
    with_installer = {n for n, t in targets.items() if "installer" in t.get("contexts", {})}
    assert with_installer == {TWO}
    assert targets[TWO]["contexts"]["installer"] == "/installer"
