"""The installer that runs inside an image build, on packages made here."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "strata" / "inbuild" / "install_env.py"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"lib/{PYTHON}/site-packages"
EPOCH = 1700000000

# rattler may crash when an interpreter ends, so packages are made in a child.
MAKE = """
import datetime, json, os, sys
from rattler_build import assemble_package, collect_files
for name, depends in json.load(sys.stdin).items():
    assemble_package(
        name, "1.0", "linux-64", "h0_0", "channel/linux-64", depends=depends,
        files=collect_files(f"files/{name}", include_hidden=True),
        timestamp=datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
        detect_prefix=False,
    )
os._exit(0)
"""
# Names and texts that are shared or not are what marshal writes differently.
MODULE = """
import os
WORDS = {"alpha", "beta", "__file__"}
def join(path, *, sep="alpha"):
    return sep.join([path, "alpha", "a text that is no name", os.sep, "a text that is no name"])
"""
FILES: dict[str, dict[str, str]] = {
    "python": {f"bin/{PYTHON}": os.path.realpath(sys.executable), "bin/python": PYTHON},
    "alpha": {
        f"{SITE}/alpha/__init__.py": MODULE,
        f"{SITE}/alpha/bad.py": "def (:\n",
        f"{SITE}/alpha/__pycache__/__init__.{sys.implementation.cache_tag}.pyc": "stale",
        "share/alpha.py": "this is never imported\n",
        "bin/.alpha-post-link.sh": "#!/bin/sh\ntouch $PREFIX/it-ran\n",
        f"{SITE}/Al_pha-1.0+cpu.dist-info/METADATA": "Name: Al_pha\nVersion: 1.0+cpu\n",
        f"{SITE}/odd.egg-info/PKG-INFO": "Name: odd\nVersion: 2 or so\n",
    },
    "beta": {
        f"{SITE}/beta.py": "import alpha\nVALUE = alpha.join('x')\n",
        f"{SITE}/beta-3.dist-info/METADATA": "Name: beta\nVersion: 3\n",
    },
    "clash": {f"{SITE}/alpha/__init__.py": "VALUE = 2\n"},
    # What alpha has, too, one of it compiled at another time.
    "same": {
        f"{SITE}/alpha/__init__.py": MODULE,
        f"{SITE}/alpha/__pycache__/__init__.{sys.implementation.cache_tag}.pyc": "later",
        "share/same": "its own\n",
    },
}
DEPENDS = {"python": [], "alpha": ["python"], "beta": ["alpha"], "clash": ["python"], "same": []}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a channel's folder with the packages."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "channel" / "linux-64").mkdir(parents=True)
    for name, files in FILES.items():
        for path, text in files.items():
            file = folder / "files" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if name == "python":
                file.symlink_to(text)
            else:
                file.write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", MAKE], input=json.dumps(DEPENDS), text=True, cwd=folder, check=True
    )
    return folder / "channel"


class Build:
    """What an image build has at hand: packages, a prefix, a cache."""

    def __init__(self, folder: Path, packages: Path) -> None:
        """Lay out the folders."""
        self.folder = folder
        self.packages = packages
        self.prefix = folder / "env"
        self.cache = folder / "cache"
        self.umask = 0o022

    def entry(self, name: str) -> dict[str, str]:
        """Return a package's entry of a slice, with its true hash."""
        filename = f"{name}-1.0-h0_0.conda"
        data = (self.packages / "linux-64" / filename).read_bytes()
        return {
            "name": name,
            "version": "1.0",
            "build": "h0_0",
            "subdir": "linux-64",
            "filename": filename,
            "url": f"https://embedded.strata.invalid/linux-64/{filename}",
            "sha256": hashlib.sha256(data).hexdigest(),
            "md5": "cd" * 16,
        }

    def install(
        self, *names: str, entries: list[dict[str, str]] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the program on packages by name, or on given entries."""
        packages = [self.entry(name) for name in names] if entries is None else entries
        slice_path = self.folder / "slice.json"
        slice_path.write_text(json.dumps({"schema": "strata.slice/1", "packages": packages}))
        argv = [sys.executable, str(PROGRAM), "--slice", str(slice_path)]
        argv += ["--packages", str(self.packages), "--prefix", str(self.prefix)]
        argv += ["--cache", str(self.cache), "--epoch", str(EPOCH)]
        # A proxy that nobody listens on: a request to any network would fail.
        dead = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
        site = {"PYTHONPATH": sysconfig.get_path("purelib")}
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            env={**os.environ, **dead, **site},
            umask=self.umask,
            check=False,
        )

    def good(self, *names: str) -> str:
        """Install, see that it went well, and return what was printed."""
        done = self.install(*names)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def state(self) -> dict[str, tuple[int, str, bytes]]:
        """Return mode, link and bytes of every file and folder of the prefix."""
        return {
            str(path.relative_to(self.prefix)): (
                path.lstat().st_mode,
                str(path.readlink()) if path.is_symlink() else "",
                path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
            )
            for path in sorted(self.prefix.rglob("*"))
        }


@pytest.fixture(scope="module")
def lower(tmp_path_factory: pytest.TempPathFactory, packages: Path) -> tuple[Build, str]:
    """Return a build with python and alpha, only to look at or copy, and what was printed."""
    build = Build(tmp_path_factory.mktemp("lower"), packages)
    return build, build.good("python", "alpha")


@pytest.fixture
def upper(tmp_path: Path, lower: tuple[Build, str]) -> Build:
    """Return a build whose prefix has python and alpha already."""
    build = Build(tmp_path, lower[0].packages)
    shutil.copytree(lower[0].prefix, build.prefix, symlinks=True)
    for name in ("pip.conf", "conda-meta/frozen", "conda-meta/pip-constraints.txt"):
        text = (build.prefix / name).read_text(encoding="utf-8")
        (build.prefix / name).write_text(
            text.replace(str(lower[0].prefix), str(build.prefix)), encoding="utf-8"
        )
    return build


@pytest.fixture
def build(tmp_path: Path, packages: Path) -> Build:
    """Return a fresh build."""
    return Build(tmp_path, packages)


def test_two_layers_install_beside_each_other(upper: Build) -> None:
    """The upper slice adds its files, and touches none of the lower one's but the history."""
    before = upper.state()
    upper.good("beta")
    after = upper.state()
    cached = f"{SITE}/__pycache__/beta.{sys.implementation.cache_tag}.pyc"
    assert after.keys() - before.keys() == {
        f"{SITE}/beta.py",
        f"{SITE}/__pycache__",
        cached,
        f"{SITE}/beta-3.dist-info",
        f"{SITE}/beta-3.dist-info/METADATA",
        "conda-meta/beta-1.0-h0_0.json",
    }
    assert {path for path in before if before[path] != after[path]} == {
        "conda-meta/history",
        "conda-meta/pip-constraints.txt",
    }
    record = json.loads(after["conda-meta/beta-1.0-h0_0.json"][2])
    assert record["files"] == [
        cached,
        f"{SITE}/beta-3.dist-info/METADATA",
        f"{SITE}/beta.py",
    ]
    assert not upper.cache.exists()
    python = upper.prefix / "bin" / "python"
    run = [str(python), "-c", f"import sys; sys.path[:0] = ['{upper.prefix / SITE}']; import beta"]
    assert subprocess.run(run, check=False).returncode == 0


def test_two_installations_are_alike_to_the_last_byte(build: Build) -> None:
    """Files, compiled modules, records and modes are the same in every build."""
    build.good("python", "alpha")
    build.good("beta")
    first = build.state()
    build.prefix.rename(build.folder / "first")
    build.cache = build.folder / "another-cache"
    build.umask = 0o077
    build.good("python", "alpha")
    build.good("beta")
    assert build.state() == first


def test_records_tell_what_conda_list_shows_and_nothing_of_this_build(
    lower: tuple[Build, str],
) -> None:
    """Anybody may read them; URL and hash are the lock's, and the cache isn't mentioned."""
    build, _ = lower
    path = build.prefix / "conda-meta" / "alpha-1.0-h0_0.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    assert path.stat().st_mode & 0o777 == 0o644
    assert record["url"] == "https://embedded.strata.invalid/linux-64/alpha-1.0-h0_0.conda"
    assert record["channel"] == "https://embedded.strata.invalid"
    assert record["sha256"] == build.entry("alpha")["sha256"]
    assert str(build.folder) not in path.read_text(encoding="utf-8")
    cached = f"{SITE}/alpha/__pycache__/__init__.{sys.implementation.cache_tag}.pyc"
    assert record["files"].count(cached) == 1
    history = (build.prefix / "conda-meta" / "history").read_text(encoding="utf-8")
    assert history == (
        "==> 2023-11-14 22:13:20 <==\n"
        "# cmd: strata install_env\n"
        "+https://embedded.strata.invalid/linux-64::python-1.0-h0_0\n"
        "+https://embedded.strata.invalid/linux-64::alpha-1.0-h0_0\n"
    )


def test_modules_are_compiled_and_never_compared_with_their_source(
    lower: tuple[Build, str],
) -> None:
    """The .pyc files are unchecked and hash-based (PEP 552), the packages' own ones replaced."""
    build, told = lower
    cached = build.prefix / SITE / f"alpha/__pycache__/__init__.{sys.implementation.cache_tag}.pyc"
    assert cached.read_bytes()[4:8] == (1).to_bytes(4, "little")
    assert "not compiled: " + str(build.prefix / SITE / "alpha/bad.py") in told
    assert "compiled 1 modules" in told
    assert not (build.prefix / "share" / "__pycache__").exists()


def test_pip_is_told_to_keep_what_the_lock_installed(
    upper: Build, lower: tuple[Build, str]
) -> None:
    """Every layer's projects are constraints for pip, which finds them by the prefix alone."""
    path = upper.prefix / "conda-meta" / "pip-constraints.txt"
    head = f"# What the lock put into {upper.prefix}.  pip keeps these versions"
    assert path.read_text(encoding="utf-8").splitlines()[1:] == ["Al_pha==1.0+cpu"]
    upper.good("beta")
    text = path.read_text(encoding="utf-8")
    assert text == f"{head} ({upper.prefix}/pip.conf).\nAl_pha==1.0+cpu\nbeta==3\n"
    configuration = (upper.prefix / "pip.conf").read_text(encoding="utf-8")
    assert configuration.endswith(f"[install]\nconstraint = {path}\n")
    assert "pip can't be told to keep odd==2 or so" in lower[1]


def test_conda_is_told_that_the_environment_is_frozen(lower: tuple[Build, str]) -> None:
    """The marker of CEP 22 names the way out: an environment of one's own."""
    frozen = lower[0].prefix / "conda-meta" / "frozen"
    message = json.loads(frozen.read_text(encoding="utf-8"))["message"]
    assert message.endswith("Make an environment of your own: conda create --name NAME")
    assert frozen.stat().st_mode & 0o777 == 0o644


def test_post_link_scripts_are_named_and_not_run(lower: tuple[Build, str]) -> None:
    """A package's script never runs as root in the build unseen."""
    build, told = lower
    assert "not run: bin/.alpha-post-link.sh" in told
    assert not (build.prefix / "it-ran").exists()


def test_a_wrong_hash_stops_before_anything_is_installed(build: Build) -> None:
    """The message names the package, what was expected and what was found; exit code 3."""
    wrong = {**build.entry("alpha"), "sha256": "00" * 32}
    done = build.install(entries=[build.entry("python"), wrong])
    assert done.returncode == 3
    assert "alpha: " in done.stderr
    assert f"expected sha256 {'00' * 32}" in done.stderr
    assert f"found    sha256 {build.entry('alpha')['sha256']}" in done.stderr
    assert not build.prefix.exists()


def test_a_missing_package_is_named(build: Build) -> None:
    """A package that was never fetched is told by its file name; exit code 3."""
    done = build.install(entries=[{**build.entry("alpha"), "filename": "gone-1.0-h0_0.conda"}])
    assert done.returncode == 3
    assert "there is no file gone-1.0-h0_0.conda" in done.stderr


def test_a_package_of_a_lower_layer_is_not_installed_again(upper: Build) -> None:
    """A slice that overlaps what is there is not a slice of this image; exit code 3."""
    done = upper.install("alpha", "beta")
    assert done.returncode == 3
    assert "has alpha already" in done.stderr
    assert not (upper.prefix / SITE / "beta.py").exists()


def test_a_file_that_two_packages_bring_is_refused(upper: Build) -> None:
    """Which of two files an image gets must not depend on their order; exit code 4."""
    done = upper.install("clash")
    assert done.returncode == 4
    assert f"1 files are in two packages: {SITE}/alpha/__init__.py (clash)" in done.stderr


def test_a_file_that_two_packages_have_alike_is_one(lower: tuple[Build, str], build: Build) -> None:
    """In one layer it is named and compiled once; the records of both packages have it."""
    module = f"{SITE}/alpha/__init__.py"
    cached = f"{SITE}/alpha/__pycache__/__init__.{sys.implementation.cache_tag}.pyc"
    said = build.good("python", "alpha", "same")
    assert f"install_env: the same in two packages: {module} (same)" in said
    after, before = build.state(), lower[0].state()
    assert after[module] == before[module]
    assert after.keys() - before.keys() == {"share/same", "conda-meta/same-1.0-h0_0.json"}
    for name in ("alpha", "same"):
        record = json.loads(after[f"conda-meta/{name}-1.0-h0_0.json"][2])
        assert {module, cached} <= set(record["files"])
        assert {module, cached} <= {item["_path"] for item in record["paths_data"]["paths"]}
        assert "clobber" not in json.dumps(record)


def test_a_file_of_a_lower_layer_may_be_brought_again(upper: Build) -> None:
    """If it is the same, the lower layer's stays untouched, and so does what was compiled."""
    before = upper.state()
    upper.good("same")
    after = upper.state()
    assert after.keys() - before.keys() == {"share/same", "conda-meta/same-1.0-h0_0.json"}
    assert {path for path in before if before[path] != after[path]} == {"conda-meta/history"}


def test_modules_without_a_python_are_an_error(build: Build) -> None:
    """An environment whose modules can't be compiled is never left as if it were done."""
    done = build.install("beta")
    assert done.returncode == 4
    assert "no " + str(build.prefix / "bin" / "python") in done.stderr


def test_a_cache_in_use_is_not_removed(build: Build) -> None:
    """A folder that holds something is refused, since the cache is removed at the end."""
    build.cache.mkdir()
    (build.cache / "precious").touch()
    assert build.install("python").returncode == 2
    assert (build.cache / "precious").exists()


def test_what_is_no_slice_is_refused(build: Build) -> None:
    """A file of another kind gives exit code 3 and its name."""
    (build.folder / "other.json").write_text("{}", encoding="utf-8")
    argv = [sys.executable, str(PROGRAM), "--slice", str(build.folder / "other.json")]
    argv += ["--packages", "p", "--prefix", "e", "--cache", "c"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, "other.json: is not a strata.slice/1" in done.stderr) == (3, True)
