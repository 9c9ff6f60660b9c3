"""What keeps a lock from being used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from strata.load import load
from strata.lock import LockInputs, check_lock, inputs_digest, lock_inputs, packages_digest
from strata.locking import variant_inputs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import SmallProject

CHANNEL = "https://embedded.strata.invalid/"
PINS = f"""\
accelerator: cpu
channels: ["{CHANNEL}"]
platforms: [linux-64]
virtual-packages: {{linux-64: {{__glibc: "2.36"}}}}
pins:
  python: 3.11.*
"""


class Variant:
    """A variant with two layers and a good lock, of which one thing can be changed."""

    def __init__(self, folder: Path) -> None:
        """Write the definitions, and keep a lock that suits them."""
        self.folder = folder
        self.pins = folder / "pins.yml"
        self.lower = folder / "lower.yml"
        self.upper = folder / "upper.yml"
        self.path = folder / "conda-lock.yml"
        self.pins.write_text(PINS, encoding="utf-8")
        self.lower.write_text("dependencies:\n- python\n- torch\n", encoding="utf-8")
        self.upper.write_text("dependencies:\n- lab\n", encoding="utf-8")
        facts = self.inputs().facts()
        self.lock = {
            "version": 1,
            "metadata": {
                "channels": [{"url": CHANNEL, "used_env_vars": []}],
                "platforms": ["linux-64"],
                "custom_metadata": {
                    "strata-inputs-digest": inputs_digest(self.inputs()),
                    **{f"strata-input.{name}": value for name, value in facts.items()},
                },
            },
            "package": [
                self.package("python", "pytorch"),
                self.package("torch", "pytorch", "python", "__glibc"),
                self.package("lab", "jupyter", "python"),
            ],
        }
        self.seal()

    @staticmethod
    def package(name: str, category: str, *dependencies: str) -> dict[str, object]:
        """Return one entry of a lock."""
        return {
            "name": name,
            "version": "1.0",
            "manager": "conda",
            "platform": "linux-64",
            "dependencies": dict.fromkeys(dependencies, ""),
            "url": f"{CHANNEL}linux-64/{name}-1.0-h0_0.conda",
            "hash": {"md5": "cd" * 16, "sha256": "ab" * 32},
            "category": category,
            "optional": True,
        }

    def inputs(self) -> LockInputs:
        """Read the definitions as they are now."""
        return lock_inputs({"pytorch": self.lower, "jupyter": self.upper}, self.pins)

    def seal(self) -> None:
        """Let the lock say of its packages that they are those that were solved."""
        metadata: dict[str, Any] = self.lock["metadata"]  # type: ignore[assignment]
        packages: list[dict[str, Any]] = self.lock["package"]  # type: ignore[assignment]
        metadata["custom_metadata"]["strata-packages-digest"] = packages_digest(
            (one["platform"], one["name"], one["url"], one["hash"]["sha256"]) for one in packages
        )

    def problems(self) -> list[str]:
        """Write the lock and return what is wrong with it, as `FILE: WHAT`."""
        self.path.write_text(yaml.safe_dump(self.lock, sort_keys=False), encoding="utf-8")
        return [
            f"{problem.where}: {problem.what}".replace(f"{self.folder}/", "")
            for problem in check_lock(self.path, self.inputs())
        ]


@pytest.fixture
def variant(tmp_path: Path) -> Variant:
    """Return a variant with a good lock."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    return Variant(folder)


def test_a_good_lock_has_no_problems(variant: Variant) -> None:
    """The lock that the other tests break is a good one."""
    assert variant.problems() == []


def test_a_comment_makes_no_lock_stale(variant: Variant) -> None:
    """An edit that means nothing passes."""
    variant.pins.write_text("# Why these.\n" + PINS + "\n# End.\n", encoding="utf-8")
    assert variant.problems() == []


def test_a_changed_pin_is_named_with_file_and_line(variant: Variant) -> None:
    """A stale lock says which pin, what it was, what it is, and how to go on."""
    variant.pins.write_text(PINS.replace("3.11", "3.12"), encoding="utf-8")
    assert variant.problems() == [
        'pins.yml:6: the lock is stale: pins.python was "3.11.*" and is "3.12.*"'
    ]
    (problem,) = check_lock(variant.path, variant.inputs())
    assert problem.fix == "./inv lock --variant tiny"


