"""The pins of the embedded variant: a file of requirements, each with the hash of one wheel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from strata.errors import LockError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PIN_AGAIN = "./inv pin --variant embedded pins the wheels again"


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One wheel: normalised project name, version, extras asked for, sha256 of the file."""

    project: str
    version: str
    extras: frozenset[str]
    sha256: str

    def __str__(self) -> str:
        """Render as a requirement that pip reads."""
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        return f"{self.project}{extras}=={self.version} \\\n    --hash=sha256:{self.sha256}\n"


def read_pins(requirements: Path) -> tuple[Pin, ...]:
    """Read a file of hash-pinned requirements, one sha256 for each project.

    Raises `LockError` with every line that is not such a requirement.
    """
    try:
        text = requirements.read_text()
    except OSError as unreadable:
        raise LockError.at(str(requirements), unreadable.strerror or "", PIN_AGAIN) from None
    pins: dict[str, Pin] = {}
    problems = []
    for number, line in _logical_lines(text):
        pin = _parse_pin(line)
        if isinstance(pin, Pin) and pin.project not in pins:
            pins[pin.project] = pin
        else:
            what = f"{pin.project} is pinned twice" if isinstance(pin, Pin) else pin
            problems.append(Problem(where=f"{requirements}:{number}", what=what, fix=PIN_AGAIN))
    if not pins and not problems:
        problems.append(Problem(where=str(requirements), what="pins nothing", fix=PIN_AGAIN))
    if problems:
        raise LockError(*problems)
    return tuple(pins.values())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield whole requirements with the number of their first line, without comments."""
    joined, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"(^|\s)#.*$", "", line).strip()
        first = first if joined else number
        joined += bare.removesuffix("\\")
        if joined and not bare.endswith("\\"):
            yield first, joined
            joined = ""
    if joined:
        yield first, joined


def _parse_pin(line: str) -> Pin | str:
    """Return the pin on a logical line, or what is wrong with it."""
    spec, *options = line.split(" --hash=")
    hashes = [option.strip() for option in options]
    if len(hashes) != 1 or not re.fullmatch(r"sha256:[0-9a-f]{64}", hashes[0]):
        return f"{spec.strip()!r} needs exactly one --hash=sha256:…, of the wheel that is used"
    try:
        requirement = Requirement(spec)
    except InvalidRequirement as invalid:
        return f"{spec.strip()!r} is not a requirement: {str(invalid).splitlines()[0]}"
    exact = [s.version for s in requirement.specifier if s.operator == "=="]
    if len(requirement.specifier) != 1 or not exact or requirement.marker or "*" in exact[0]:
        return f"{spec.strip()!r} is not pinned to one version (name==version)"
    return Pin(
        project=canonicalize_name(requirement.name),
        version=exact[0],
        extras=frozenset(canonicalize_name(extra) for extra in requirement.extras),
        sha256=hashes[0].removeprefix("sha256:"),
    )
