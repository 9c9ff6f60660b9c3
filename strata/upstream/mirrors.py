"""Where things really come from on this machine: mirrors, proxy and certificates.

One file of the user's, never the repository's, and environment variables that
override it.  What is pinned stays pinned: a mirror changes where bytes come
from, never which bytes.  docs/mirrors.md shows all keys.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from strata.errors import DefinitionError, Problem, closest
from strata.lock.urls import base_of, mask
from strata.secrets import note

if TYPE_CHECKING:
    from collections.abc import Mapping

HUB = "docker.io"
CONDA_FORGE = "conda-forge"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
OVERRIDES = {
    "registry": "STRATA_REGISTRY_MIRROR",
    "channel": "STRATA_CHANNEL_MIRROR",
    "installer": "STRATA_INSTALLER_MIRROR",
    "apt": "STRATA_APT_MIRROR",
    "python_index": "STRATA_PYTHON_INDEX",
    "proxy": "STRATA_PROXY",
    "no_proxy": "STRATA_NO_PROXY",
    "ca_bundle": "STRATA_CA_BUNDLE",
}
FIX = "docs/mirrors.md shows every key"
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^/\s]+(/\S*)?$")]
# As Docker reads names, a host has a dot or a port, or is localhost.
HOST = r"(localhost|[^\s:/@]+\.[^\s:/@]+|[^\s:/@]+:\d+)"
Repository = Annotated[str, StringConstraints(pattern=rf"^{HOST}(:\d+)?(/[^\s:@]+)?$")]


class _MirrorsFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    registry: Repository | None = None
    channel: Url | None = None
    installer: Url | None = None
    apt: Url | None = None
    python_index: Url | None = None
    proxy: Url | None = None
    no_proxy: str | None = None
    ca_bundle: str | None = None


@dataclass(frozen=True, kw_only=True)
class Mirrors:
    """What stands in for the public places; "" where nothing does.

    `registry` stands in for Docker Hub, `channel` for conda-forge, `installer`
    for the folder that holds the installer, `apt` for the archives of the base
    image.  URLs end in "/"; they may hold `$VAR`.
    """

    registry: str = field(default="", repr=False)
    channel: str = field(default="", repr=False)
    installer: str = field(default="", repr=False)
    apt: str = field(default="", repr=False)
    python_index: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    no_proxy: str = field(default="", repr=False)
    ca_bundle: str = field(default="", repr=False)

    def package_url(self, url: str) -> str:
        """Return where the package that the lock has at `url` is to be had."""
        public = base_of(CONDA_FORGE)
        if self.channel and url.startswith(public):
            return self.channel + url.removeprefix(public)
        return url

    def installer_url(self, url: str) -> str:
        """Return where the installer of `url` is to be had: under the same name."""
        return self.installer + url.rsplit("/", 1)[-1] if self.installer else url

    def base_image(self, image: str) -> str:
        """Return where an image of Docker Hub is to be had; others stay where they are."""
        name = full_name(image)
        if self.registry and name.startswith(f"{HUB}/"):
            return f"{self.registry}/{name.removeprefix(f'{HUB}/')}"
        return image

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which programs (pip, docker, requests, apt) learn of all this.

        This machine itself is never asked through the proxy.
        """
        found: dict[str, str] = {}
        where = "mirrors.toml"
        if self.proxy:
            proxy = with_variables(self.proxy, environ, where)
            own = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
            hosts = [host for host in f"{self.no_proxy},{own}".split(",") if host]
            bypass = ",".join(dict.fromkeys([*hosts, *LOOPBACK]))
            for name, value in (("http", proxy), ("https", proxy), ("no", bypass)):
                found |= {f"{name}_proxy": value, f"{name}_proxy".upper(): value}
        if self.ca_bundle:
            names = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "PIP_CERT")
            found |= dict.fromkeys(names, self.ca_bundle)
        if self.python_index:
            found["PIP_INDEX_URL"] = with_variables(self.python_index, environ, where)
        return found


