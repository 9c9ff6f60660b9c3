"""The prefix tree of the images, and what decides each of its steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from strata.errors import LockError
from strata.plan import walk

if TYPE_CHECKING:
    from strata.plan import Plan
    from tests.projects import SmallProject

ONE, TWO, ENV, TOP = "10-one", "20-two", "30-env", "40-top"
SOURCES = "locks/embedded/sources.toml"
STEPS = [ONE, f"{ONE}_{TWO}", f"{ONE}_{TWO}_{ENV}", f"{ONE}_{TWO}_{ENV}_{TOP}"]


def digests(plan: Plan) -> dict[str, str]:
    """Return each step's digest by the name of its layer."""
    return {step.layer.name: step.digest for step in plan.steps}


def changed(project: SmallProject, before: Plan) -> list[str]:
    """Return the layers whose steps have another digest than before."""
    after = digests(project.plan())
    return [name for name, digest in digests(before).items() if after[name] != digest]


def test_shared_prefixes_stand_once(project: SmallProject) -> None:
    """Three images of one, two and four layers are four steps, parents first."""
    plan = project.plan()
    assert [step.name for step in plan.steps] == STEPS
    assert {image.name: image.step.name for image in plan.images} == {
        "pair": STEPS[1],
        "small": STEPS[0],
        "whole": STEPS[3],
    }


def test_a_layer_on_two_parents_is_two_steps(project: SmallProject) -> None:
    """The tree branches where the images do."""
    project.write("images/short.toml", f'summary = "s"\nlayers = ["{ONE}", "{TOP}"]\n')
    plan = project.plan()
    assert [step.name for step in plan.steps] == [*STEPS[:2], f"{ONE}_{TOP}", *STEPS[2:]]
    tops = [step for step in plan.steps if step.layer.name == TOP]
    assert tops[0].ref != tops[1].ref
    assert [(depth, step.layer.name) for depth, step in walk(plan)] == [
        (0, ONE),
        (1, TWO),
        (2, ENV),
        (3, TOP),
        (1, TOP),
    ]


def test_only_what_the_images_need_is_planned(project: SmallProject) -> None:
    """Asking for one image plans its steps alone."""
    assert [step.name for step in project.plan("small").steps] == STEPS[:1]


def test_a_step_is_named_by_its_layer_and_digest(project: SmallProject) -> None:
    """In the store and in its label."""
    for step in project.plan().steps:
        assert step.ref == f"strata/embedded/{step.layer.name}:{step.digest[:16]}"
        assert step.labels["strata.input-digest"] == f"sha256:{step.digest}"
        assert len(step.digest) == 64


def test_a_layer_that_the_variant_lacks_is_left_out_and_told(project: SmallProject) -> None:
    """The layer above it stands on the one below it."""
    project.leave_out(ENV)
    plan = project.plan()
    assert [step.name for step in plan.steps] == [*STEPS[:2], f"{ONE}_{TWO}_{TOP}"]
    assert {image.name: dict(image.left_out) for image in plan.images} == {
        "pair": {},
        "small": {},
        "whole": {ENV: "not needed here"},
    }


def test_nothing_changes_without_a_change(project: SmallProject) -> None:
    """The plan of an untouched project, and of one that was only touched, is the same."""
    before = project.plan()
    for path in project.root.rglob("*"):
        path.touch()
        path.chmod(path.stat().st_mode & ~0o077)
    assert changed(project, before) == []


@pytest.mark.parametrize(
    ("path", "old", "new", "expected"),
    [
        (f"layers/{ONE}/Dockerfile", "/colour", "/color", [ONE, TWO, ENV, TOP]),
        (f"layers/{ONE}/layer.toml", '"red"', '"blue"', [ONE, TWO, ENV, TOP]),
        (f"layers/{ONE}/layer.toml", "The lowest", "The very lowest", [ONE, TWO, ENV, TOP]),
        (f"layers/{ENV}/Dockerfile", "true", "false", [ENV, TOP]),
        (f"layers/{TOP}/rootfs/etc/top", "top", "tip", [TOP]),
        ("data/words.txt", "words", "other words", [ENV, TOP]),
        (SOURCES, "epoch = 1", "epoch = 2", [ONE, TWO, ENV, TOP]),
        (SOURCES, "bookworm", "trixie", [ONE, TWO, ENV, TOP]),
        (SOURCES, "amd64", "arm64", []),
        # What is asked in the running image decides nothing of its content.
        (f"layers/{ONE}/layer.toml", "cat /colour", "cat  /colour", []),
        ("images/whole.toml", "All layers", "Every layer", []),
    ],
)
def test_a_change_reaches_all_descendants_and_nobody_else(
    project: SmallProject, path: str, old: str, new: str, expected: list[str]
) -> None:
    """No child stays on an older parent (case I4), and nothing is built in vain."""
    before = project.plan()
    project.replace(path, old, new)
    if "arm64" in new:
        with pytest.raises(LockError, match="linux-aarch64"):
            project.plan()
        return
    assert changed(project, before) == expected


