"""Where things really come from: mirrors.toml and the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.errors import DefinitionError
from strata.upstream.mirrors import Mirrors, full_name, mirrors_path, read_mirrors, use_mirrors

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = "https://conda.anaconda.org/conda-forge/noarch/six-1.17.0-pyhe01879c_1.conda"
INSTALLER = "https://repo.anaconda.com/miniconda/Miniconda3-py312_26.7.1-1-Linux-x86_64.sh"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Name the file that the environment of the tests names; nothing is in it yet."""
    path = tmp_path / "mirrors.toml"
    path.write_text("")
    return path


def read(file: Path, **environ: str) -> Mirrors:
    """Read the file in an environment that holds nothing else."""
    return read_mirrors({"STRATA_MIRRORS": str(file), **environ})


def test_without_a_file_everything_comes_from_its_own_place(tmp_path: Path) -> None:
    """A machine without mirrors needs no settings."""
    mirrors = read_mirrors({"XDG_CONFIG_HOME": str(tmp_path)})
    assert mirrors == Mirrors()
    assert mirrors.package_url(PACKAGE) == PACKAGE
    assert mirrors.installer_url(INSTALLER) == INSTALLER
    assert mirrors.base_image("ubuntu:24.04") == "ubuntu:24.04"
    assert mirrors.environment({}) == {}


def test_the_file_is_the_users() -> None:
    """In the user's config folder, or where STRATA_MIRRORS says."""
    assert str(mirrors_path({"XDG_CONFIG_HOME": "/c"})) == "/c/strata/mirrors.toml"
    assert str(mirrors_path({"STRATA_MIRRORS": "/m.toml"})) == "/m.toml"
    assert mirrors_path({}).parts[-3:] == (".config", "strata", "mirrors.toml")


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    """A mistyped STRATA_MIRRORS must not mean that there are no mirrors."""
    with pytest.raises(DefinitionError, match="there is no file") as failure:
        read(tmp_path / "none.toml")
    assert failure.value.exit_code == 2


def test_each_place_has_its_mirror(file: Path) -> None:
    """What is below the public place is asked for at the same place below the mirror."""
    file.write_text(
        'registry = "mirror.example:5000/hub"\n'
        'channel = "https://mirror.example/conda-forge"\n'
        'installer = "https://mirror.example/miniconda/"\n'
    )
    mirrors = read(file)
    assert mirrors.package_url(PACKAGE) == (
        "https://mirror.example/conda-forge/noarch/six-1.17.0-pyhe01879c_1.conda"
    )
    assert mirrors.installer_url(INSTALLER) == (
        "https://mirror.example/miniconda/Miniconda3-py312_26.7.1-1-Linux-x86_64.sh"
    )
    for image in ("ubuntu:24.04", "library/ubuntu:24.04", "docker.io/library/ubuntu:24.04"):
        assert mirrors.base_image(image) == "mirror.example:5000/hub/library/ubuntu:24.04"


def test_other_places_keep_theirs(file: Path) -> None:
    """Docker Hub's mirror has no images of other registries, nor conda-forge's other channels."""
    file.write_text('registry = "m.example"\nchannel = "https://m.example"\n')
    mirrors = read(file)
    for image in ("ghcr.io/o/base:1", "localhost/base", "127.0.0.1:5000/base:1"):
        assert mirrors.base_image(image) == image
    other = "https://conda.anaconda.org/nvidia/linux-64/x-1-0.conda"
    assert mirrors.package_url(other) == other


def test_the_environment_overrides_the_file(file: Path) -> None:
    """Key by key; an empty variable takes the mirror away."""
    file.write_text('channel = "https://a.example/"\ninstaller = "https://a.example/"\n')
    mirrors = read(file, STRATA_CHANNEL_MIRROR="https://b.example", STRATA_INSTALLER_MIRROR="")
    assert (mirrors.channel, mirrors.installer) == ("https://b.example/", "")