def test_a_changed_layer_is_named_with_its_file(variant: Variant) -> None:
    """Packages that a layer begins or ceases to ask for make the lock stale."""
    variant.upper.write_text("dependencies:\n- notebook\n", encoding="utf-8")
    assert variant.problems() == [
        'upper.yml: the lock is stale: environment.jupyter.lab "*" is gone',
        'upper.yml:2: the lock is stale: environment.jupyter.notebook "*" is new',
    ]


def test_changed_wheels_are_named(variant: Variant) -> None:
    """A lock solved from other wheels is stale."""
    (variant.folder / "wheels.txt").write_text("a==1\n", encoding="utf-8")
    (problem,) = variant.problems()
    assert problem.startswith("wheels.txt: the lock is stale: sources.wheels.txt")


def test_a_new_platform_is_missing_from_the_lock(variant: Variant) -> None:
    """A platform that was never solved is named."""
    text = PINS.replace("[linux-64]", "[linux-64, linux-aarch64]").replace(
        "virtual-packages: {", 'virtual-packages: {linux-aarch64: {__glibc: "2.36"}, '
    )
    variant.pins.write_text(text, encoding="utf-8")
    assert "conda-lock.yml: holds no packages for linux-aarch64" in variant.problems()


def test_a_platform_without_packages_is_missing(variant: Variant) -> None:
    """It is not enough that the lock's head lists the platform."""
    for package in variant.lock["package"]:  # type: ignore[attr-defined]
        package["platform"] = "linux-aarch64"
        package["url"] = package["url"].replace("linux-64", "linux-aarch64")
    assert "conda-lock.yml: holds no packages for linux-64" in variant.problems()


def test_a_missing_lock_is_one_problem(variant: Variant) -> None:
    """Nothing is raised: the caller tells it along with the others."""
    (problem,) = check_lock(variant.path, variant.inputs())
    assert problem.what == "there is no lock"


def test_a_record_that_was_edited_by_hand_is_refused(variant: Variant) -> None:
    """The inputs beside the digest are the ones that the digest was made of."""
    custom = variant.lock["metadata"]["custom_metadata"]  # type: ignore[index]
    custom["strata-input.pins.python"] = "3.12.*"
    assert variant.problems() == [
        "conda-lock.yml: its record of what it was solved for was edited by hand"
    ]


def test_a_foreign_lock_is_refused(variant: Variant) -> None:
    """A lock that says nothing of its inputs can't be known to be current."""
    del variant.lock["metadata"]["custom_metadata"]  # type: ignore[attr-defined]
    (problem,) = variant.problems()
    assert problem.startswith("conda-lock.yml: was not written by strata")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hash", {"md5": "cd" * 16, "sha256": "ef" * 32}),
        ("url", f"{CHANNEL}noarch/torch-1.0-h0_0.conda"),
    ],
)
def test_a_package_that_was_edited_by_hand_is_refused(
    variant: Variant, key: str, value: object
) -> None:
    """Another hash or file looks as right as the one that was solved."""
    variant.lock["package"][1][key] = value  # type: ignore[index]
    told = "conda-lock.yml: its packages are not those that were solved: somebody edited them"
    assert variant.problems() == [told]
    variant.seal()
    assert variant.problems() == []


def test_a_lock_that_says_nothing_of_its_packages_is_refused(variant: Variant) -> None:
    """Taking the digest out is an edit, too."""
    del variant.lock["metadata"]["custom_metadata"]["strata-packages-digest"]  # type: ignore[index]
    (problem,) = variant.problems()
    assert problem.startswith("conda-lock.yml: its packages are not those that were solved")