def full_name(image: str) -> str:
    """Return an image's name as Docker reads it: `ubuntu` is `docker.io/library/ubuntu`."""
    head, slash, _ = image.partition("/")
    if slash and ("." in head or ":" in head or head == "localhost"):
        return image
    return f"{HUB}/{image}" if slash else f"{HUB}/library/{image}"


def mirrors_path(environ: Mapping[str, str]) -> Path:
    """Return where mirrors.toml is: STRATA_MIRRORS, else `strata/` in the user's config folder."""
    if named := environ.get("STRATA_MIRRORS"):
        return Path(named).expanduser().absolute()
    home = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "strata" / "mirrors.toml"


def read_mirrors(environ: Mapping[str, str]) -> Mirrors:
    """Read mirrors.toml, if there is one, and what the environment overrides of it.

    Raises `DefinitionError` with all that is wrong, without showing a secret,
    and where STRATA_MIRRORS names a file that isn't there.
    """
    path = mirrors_path(environ)
    values = _read(path, is_required=bool(environ.get("STRATA_MIRRORS")))
    places = dict.fromkeys(values, str(path))
    for key, variable in OVERRIDES.items():
        if variable in environ:  # an empty one takes the file's mirror away
            values[key] = environ[variable] or None
            places[key] = variable
    try:
        file = _MirrorsFile.model_validate(values)
    except ValidationError as invalid:
        problems = []
        for error in invalid.errors():
            key = str(error["loc"][0])
            unknown = error["type"] == "extra_forbidden"
            known = closest(key, list(OVERRIDES)) if unknown else ""
            what = f'unknown key "{key}"{known}' if unknown else f"{key}: {_expected(key)}"
            problems.append(Problem(where=places.get(key, str(path)), what=what, fix=FIX))
        raise DefinitionError(*problems) from None
    given = {key: value for key, value in file.model_dump().items() if value}
    for key in ("channel", "installer", "apt"):
        if key in given:
            given[key] = given[key].rstrip("/") + "/"
    if (bundle := given.get("ca_bundle")) and not Path(bundle).expanduser().is_file():
        raise DefinitionError.at(places["ca_bundle"], f"ca_bundle: there is no file {bundle}", FIX)
    if bundle:
        given["ca_bundle"] = str(Path(bundle).expanduser().absolute())
    if "registry" in given:
        given["registry"] = given["registry"].rstrip("/")
    return Mirrors(**given)


def use_mirrors(root: Path) -> None:
    """Tell this process, and the programs that it starts, of the proxy, certificates and index.

    Raises `DefinitionError` when mirrors.toml is wrong, or lies in the project at
    `root`, where its secrets would be committed.
    """
    path = mirrors_path(os.environ)
    if path.is_file() and path.resolve().is_relative_to(root.resolve()):
        raise DefinitionError.at(
            str(path),
            "lies in the project, where what it holds would be committed",
            "move it to ~/.config/strata/mirrors.toml",
        )
    os.environ.update(read_mirrors(os.environ).environment(os.environ))


def with_variables(url: str, environ: Mapping[str, str], where: str) -> str:
    """Return a URL with `$VAR` and `${VAR}` replaced by what the environment says.

    From here on `mask` shows those values by their names.  Raises
    `DefinitionError` for one that is not set.
    """

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name not in environ:
            raise DefinitionError.at(
                where,
                f"{mask(url)} needs ${name}, which is not set",
                f"export {name}=…, and run this again",
            )
        note(name, environ[name])
        return environ[name]

    return _VARIABLE.sub(value, url)


def _read(path: Path, *, is_required: bool) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not is_required:
            return {}
        raise DefinitionError.at(
            "STRATA_MIRRORS", f"there is no file {path}", "write it, or unset STRATA_MIRRORS"
        ) from None
    except (OSError, UnicodeDecodeError) as failed:
        raise DefinitionError.at(str(path), f"cannot be read: {failed}", FIX) from None
    except tomllib.TOMLDecodeError as broken:
        raise DefinitionError.at(str(path), str(broken), FIX) from None


def _expected(key: str) -> str:
    """Say what a value should be, without quoting the one that is there."""
    if key == "registry":
        return "is no HOST[:PORT][/PATH]"
    return "is no text" if key in {"no_proxy", "ca_bundle"} else "is no http(s) URL"
