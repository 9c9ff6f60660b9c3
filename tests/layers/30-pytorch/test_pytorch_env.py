"""The environment works: torch, NumPy, the tools that come with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

COMPUTE = """
import json, torch
print(json.dumps({
    "squares": float(torch.arange(4.).square().sum()),
    "back": torch.from_numpy(torch.arange(3).numpy() + 1).tolist(),
    "gloo": torch.distributed.is_gloo_available(),
    "version": torch.__version__,
}))
"""


@pytest.mark.parametrize("shell", ["sh -c", "bash -euo pipefail -c", "sh -lc", "bash -lc"])
def test_one_environment(layer: Layer, shell: str) -> None:
    """Each kind of shell runs the same Python of the same environment."""
    program = 'import os, sys; print(sys.prefix, sys.executable, os.environ["CONDA_PREFIX"])'
    assert layer.out(f"{shell} 'python -c '\\''{program}'\\'''").split() == [
        "/opt/env",
        "/opt/env/bin/python",
        "/opt/env",
    ]


@pytest.fixture(scope="module")
def computed(layer: Layer) -> dict[str, Any]:
    """Import torch once, with warnings as errors, and let it compute."""
    result: dict[str, Any] = json.loads(layer.python(COMPUTE))
    return result


def test_torch_computes(computed: dict[str, Any]) -> None:
    """Torch imports without a warning and computes."""
    assert computed["squares"] == 14.0


def test_numpy_round_trip(computed: dict[str, Any]) -> None:
    """Arrays go from torch to NumPy and back: both speak the same NumPy (case C8)."""
    assert computed["back"] == [1, 2, 3]


def test_distributed_is_there(layer: Layer, computed: dict[str, Any]) -> None:
    """Torch was built with the backend that CPU ranks use, and torchrun is on PATH."""
    assert computed["gloo"] is True
    assert layer.out("command -v torchrun") == "/opt/env/bin/torchrun"


def test_torch_says_its_version(layer: Layer, computed: dict[str, Any]) -> None:
    """torch.__version__ is the manifest's version of pytorch."""
    packages = json.loads(layer.out("cat /opt/strata/manifest.json"))["packages"]
    (version,) = (p["version"] for p in packages if p["name"] == "pytorch")
    assert computed["version"].partition("+")[0] == version


def test_text_is_utf8(layer: Layer) -> None:
    """Python prints é and reads it back under the image's own locale."""
    program = "import sys; print(sys.stdout.encoding, sys.getfilesystemencoding(), '\\u00e9')"
    assert layer.python(program) == "utf-8 utf-8 é"


def test_no_package_of_the_users(layer: Layer) -> None:
    """What lies in the user's ~/.local comes before nothing: the environment is the lock's."""
    program = "import os, site; print(os.environ.get('PYTHONNOUSERSITE'), site.ENABLE_USER_SITE)"
    assert layer.python(program) == "1 False"


def test_pip_check(layer: Layer) -> None:
    """Every package finds the packages that it asks for."""
    assert layer.out("pip check") == "No broken requirements found."


def test_ddp_check_explains_itself(layer: Layer) -> None:
    """`ddp-check` is on PATH and says how it is used."""
    assert layer.out("command -v ddp-check") == "/opt/strata/bin/ddp-check"
    assert layer.out("ddp-check --help").startswith("usage: ")


def test_one_version_each(layer: Layer) -> None:
    """Each Python project is installed once."""
    program = (
        "import json, re, importlib.metadata as m; print(json.dumps("
        "[re.sub('[-_.]+', '-', d.name).lower() for d in m.distributions()]))"
    )
    names = json.loads(layer.python(program))
    assert len(names) > 10
    assert sorted(names) == sorted(set(names))


def test_closed_to_the_user(layer: Layer) -> None:
    """The user can read all of the environment and change none of it."""
    assert layer.find("-writable ! -type l", "/opt/env /opt/strata") == []
    assert layer.lines("find /opt/env /opt/strata ! -readable") == []


def test_no_package_cache(layer: Layer) -> None:
    """No cache of pip's or of conda's is in the image."""
    home = layer.account.home
    places = (f"{home}/.cache", "/opt/.pkgs", "/opt/env/pkgs")
    assert [place for place in places if layer.host.file(place).exists] == []
    # 20-miniconda makes it, so that a volume there belongs to the user.
    assert layer.lines(f"find {home} -path '{home}/.conda/*'") == []
    assert layer.find("-name '*.conda' -o -name '*.tar.bz2' -o -name '*.whl'") == []
