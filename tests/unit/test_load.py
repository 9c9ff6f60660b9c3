"""Loading a project: frozen values, or all that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.errors import DefinitionError
from strata.load import load, select
from strata.model import BootstrapBase, ImageBase

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import SmallProject

SOURCES = "locks/embedded/sources.toml"
DIGEST = f"sha256:{'0' * 64}"


def faults(project: SmallProject) -> list[str]:
    """Return `place: what` of all that is wrong."""
    with pytest.raises(DefinitionError) as failure:
        load(project.root)
    assert failure.value.exit_code == 2
    assert all(problem.fix for problem in failure.value.problems)
    return [f"{problem.where}: {problem.what}" for problem in failure.value.problems]


def test_a_whole_project_is_its_values(project: SmallProject) -> None:
    """Layers from bottom to top, images and variants by name."""
    loaded = load(project.root)
    assert list(loaded.layers) == ["10-one", "20-two", "30-env", "40-top"]
    assert list(loaded.images) == ["pair", "small", "whole"]
    assert loaded.images["whole"].layers == ("10-one", "20-two", "30-env", "40-top")
    assert loaded.images["whole"].checks == ("ddp",)
    layer = loaded.layers["30-env"]
    assert (layer.category, layer.roots, layer.contexts) == ("env", ("tool",), ("data",))
    assert loaded.layers["10-one"].arguments == ("COLOUR",)
    variant = loaded.variants["embedded"]
    assert variant.base == BootstrapBase(suite="bookworm", include=("python3",))
    assert variant.lock == project.lock
    assert loaded.environments() == {"env": project.root / "layers/30-env/environment.yml"}


def test_a_base_may_be_an_image_by_digest(project: SmallProject) -> None:
    """The digest binds."""
    old = 'suite = "bookworm"\ninclude = ["python3"]\n'
    project.replace(SOURCES, old, f'image = "ubuntu:24.04"\ndigest = "{DIGEST}"\n')
    base = load(project.root).variants["embedded"].base
    assert base == ImageBase(image="ubuntu:24.04", digest=DIGEST)


@pytest.mark.parametrize(
    ("path", "old", "new", "expected"),
    [
        pytest.param(
            "images/pair.toml", "summary", "summry",
            [
                'images/pair.toml: the key "summary" is missing',
                'images/pair.toml: unknown key "summry" (did you mean "summary"?)',
            ],
            id="unknown-key",
        ),
        pytest.param(
            "images/pair.toml", "20-two", "20-tow",
            ['images/pair.toml: layers[1]: no layer "20-tow" (did you mean "20-two"?)'],
            id="unknown-layer",
        ),
        pytest.param(
            "images/pair.toml", '"10-one", "20-two"', '"20-two", "10-one"',
            [
                'images/pair.toml: layers[0]: "20-two" requires "10-one", which is not below it',
                'images/pair.toml: layers[1]: "10-one" does not climb above "20-two"',
            ],
            id="out-of-order",
        ),
        pytest.param(
            "images/pair.toml", '"20-two"]', '"20-two", "20-two"]',
            ['images/pair.toml: layers[2]: "20-two" does not climb above "20-two"'],
            id="twice",
        ),
        pytest.param(
            "images/pair.toml", '"10-one", ', "",
            ['images/pair.toml: layers[0]: "20-two" requires "10-one", which is not below it'],
            id="missing-requires",
        ),
        pytest.param(
            "images/whole.toml", '"ddp"', '"dpp"',
            ['images/whole.toml: checks: no check "dpp" (did you mean "ddp"?)'],
            id="unknown-check",
        ),
        pytest.param(
            "layers/20-two/layer.toml", "10-one", "10-two",
            ['layers/20-two/layer.toml: requires: no layer "10-two" (did you mean "20-two"?)',
             'images/pair.toml: layers[1]: "20-two" requires "10-two", which is not below it',
             'images/whole.toml: layers[1]: "20-two" requires "10-two", which is not below it'],
            id="requires-unknown",
        ),
        pytest.param(
            "layers/20-two/Dockerfile", "FROM parent", "FROM debian:12",
            ["layers/20-two/Dockerfile: does not start with `FROM parent`"],
            id="from-elsewhere",
        ),
        pytest.param(
            "layers/20-two/Dockerfile", "ARG COLOUR", "ARG COLOR",
            [("layers/20-two/Dockerfile: ARG COLOR is supplied by nobody in the variant embedded"
             ' (did you mean "COLOUR"?)')],
            id="arg-of-nobody",
        ),
        pytest.param(
            "layers/10-one/Dockerfile", "ARG COLOUR\n", "ARG COLOUR\nARG TARGETARCH\nARG EXTRA\n",
            ["layers/10-one/Dockerfile: ARG EXTRA is supplied by nobody in the variant embedded"],
            id="arg-of-buildkit",
        ),
        pytest.param(
            "layers/40-top/layer.toml", "requires", '[args]\nCOLOR = "blue"\n#',
            ['layers/40-top/layer.toml: args: no Dockerfile takes COLOR (did you mean "COLOUR"?)'],
            id="value-for-nobody",
        ),
        pytest.param(
            "layers/30-env/layer.toml", '"data"', '"dato"',
            ['layers/30-env/layer.toml: contexts: no folder "dato" in the project'],
            id="no-context",
        ),
        pytest.param(
            "layers/30-env/layer.toml", '"data"', '"data/../.."',
            ['layers/30-env/layer.toml: contexts: no folder "data/../.." in the project'],
            id="context-outside",
        ),
        pytest.param(
            "layers/30-env/environment.yml", "- tool", "- [tool",
            ["layers/30-env/environment.yml:3: invalid YAML:"],
            id="invalid-yaml",
        ),
        pytest.param(
            "layers/30-env/environment.yml", "dependencies", "dependences",
            ["layers/30-env/environment.yml: has no list `dependencies` of conda names"],
            id="no-dependencies",
        ),
        pytest.param(
            "layers/30-env/layer.toml", 'category = "env"\n', "",
            [("layers/30-env: a category and an environment.yml belong together,"
             " and one is missing")],
            id="environment-without-category",
        ),
        pytest.param(
            SOURCES, 'suite = "bookworm"', 'image = "debian"',
            [f"{SOURCES}: [base] is neither a Debian suite nor an image by digest"],
            id="no-base",
        ),
        pytest.param(
            SOURCES, "[left_out]", '[left_out]\n40-tip = "?"',
            [f'{SOURCES}: left_out: no layer "40-tip" (did you mean "40-top"?)'],
            id="left-out-unknown",
        ),
        pytest.param(
            SOURCES, "[left_out]", '[left_out]\n10-one = "?"',
            [f'{SOURCES}: left_out: "{name}" requires "10-one", which is left out'
             for name in ("20-two", "30-env", "40-top")],
            id="left-out-but-required",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_place(
    project: SmallProject, path: str, old: str, new: str, expected: list[str]
) -> None:
    """Each fault by itself, and nothing that only follows from it."""
    project.replace(path, old, new)
    found = faults(project)
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True)), found


def test_an_argument_comes_from_below_and_not_from_above(project: SmallProject) -> None:
    """A value that a higher layer gives does not reach a lower one."""
    project.write("layers/10-one/layer.toml", 'summary = "s"\n')
    project.replace("layers/40-top/layer.toml", "requires", '[args]\nCOLOUR = "blue"\n#')
    assert [text.partition(" is supplied")[0] for text in faults(project)] == [
        "layers/10-one/Dockerfile: ARG COLOUR",
        "layers/20-two/Dockerfile: ARG COLOUR",
    ]


def test_the_variant_may_give_the_argument(project: SmallProject) -> None:
    """What no layer gives, a variant's pins may give."""
    project.write("layers/10-one/layer.toml", 'summary = "s"\n')
    project.replace(SOURCES, "[left_out]", '[args]\nCOLOUR = "green"\n[left_out]')
    assert load(project.root).variants["embedded"].args == {"COLOUR": "green"}