def test_a_package_without_sha256_is_refused(variant: Variant) -> None:
    """md5 alone vouches for nothing."""
    del variant.lock["package"][1]["hash"]["sha256"]  # type: ignore[index]
    assert variant.problems() == ["conda-lock.yml: torch 1.0 (linux-64) has no sha256"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("https://", "https://u:secret@", "carries a user name or password"),
        ("invalid/", "invalid/t/secret/", "carries a token"),
        ("invalid/", "invalid/t/<TOKEN>/", "carries a token"),
        (CHANNEL, "https://secret.example/", "is in none of"),
        (CHANNEL, "file:///secret/", "is in none of"),
        ("/linux-64/", "/osx-64/", "is for osx-64"),
    ],
)
def test_a_url_that_leads_elsewhere_or_carries_a_secret_is_refused(
    variant: Variant, old: str, new: str, expected: str
) -> None:
    """A package comes from an allowed channel, with no secret, which is never shown."""
    package = variant.lock["package"][1]  # type: ignore[index]
    package["url"] = package["url"].replace(old, new)
    (problem,) = variant.problems()
    assert expected in problem
    assert "u:secret" not in problem
    assert "/t/secret" not in problem


def test_a_secret_from_the_environment_is_accepted(variant: Variant) -> None:
    """$VAR stays in the lock as it is in the pins, in either form."""
    variant.pins.write_text(PINS.replace("://", "://$USER:$PASSWORD@"), encoding="utf-8")
    fresh = Variant.__new__(Variant)
    fresh.__dict__.update(variant.__dict__)
    facts = variant.inputs().facts()
    metadata = fresh.lock["metadata"]
    metadata["channels"][0]["url"] = CHANNEL.replace("://", "://${USER}:${PASSWORD}@")  # type: ignore[index]
    metadata["custom_metadata"] = {  # type: ignore[index]
        "strata-inputs-digest": inputs_digest(variant.inputs()),
        **{f"strata-input.{name}": value for name, value in facts.items()},
    }
    for package in fresh.lock["package"]:  # type: ignore[attr-defined]
        package["url"] = package["url"].replace("://", "://${USER}:${PASSWORD}@")
    fresh.seal()
    assert fresh.problems() == []


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        ("defaults", "defaults is one of the defaults channels"),
        ("https://u:secret@h/c", "channel https://***:***@h/c carries a user name or password"),
        ("conda-forge", f"channel conda-forge is not one of {CHANNEL}"),
        ("file:///c", f"channel file:///c is not one of {CHANNEL}"),
    ],
)
def test_a_channel_of_the_lock_is_one_of_the_pins(
    variant: Variant, channel: str, expected: str
) -> None:
    """The lock's own list of channels is held to the same rules."""
    variant.lock["metadata"]["channels"][0]["url"] = channel  # type: ignore[index]
    assert variant.problems() == [f"conda-lock.yml: {expected}"]


def test_a_layer_never_needs_a_higher_layers_package(variant: Variant) -> None:
    """A lock that gives a lower layer's package to a higher one is refused."""
    variant.lock["package"][0]["category"] = "jupyter"  # type: ignore[index]
    expected = (
        "conda-lock.yml: linux-64: pytorch needs python, which the lock gives to the higher "
        "layer jupyter"
    )
    assert variant.problems() == [expected]


def test_a_category_that_no_layer_has_is_refused(variant: Variant) -> None:
    """A package that no image would get is a fault, and the closest name is told."""
    variant.lock["package"][2]["category"] = "jupiter"  # type: ignore[index]
    expected = (
        'conda-lock.yml: lab 1.0 (linux-64): no layer has the category "jupiter"'
        ' (did you mean "jupyter"?)'
    )
    assert variant.problems() == [expected]


def test_a_lock_that_lacks_a_dependency_is_refused(variant: Variant) -> None:
    """Every layer's packages are there, down to the last dependency."""
    variant.lock["package"][2]["dependencies"] = {"tornado": ""}  # type: ignore[index]
    assert variant.problems() == ["upper.yml: linux-64: lab needs tornado, which the lock lacks"]


def test_a_variant_without_environments_needs_no_package(project: SmallProject) -> None:
    """Where every layer with packages is left out, an empty lock is current."""
    project.leave_out("30-env")
    project.replace("locks/embedded/pins.yml", "  tool: 1.*\n", "")
    project.relock()
    variant = load(project.root).variants["embedded"]
    assert check_lock(project.lock, variant_inputs(load(project.root), variant)) == []
