"""What the image says of its environment is what is there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

MANIFEST = """
import json, pathlib
records = [json.loads(p.read_text()) for p in pathlib.Path('/opt/env/conda-meta').glob('*.json')]
fields = ('name', 'version', 'build', 'sha256')
print(json.dumps({
    'manifest': json.loads(pathlib.Path('/opt/strata/manifest.json').read_text()),
    'records': [{key: record[key] for key in fields} for record in records],
}))
"""
VERSIONS = """
import json, importlib.metadata as m
print(json.dumps({d.name.lower().replace('_', '-').replace('.', '-'): d.version
                  for d in m.distributions()}))
"""
# flags, little-endian, after the magic number: 1 is hash-based, 2 is checked (PEP 552).
COMPILED = """
import importlib.util, json, pathlib
files = sorted(pathlib.Path('/opt/env/lib').rglob('*.pyc'))
heads = {str(p): p.read_bytes()[:8] for p in files}
good = importlib.util.MAGIC_NUMBER + bytes([1, 0, 0, 0])
print(json.dumps([len(files), [p for p, head in heads.items() if head != good]]))
"""
UNCOMPILED = """
import importlib.util, json, pathlib
def broken(path):
    try:
        compile(path.read_bytes(), str(path), 'exec', dont_inherit=True)
    except (SyntaxError, ValueError):
        return True
    return False
import warnings
warnings.simplefilter('ignore')
files = [p for p in pathlib.Path('/opt/env/lib').glob('python3*/**/*.py')
         if not pathlib.Path(importlib.util.cache_from_source(str(p))).exists()]
print(json.dumps([str(p) for p in files if not broken(p)]))
"""


def documents(layer: Layer) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the manifest, and conda's records without what differs in kind."""
    found = json.loads(layer.python(MANIFEST))
    return found["manifest"], found["records"]


def test_manifest_is_true(layer: Layer) -> None:
    """The manifest lists the very packages that conda's records list."""
    manifest, records = documents(layer)
    listed = [
        {key: package[key] for key in ("name", "version", "build", "sha256")}
        for package in manifest["packages"]
    ]
    assert "pytorch" in {package["name"] for package in listed}
    assert sorted(map(str, listed)) == sorted(map(str, records))


def test_installed_versions(layer: Layer) -> None:
    """What Python finds installed has the versions that the manifest says."""
    manifest, _ = documents(layer)
    listed = {p["name"].replace("_", "-"): p["version"] for p in manifest["packages"]}
    found = {
        name: text.partition("+")[0] for name, text in json.loads(layer.python(VERSIONS)).items()
    }
    found["pytorch"] = found.pop("torch")
    both = found.keys() & listed.keys()
    assert {"pytorch", "numpy", "pip", "setuptools"} <= both
    assert {name: found[name] for name in both} == {name: listed[name] for name in both}


def test_records_are_for_everybody(layer: Layer) -> None:
    """Any user can read conda's records, and none names a folder of the build."""
    modes = set(layer.lines("find /opt/env/conda-meta -type f -printf '%m %u\\n'"))
    assert modes == {"644 root"}
    assert layer.host.run("grep -rlE '/opt/\\.pkgs|/mnt/|/root/' /opt/env/conda-meta").stdout == ""


def test_modules_are_compiled(layer: Layer) -> None:
    """Compiled modules are valid whatever the time of their source is (PEP 552)."""
    count, bad = json.loads(layer.python(COMPILED))
    assert count > 1000
    assert bad == []


def test_no_module_is_left_uncompiled(layer: Layer) -> None:
    """Every module that is valid Python has its compiled file."""
    assert json.loads(layer.python(UNCOMPILED)) == []


def test_import_compiles_nothing(layer: Layer) -> None:
    """Importing torch reads compiled modules only, and tries to write none."""
    told = layer.host.run("python -v -c 'import torch'").stderr.splitlines()
    used = [line for line in told if line.startswith("# code object from ")]
    assert len(used) > 500
    assert [line for line in used if not line.endswith(".pyc'")] == []
    assert [line for line in told if "wrote " in line or "could not create" in line] == []


def test_trainer_is_source(layer: Layer) -> None:
    """The trainer's folder holds what the repository holds, and nothing compiled elsewhere."""
    assert layer.host.file("/opt/strata/train/ddp_check.py").mode in (0o644, 0o755)
    assert layer.find("-name '*.pyc'", "/opt/strata") == []
