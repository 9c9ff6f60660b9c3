"""What a wheel requires on the embedded variant's machines, and how conda says it.

Rules: PEP 440 (versions and specifiers), PEP 508 (requirements and markers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from packaging.specifiers import Specifier

# Debian 12 on x86_64: its own interpreter, whose version security updates never move.
PYTHON_VERSION = "3.11.2"
GLIBC_MINOR = 36

ENVIRONMENT: dict[str, str] = {
    "implementation_name": "cpython",
    "implementation_version": PYTHON_VERSION,
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "python_full_version": PYTHON_VERSION,
    "python_version": "3.11",
    "sys_platform": "linux",
}


def applicable(requires: Iterable[str], extras: Iterable[str]) -> tuple[Requirement, ...]:
    """Return the requirements whose markers hold here, with the given extras switched on.

    `requires` are the `Requires-Dist` values of a wheel.  Raises
    `packaging.requirements.InvalidRequirement` for one that is not PEP 508.
    """
    switched = ["", *sorted(extras)]
    return tuple(
        requirement
        for requirement in map(Requirement, requires)
        if requirement.marker is None
        or any(requirement.marker.evaluate({**ENVIRONMENT, "extra": e}) for e in switched)
    )


def asked_extras(
    requires: Mapping[str, Iterable[str]], asked: Mapping[str, Iterable[str]]
) -> dict[str, frozenset[str]]:
    """Return the extras of every project that somebody in a set of projects asks for.

    `requires` maps normalised project names to their `Requires-Dist` values,
    `asked` holds the extras that are asked for from outside.
    """
    extras = {name: frozenset(asked.get(name, ())) for name in requires}
    waiting = list(requires)
    while waiting:
        name = waiting.pop()
        for requirement in applicable(requires[name], extras[name]):
            other = canonicalize_name(requirement.name)
            added = {canonicalize_name(extra) for extra in requirement.extras}
            if other in extras and not added <= extras[other]:
                extras[other] |= added
                waiting.append(other)
    return extras


def unmet(
    requires: Mapping[str, Iterable[str]],
    extras: Mapping[str, Iterable[str]],
    versions: Mapping[str, str],
) -> list[str]:
    """Say which requirements a set of projects does not meet itself, one text for each."""
    return [
        f"{name} needs {requirement}, but the set has "
        f"{versions.get(canonicalize_name(requirement.name), 'none')}"
        for name in sorted(requires)
        for requirement in applicable(requires[name], extras.get(name, ()))
        if not _meets(versions.get(canonicalize_name(requirement.name)), requirement)
    ]


def conda_version(version: str) -> str:
    """Return a PEP 440 version as conda writes it: normalised, without the local part.

    PEP 440 lets `==2.13.0` match `2.13.0+cpu`; conda does not, so the local
    part moves to the build string.
    """
    return Version(version).public


def conda_build(version: str) -> str:
    """Return the build string of the package made from a wheel of this version."""
    local = Version(version).local
    return f"{local.replace('.', '_')}_py311_0" if local else "py311_0"


def conda_depends(
    project: str, requires: Iterable[str], extras: Iterable[str], rename: Mapping[str, str]
) -> list[str]:
    """Return what a package depends on, as sorted conda match specs, Python included.

    A package carries the requirements of those of its extras that somebody in
    the set asks for, because a conda package has no extras.  Requirements that
    name the project itself only join extras, and are left out.
    """
    specs = {"python >=3.11,<3.12"}
    for requirement in applicable(requires, extras):
        name = canonicalize_name(requirement.name)
        if name == project:
            continue
        constraint = ",".join(sorted(map(_conda_constraint, requirement.specifier)))
        specs.add(f"{rename.get(name, name)} {constraint}".rstrip())
    return sorted(specs)


def _conda_constraint(specifier: Specifier) -> str:
    operator, version = specifier.operator, specifier.version
    if operator in {"==", "!="} and version.endswith(".*"):
        prefix = _without_local(version.removesuffix(".*"))
        return f"{prefix}.*" if operator == "==" else f"!={prefix}.*"
    version = _without_local(version)
    if operator == "~=":
        head = version.split(".")
        return f">={version},{'.'.join(head[: len(Version(version).release) - 1])}.*"
    if operator == "===":
        return f"=={version}"
    if operator == "<" and not Version(version).is_prerelease:
        return f"<{version}a0"  # PEP 440: `<2` admits no pre-release of 2; conda's `<2` does
    return f"{operator}{version}"


def _without_local(version: str) -> str:
    return version.partition("+")[0]


def _meets(version: str | None, requirement: Requirement) -> bool:
    return version is not None and requirement.specifier.contains(version, prereleases=True)