def test_a_layer_that_is_left_out_needs_no_arguments(project: SmallProject) -> None:
    """A variant need not pin what it does not have."""
    project.replace("layers/40-top/Dockerfile", "FROM parent\n", "FROM parent\nARG INSTALLER\n")
    assert len(faults(project)) == 1
    project.leave_out("40-top")
    assert "40-top" in load(project.root).layers


@pytest.mark.parametrize("name", ["My Image", "MyOrg", "-x", "a" * 200, "renovate/x@1"])
def test_a_name_that_no_registry_takes_is_told(project: SmallProject, name: str) -> None:
    """The file's name is the image's name."""
    project.write(f"images/{name}.toml", 'summary = "s"\nlayers = ["10-one"]\n')
    found = faults(project) if "/" not in name else [f"images/{name}"]
    assert found[0].startswith(f"images/{name}")
    assert len(found) == 1


@pytest.mark.parametrize("name", ["My Image", "MyOrg", "-x", "a" * 200])
def test_the_reason_is_the_registries(project: SmallProject, name: str) -> None:
    """And a name that would do is proposed."""
    project.write(f"images/{name}.toml", 'summary = "s"\nlayers = ["10-one"]\n')
    with pytest.raises(DefinitionError, match="no registry takes") as failure:
        load(project.root)
    assert "rename it, for example " in str(failure.value)