def test_all_mistakes_are_told_at_once_and_no_secret(file: Path) -> None:
    """With the file or the variable in which each stands."""
    file.write_text('chanel = "https://ada:s3cr3t@m.example"\napt = "ftp://ada:s3cr3t@m.example"\n')
    with pytest.raises(DefinitionError) as failure:
        read(file, STRATA_REGISTRY_MIRROR="https://ada:s3cr3t@m.example")
    told = {(problem.where, problem.what) for problem in failure.value.problems}
    assert told == {
        (str(file), 'unknown key "chanel" (did you mean "channel"?)'),
        (str(file), "apt: is no http(s) URL"),
        ("STRATA_REGISTRY_MIRROR", "registry: is no HOST[:PORT][/PATH]"),
    }


@pytest.mark.parametrize("text", ["channel = \n", 'ca_bundle = "/no/such.pem"\n'])
def test_a_file_that_says_nothing_useful_is_refused(file: Path, text: str) -> None:
    """Broken TOML, or certificates that aren't there."""
    file.write_text(text)
    with pytest.raises(DefinitionError) as failure:
        read(file)
    assert failure.value.problems[0].where == str(file)


def test_programs_learn_of_proxy_certificates_and_index(file: Path, tmp_path: Path) -> None:
    """By the variables that pip, docker, apt, curl and requests read, in both spellings."""
    bundle = tmp_path / "company.pem"
    bundle.write_text("")
    file.write_text(
        'proxy = "http://ada:$PROXY_PASSWORD@proxy.example:3128"\n'
        'no_proxy = ".example"\n'
        'python_index = "https://python.example/simple"\n'
        f'ca_bundle = "{bundle}"\n'
    )
    proxy = "http://ada:s3cr3t@proxy.example:3128"
    bypass = ".example,.other,localhost,127.0.0.1,::1"
    environ = {"PROXY_PASSWORD": "s3cr3t", "NO_PROXY": ".other,localhost"}
    assert read(file).environment(environ) == {
        "http_proxy": proxy,
        "HTTP_PROXY": proxy,
        "https_proxy": proxy,
        "HTTPS_PROXY": proxy,
        "no_proxy": bypass,
        "NO_PROXY": bypass,
        "REQUESTS_CA_BUNDLE": str(bundle),
        "SSL_CERT_FILE": str(bundle),
        "CURL_CA_BUNDLE": str(bundle),
        "PIP_CERT": str(bundle),
        "PIP_INDEX_URL": "https://python.example/simple",
    }


@pytest.mark.parametrize("registry", ["m.example", "m:5000/hub", "localhost/hub"])
def test_a_registry_is_what_docker_takes_for_one(file: Path, registry: str) -> None:
    """A name with a dot or a port, or localhost."""
    assert read(file, STRATA_REGISTRY_MIRROR=registry).registry == registry


@pytest.mark.parametrize("registry", ["mirror/hub", "https://m.example", "ada@m.example"])
def test_what_docker_takes_for_no_registry_is_refused(file: Path, registry: str) -> None:
    """An image `mirror/hub/library/ubuntu` would be looked for on Docker Hub."""
    with pytest.raises(DefinitionError, match="is no HOST"):
        read(file, STRATA_REGISTRY_MIRROR=registry)


def test_a_secret_is_in_no_representation() -> None:
    """So that no traceback nor log can hold it."""
    assert repr(Mirrors(proxy="http://ada:s3cr3t@proxy.example:3128")) == "Mirrors()"


def test_the_file_may_not_lie_in_the_project(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There it would be committed sooner or later."""
    monkeypatch.setenv("STRATA_MIRRORS", str(file))
    with pytest.raises(DefinitionError, match="lies in the project"):
        use_mirrors(tmp_path)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("ubuntu", "docker.io/library/ubuntu"),
        ("nvidia/cuda:1", "docker.io/nvidia/cuda:1"),
        ("ghcr.io/o/i", "ghcr.io/o/i"),
        ("localhost:5000/i", "localhost:5000/i"),
    ],
)
def test_names_are_read_as_docker_reads_them(image: str, expected: str) -> None:
    """Without a host it is Docker Hub, and without an owner its library."""
    assert full_name(image) == expected