def test_a_program_bit_is_a_change(project: SmallProject) -> None:
    """A file that becomes a program makes another layer."""
    before = project.plan()
    (project.root / f"layers/{TOP}/rootfs/etc/top").chmod(0o755)
    assert changed(project, before) == [TOP]


def test_the_slice_of_the_lock_counts_where_it_is_installed(project: SmallProject) -> None:
    """Another package changes the layer that installs it, and those on top."""
    before = project.plan()
    lock = project.lock.read_text()
    project.lock.write_text(lock.replace("74" * 32, "75" * 32))
    assert lock != project.lock.read_text()
    assert changed(project, before) == [ENV, TOP]


def test_a_file_that_comes_or_goes_is_a_change(project: SmallProject) -> None:
    """Also one that no Dockerfile names."""
    before = project.plan()
    added = project.write(f"layers/{TWO}/notes", "")
    assert changed(project, before) == [TWO, ENV, TOP]
    added.unlink()
    assert changed(project, before) == []


def test_arguments_come_from_below_and_the_variant_has_the_last_word(
    project: SmallProject,
) -> None:
    """A layer's value reaches those above it; only open arguments are given."""
    args = {step.layer.name: dict(step.args) for step in project.plan().steps}
    assert args == {ONE: {"COLOUR": "red"}, TWO: {"COLOUR": "red"}, ENV: {}, TOP: {}}
    project.replace(f"layers/{TWO}/layer.toml", "requires", '[args]\nCOLOUR = "blue"\n#')
    assert [dict(s.args) for s in project.plan().steps[:2]] == [
        {"COLOUR": "red"},
        {"COLOUR": "blue"},
    ]
    project.replace(SOURCES, "[left_out]", '[args]\nCOLOUR = "green"\n[left_out]')
    assert [dict(s.args) for s in project.plan().steps[:2]] == [{"COLOUR": "green"}] * 2


def test_each_layer_installs_its_own_slice(project: SmallProject) -> None:
    """A category's packages with all that they need; other layers install none."""
    names = {s.layer.name: [p.name for p in s.packages] for s in project.plan().steps}
    assert names == {ONE: [], TWO: [], ENV: ["library", "tool"], TOP: []}


def test_the_manifest_says_which_layer_has_which_package(project: SmallProject) -> None:
    """It is cumulative: a higher layer's manifest has the lower ones' packages."""
    manifest = json.loads(project.plan().steps[-1].manifest())
    assert "layers" not in manifest  # a layer without packages above would not be in it
    assert [(p["name"], p["layer"]) for p in manifest["packages"]] == [
        ("library", ENV),
        ("tool", ENV),
    ]


def test_labels_say_what_an_image_is(project: SmallProject) -> None:
    """OCI's own, and ours; a base from a registry is named with its digest."""
    labels = project.plan().steps[1].labels
    assert labels["org.opencontainers.image.description"] == "One more file"
    assert labels["org.opencontainers.image.created"] == "2023-11-14T22:13:20Z"
    assert labels["strata.layers"] == f"{ONE} {TWO}"
    assert "org.opencontainers.image.base.name" not in labels
    digest = f"sha256:{'1' * 64}"
    old = 'suite = "bookworm"\ninclude = ["python3"]\n'
    project.replace(SOURCES, old, f'image = "ubuntu:24.04"\ndigest = "{digest}"\n')
    labels = project.plan().steps[1].labels
    assert labels["org.opencontainers.image.base.name"] == "ubuntu:24.04"
    assert labels["org.opencontainers.image.base.digest"] == digest


def test_what_a_layer_asks_for_beside_cuda_is_in_cuda_variants_alone(project: SmallProject) -> None:
    """And the image says which driver it needs."""
    text = "dependencies: [library]\ncuda: [tool]\n"
    project.write(f"layers/{ENV}/environment.yml", text)
    project.relock()
    (without,) = [step for step in project.plan("whole").steps if step.layer.name == ENV]
    assert [package.name for package in without.packages] == ["library"]
    assert "strata.minimum-driver" not in without.labels
    pins = "locks/embedded/pins.yml"
    project.replace(pins, "accelerator: cpu", 'accelerator: cuda\nminimum-driver: "525.60.13"')
    project.relock()
    (beside,) = [step for step in project.plan("whole").steps if step.layer.name == ENV]
    assert [package.name for package in beside.packages] == ["library", "tool"]
    assert beside.labels["strata.minimum-driver"] == "525.60.13"


def test_a_step_follows_the_installer_that_it_runs(project: SmallProject) -> None:
    """Another sha256 is another step; layers without it stay."""
    project.replace(f"layers/{TWO}/layer.toml", "summary", "installer = true\nsummary")
    table = '[installer]\nurl = "https://example.org/i.sh"\n[installer.sha256]\n"linux/amd64" = "'
    project.replace(SOURCES, "[left_out]", f'{table}{"a" * 64}"\n[left_out]')
    before = project.plan("pair")
    project.replace(SOURCES, "a" * 64, "b" * 64)
    after = project.plan("pair")
    assert [a.digest == b.digest for a, b in zip(before.steps, after.steps, strict=True)] == [
        True,
        False,
    ]