def test_a_variant_is_the_start_of_tags(project: SmallProject) -> None:
    """So its name has the form of one."""
    (project.root / "locks/embedded").rename(project.root / "locks/CUDA 12")
    assert faults(project)[0].startswith("locks/CUDA 12: 'CUDA 12' cannot be a tag")


def test_a_folder_that_is_no_layer_is_told(project: SmallProject) -> None:
    """Its number is its height."""
    (project.root / "layers/20-two").rename(project.root / "layers/two")
    found = faults(project)
    assert found[0] == "layers/two: is no layer's name"
    assert {text.partition(":")[0] for text in found[1:]} == {
        "images/pair.toml",
        "images/whole.toml",
    }


def test_two_layers_cannot_share_a_category(project: SmallProject) -> None:
    """A category is one layer's slice of the lock."""
    project.replace("layers/40-top/layer.toml", "requires", 'category = "env"\nrequires')
    project.write("layers/40-top/environment.yml", "dependencies:\n- tool\n")
    assert faults(project) == ['layers/40-top/layer.toml: category: "env" is that of 30-env']


@pytest.mark.parametrize("name", ["tools", "other/data"])
def test_a_context_cannot_hide_another(project: SmallProject, name: str) -> None:
    """Dockerfiles mount contexts by their last names, and the build has its own."""
    (project.root / name).mkdir(parents=True)
    project.replace("layers/30-env/layer.toml", '"data"', f'"data", "{name}"')
    last = name.rpartition("/")[2]
    assert faults(project) == [
        f'layers/30-env/layer.toml: contexts: "{name}" would be mounted as "{last}", which is taken'
    ]


def test_all_problems_of_all_files_are_told_at_once(project: SmallProject) -> None:
    """Nobody corrects one fault to learn of the next."""
    project.replace("layers/20-two/Dockerfile", "FROM parent", "FROM debian:12")
    project.write("layers/10-one/layer.toml", "summary = \n")
    project.replace("images/whole.toml", "ddp", "dpp")
    project.replace(SOURCES, "epoch", "epock")
    assert [text.partition(": ")[0] for text in faults(project)] == [
        "layers/10-one/layer.toml",
        "layers/20-two/Dockerfile",
        "images/whole.toml",
        SOURCES,
        SOURCES,
    ]


def test_nothing_follows_from_a_layer_that_cannot_be_read(project: SmallProject) -> None:
    """Neither its images nor the arguments that it would give are complained of."""
    project.write("layers/10-one/layer.toml", "summary = \n")
    assert [text.partition(": ")[0] for text in faults(project)] == ["layers/10-one/layer.toml"]


def test_an_empty_folder_is_no_project(tmp_path: Path) -> None:
    """All three kinds of definitions are missing."""
    with pytest.raises(DefinitionError, match="layers: is empty or missing"):
        load(tmp_path)


@pytest.mark.parametrize("path", ["layers/10-one/Dockerfile", "layers/30-env/environment.yml"])
def test_a_file_that_is_not_utf_8_is_no_traceback(project: SmallProject, path: str) -> None:
    """Its line is named."""
    (project.root / path).write_bytes(b"FROM parent\nRUN \xff\n")
    assert faults(project)[0] == f"{path}:2: is not UTF-8"


def test_a_layer_without_a_dockerfile_is_told(project: SmallProject) -> None:
    """The missing file is named."""
    (project.root / "layers/20-two/Dockerfile").unlink()
    assert faults(project) == ["layers/20-two/Dockerfile: No such file or directory"]


def test_selecting_nothing_selects_all() -> None:
    """And names are taken in the order of definition."""
    known = {"a": 1, "b": 2, "c": 3}
    assert select("image", [], known) == [1, 2, 3]
    assert select("image", ["c", "a", "c"], known) == [1, 3]


def test_selecting_what_is_not_there_names_the_closest() -> None:
    """All unknown names are told at once."""
    with pytest.raises(DefinitionError) as failure:
        select("image", ["tran", "lab", "zzzz"], {"train": 1, "lab": 2})
    assert [f"{p.where}: {p.what}" for p in failure.value.problems] == [
        '--image tran: no image "tran" (did you mean "train"?)',
        '--image zzzz: no image "zzzz"',
    ]
