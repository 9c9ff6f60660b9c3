"""What a variant's sources.toml says of installer and left-out layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.errors import DefinitionError
from strata.load import load
from strata.model import Installer

if TYPE_CHECKING:
    from tests.projects import SmallProject

SOURCES = "locks/embedded/sources.toml"
URL = "https://example.org/Miniconda3-py312_1-Linux-{arch}.sh"
INSTALLER = f"""\
[installer]
url = "{URL}"
[installer.sha256]
"linux/amd64" = "{"a" * 64}"
[left_out]
"""


def faults(project: SmallProject) -> list[str]:
    """Return what is wrong with the variant's sources."""
    with pytest.raises(DefinitionError) as failure:
        load(project.root)
    assert {problem.where for problem in failure.value.problems} == {SOURCES}
    return [problem.what for problem in failure.value.problems]


def test_an_installer_has_one_url_and_one_sha256_a_platform(project: SmallProject) -> None:
    """The machine's name is Miniconda's own."""
    project.replace(SOURCES, "[left_out]\n", INSTALLER)
    variant = load(project.root).variants["embedded"]
    assert variant.installer == Installer(url=URL, sha256={"linux/amd64": "a" * 64})
    assert variant.installer.url_for("linux/amd64").endswith("-Linux-x86_64.sh")
    assert variant.installer.url_for("linux/arm64").endswith("-Linux-aarch64.sh")
    assert variant.unset == ()


def test_what_is_not_pinned_yet_is_known(project: SmallProject) -> None:
    """`unset` stands wherever a digest may, and is no fault of the definitions."""
    base = 'suite = "bookworm"\ninclude = ["python3"]\n'
    project.replace(SOURCES, base, 'image = "ubuntu:24.04"\ndigest = "unset"\n')
    project.replace(SOURCES, "[left_out]\n", INSTALLER.replace("a" * 64, "unset"))
    variant = load(project.root).variants["embedded"]
    assert variant.unset == ("base.digest", 'installer.sha256."linux/amd64"')


NOT_HEX = "String should match pattern '^([0-9a-f]{64}|unset)$'"
NO_URL = r"String should match pattern '^https?://[^/\s]+/\S+$'"
OTHER = 'is not one of the platforms (did you mean "linux/amd64"?)'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            '"linux/amd64" = "',
            '"linux/arm64" = "',
            [
                "installer.sha256: says nothing of linux/amd64",
                f'installer.sha256: "linux/arm64" {OTHER}',
            ],
        ),
        (
            "https://",
            "https://u:secret@",
            [f"installer.url: {URL.replace('//', '//***:***@')} carries a user name or password"],
        ),
        ("a" * 64, "a" * 63, [f"installer.sha256.linux/amd64: {NOT_HEX}"]),
        ("https://", "ftp://", [f"installer.url: {NO_URL}"]),
        (
            "url =",
            "urn =",
            [
                'the key "installer.url" is missing',
                'unknown key "installer.urn" (did you mean "url"?)',
            ],
        ),
    ],
)
def test_a_fault_of_the_installer_is_told(
    project: SmallProject, old: str, new: str, expected: list[str]
) -> None:
    """Without showing a secret."""
    project.replace(SOURCES, "[left_out]\n", INSTALLER.replace(old, new))
    assert faults(project) == expected


def test_a_layer_that_needs_an_installer_says_so(project: SmallProject) -> None:
    """A variant without one leaves the layer out, or can't be loaded."""
    project.replace("layers/40-top/layer.toml", "summary", "installer = true\nsummary")
    assert faults(project) == ['"40-top" needs an installer, and there is no [installer]']
    project.leave_out("40-top")
    assert load(project.root).layers["40-top"].installer


def test_a_layer_may_be_left_out_on_one_platform(project: SmallProject) -> None:
    """Its category is then lacking there, and there alone."""
    project.replace(SOURCES, '["linux/amd64"]', '["linux/amd64", "linux/arm64"]')
    text = '[left_out_on."linux/arm64"]\n30-env = "not for arm64"\n'
    project.replace(SOURCES, "[left_out]\n", text)
    loaded = load(project.root)
    variant = loaded.variants["embedded"]
    assert variant.without("linux/arm64") == {"30-env": "not for arm64"}
    assert variant.without("linux/amd64") == {}
    assert loaded.lacking(variant) == {"linux-aarch64": ("env",)}
    assert list(loaded.environments(variant)) == ["env"]


def test_a_layer_that_is_left_out_has_no_part_in_the_lock(project: SmallProject) -> None:
    """Its category is not solved for."""
    project.leave_out("30-env")
    loaded = load(project.root)
    assert loaded.environments(loaded.variants["embedded"]) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"linux/arm64" = {30-env = "?"}', [
            'left_out_on: "linux/arm64" is not one of the platforms (did you mean "linux/amd64"?)',
        ]),
        ('"linux/amd64" = {30-emv = "?"}', [
            'left_out_on."linux/amd64": no layer "30-emv" (did you mean "30-env"?)',
        ]),
        ('"linux/amd64" = {10-one = "?", 20-two = "?", 30-env = "?"}', [
            'left_out_on."linux/amd64": "40-top" requires "10-one", which is left out',
        ]),
    ],
)  # fmt: skip
def test_a_fault_of_what_is_left_out_on_a_platform_is_told(
    project: SmallProject, text: str, expected: list[str]
) -> None:
    """The platform is the variant's, the layer exists, and nothing stands on what is missing."""
    project.replace(SOURCES, "[left_out]\n", f"[left_out_on]\n{text}\n")
    assert faults(project) == expected
