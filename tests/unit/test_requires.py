"""What wheels require, in conda's words."""

from __future__ import annotations

import pytest

from strata.embedded.requires import (
    applicable,
    asked_extras,
    conda_build,
    conda_depends,
    conda_version,
    unmet,
)


@pytest.mark.parametrize(
    ("requirement", "spec"),
    [
        ("numpy", "numpy"),
        ("numpy>=1.22,<3", "numpy <3a0,>=1.22"),
        ("Typing_Extensions>=4.10", "typing-extensions >=4.10"),
        ("comm~=0.1", "comm >=0.1,0.*"),
        ("comm~=1.4.5", "comm >=1.4.5,1.4.*"),
        ("comm~=1.4.5rc1", "comm >=1.4.5rc1,1.4.*"),
        ("jsonschema==4.*", "jsonschema 4.*"),
        ("jsonschema!=4.1.*", "jsonschema !=4.1.*"),
        ("jsonschema!=4.1", "jsonschema !=4.1"),
        ("sympy===1.13.3", "sympy ==1.13.3"),
        ("babel<3.0rc1", "babel <3.0rc1"),
        ("torch==2.13.0+cpu", "pytorch ==2.13.0"),
        ("torch>2.0", "pytorch >2.0"),
    ],
)
def test_specifiers(requirement: str, spec: str) -> None:
    """Every operator of PEP 440 has its conda match spec, under conda's name."""
    assert conda_depends("x", [requirement], (), {"torch": "pytorch"}) == sorted(
        [spec, "python >=3.11,<3.12"]
    )


def test_markers_are_evaluated_for_the_target() -> None:
    """Requirements for other systems and Pythons are dropped, those for ours are kept."""
    requires = [
        "ptyprocess; os_name != 'nt'",
        "pywin32; sys_platform == 'win32'",
        "tomli; python_version < '3.11'",
        "uvloop; platform_python_implementation == 'CPython'",
        "docs-only; extra == 'docs'",
    ]
    assert [r.name for r in applicable(requires, ())] == ["ptyprocess", "uvloop"]


def test_asked_extras_bring_their_requirements() -> None:
    """An extra that another project asks for is switched on, through self-references too."""
    requires = {
        "events": ["schema[format]"],
        "schema": ["schema[base]; extra == 'format'", "fqdn; extra == 'base'", "attrs"],
        "fqdn": [],
        "attrs": [],
    }
    extras = asked_extras(requires, {})
    assert extras["schema"] == {"format", "base"}
    assert extras["events"] == frozenset()
    assert conda_depends("schema", requires["schema"], extras["schema"], {}) == [
        "attrs",
        "fqdn",
        "python >=3.11,<3.12",
    ]


def test_unmet_names_what_is_missing_and_what_is_too_old() -> None:
    """A set that lacks a project, or has another version of it, says so."""
    requires = {"a": ["b>=2", "c; extra == 'x'", "d"], "b": []}
    versions = {"a": "1", "b": "1.5"}
    assert unmet(requires, {}, versions) == [
        "a needs b>=2, but the set has 1.5",
        "a needs d, but the set has none",
    ]
    assert len(unmet(requires, {"a": {"x"}}, versions)) == 3


def test_a_local_version_moves_to_the_build_string() -> None:
    """`2.13.0+cpu` is 2.13.0 for conda, and its build says cpu."""
    assert conda_version("2.13.0+cpu") == "2.13.0"
    assert conda_build("2.13.0+cpu") == "cpu_py311_0"
    assert conda_version("2026.10.19.post1") == "2026.10.19.post1"
    assert conda_build("1!2.0") == "py311_0"
