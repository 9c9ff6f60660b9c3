"""The definition files as pydantic sees them, and its complaints as ours."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from strata.errors import Problem, closest
from strata.model import UNSET

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails

Text = Annotated[str, StringConstraints(min_length=1)]
Digest = Annotated[str, StringConstraints(pattern=rf"^(sha256:[0-9a-f]{{64}}|{UNSET})$")]
Sha256 = Annotated[str, StringConstraints(pattern=rf"^([0-9a-f]{{64}}|{UNSET})$")]
Address = Annotated[str, StringConstraints(pattern=r"^https?://[^/\s]+/\S+$")]
Platform = Annotated[str, StringConstraints(pattern=r"^linux/(amd64|arm64)$")]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LayerFile(_File):
    """`layers/NN-name/layer.toml`."""

    summary: Text
    requires: list[str] = []
    category: Text | None = None
    contexts: list[str] = []
    args: dict[str, str] = {}
    facts: dict[str, str] = {}
    optional: bool = False
    installer: bool = False


class ImageFile(_File):
    """`images/NAME.toml`."""

    summary: Text
    layers: Annotated[list[str], Field(min_length=1)]
    checks: list[str] = []


class BaseTable(_File):
    """`[base]`: a Debian suite to bootstrap, or an image by digest."""

    suite: Text | None = None
    include: list[str] = []
    image: Text | None = None
    digest: Digest | None = None


class InstallerTable(_File):
    """`[installer]`: Miniconda's address, and its sha256 on each platform."""

    url: Address
    sha256: dict[str, Sha256]


class SourcesFile(_File):
    """`locks/VARIANT/sources.toml`."""

    platforms: Annotated[list[Platform], Field(min_length=1)]
    epoch: Annotated[int, Field(ge=0)]
    base: BaseTable
    installer: InstallerTable | None = None
    args: dict[str, str] = {}
    left_out: dict[str, str] = {}
    left_out_on: dict[str, dict[str, str]] = {}


NEWLINE = "\n"
OPEN_END = "(at end of document)"  # where tomllib names no line

AnyFile = TypeVar("AnyFile", bound=_File)


def read_toml(path: Path, where: str, schema: type[AnyFile]) -> AnyFile | list[Problem]:
    """Read and validate one file; return it, or everything that is wrong with it."""
    text = read_text(path, where)
    if isinstance(text, Problem):
        return [text]
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as invalid:
        reason = str(invalid).replace(OPEN_END, f"(at line {text.rstrip().count(NEWLINE) + 1})")
        return [Problem(where=where, what=f"invalid TOML: {reason}", fix="correct that line")]
    try:
        return schema.model_validate(data)
    except ValidationError as invalid:
        return [_problem(where, schema, error) for error in invalid.errors()]


def read_text(path: Path, where: str) -> str | Problem:
    """Return a file's text, or why there is none: it can't be read, or a line is not UTF-8."""
    try:
        content = path.read_bytes()
        return content.decode()
    except UnicodeDecodeError as invalid:
        line = content[: invalid.start].count(NEWLINE.encode()) + 1
        return Problem(where=f"{where}:{line}", what="is not UTF-8", fix="correct that line")
    except OSError as unreadable:
        reason = unreadable.strerror or "cannot be read"
        return Problem(where=where, what=reason, fix=f"write {where}")


def _problem(where: str, schema: type[BaseModel], error: ErrorDetails) -> Problem:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        *parents, key = error["loc"]
        for parent in parents:
            hint = schema.model_fields[str(parent)].annotation
            tables = (hint, *get_args(hint))  # a table that may be missing is `Table | None`
            schema = next(
                (t for t in tables if isinstance(t, type) and issubclass(t, BaseModel)), schema
            )
        known = list(schema.model_fields)
        return Problem(
            where=where,
            what=f'unknown key "{place}"{closest(str(key), known)}',
            fix=f"the keys here are {', '.join(known)}",
        )
    if error["type"] == "missing":
        return Problem(where=where, what=f'the key "{place}" is missing', fix=f'add "{place} = …"')
    return Problem(
        where=where, what=f"{place}: {error['msg']}", fix=f"correct the value of {place}"
    )


def folders(path: Path) -> list[Path]:
    """Return the definition folders below `path`, sorted by name."""
    if not path.is_dir():
        return []
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith((".", "__")))
