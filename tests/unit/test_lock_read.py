"""Reading a conda-lock.yml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.errors import LockError
from strata.lock import read_lock

if TYPE_CHECKING:
    from pathlib import Path

LOCK = """\
version: 1
metadata:
  content_hash: {linux-64: abc}
  channels:
  - url: https://embedded.strata.invalid/
    used_env_vars: []
  platforms:
  - linux-64
  sources: []
  custom_metadata:
    strata-inputs-digest: sha256:00
    strata-input.pins.python: 3.11.*
package:
- name: nose-2
  version: 1!1.0+cpu
  manager: conda
  platform: linux-64
  dependencies:
    python: '>=3.11'
    __glibc: ''
  url: https://embedded.strata.invalid/linux-64/nose-2-1%211.0%2Bcpu-py311_0.conda
  hash:
    md5: d41d8cd98f00b204e9800998ecf8427e
    sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
  category: pytorch
  optional: true
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the lock is."""
    return tmp_path / "tiny" / "conda-lock.yml"


def refusal(path: Path, text: str) -> LockError:
    """Return the error with which a lock is refused."""
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LockError) as caught:
        read_lock(path)
    return caught.value


def test_reads_packages_and_what_they_were_solved_for(path: Path) -> None:
    """Names, versions, hashes and inputs arrive; the build is read from the file's name."""
    path.parent.mkdir()
    path.write_text(LOCK, encoding="utf-8")
    lock = read_lock(path)
    assert lock.inputs_digest == "sha256:00"
    assert lock.facts == {"pins.python": "3.11.*"}
    assert lock.channels == ("https://embedded.strata.invalid/",)
    assert lock.platforms == ("linux-64",)
    (package,) = lock.packages
    assert (package.name, package.version, package.build) == ("nose-2", "1!1.0+cpu", "py311_0")
    assert package.filename == "nose-2-1!1.0+cpu-py311_0.conda"
    assert (package.subdir, package.category) == ("linux-64", "pytorch")
    assert package.dependencies == ("__glibc", "python")
    assert package.sha256.startswith("e3b0c442")


def test_a_missing_lock_names_the_command_that_writes_it(path: Path) -> None:
    """Exit code 3, and the way out."""
    with pytest.raises(LockError) as caught:
        read_lock(path)
    assert caught.value.exit_code == 3
    assert "there is no lock\n  fix: ./inv lock --variant tiny" in str(caught.value)


def test_invalid_yaml_names_the_line(path: Path) -> None:
    """A lock cut off in the middle of a value is refused at that line."""
    cut = LOCK[: LOCK.index(">=3.11'") + 4]
    assert "conda-lock.yml:19: invalid YAML" in str(refusal(path, cut))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("version: 1\n", "version: 2\n", ":1: is not a conda-lock file of version 1"),
        ("  url: https://e", "  uri: https://e", ":14: package[0] (nose-2) has no url"),
        (
            "url: https://embedded.strata.invalid/linux-64/",
            "url: http://[bad/",
            ":21: package[0] (nose-2): http://[bad/nose-2-1%211.0%2Bcpu-py311_0.conda is no URL",
        ),
        ("  category: pytorch\n", "", ":14: package[0] (nose-2) has no category"),
        ("version: 1!1.0+cpu", "version: 1!1.1", ":21: package[0] (nose-2): the file nose-2-1!1.0"),
        ("  platforms:\n  - linux-64\n", "", ":2: metadata has no list of platforms"),
    ],
)
def test_a_broken_entry_is_named_with_its_line(
    path: Path, old: str, new: str, expected: str
) -> None:
    """Each key that is missing or contradicts another one is told with its place."""
    assert LOCK.replace(old, new) != LOCK
    assert expected in str(refusal(path, LOCK.replace(old, new)))


def test_a_package_that_stands_twice_is_refused(path: Path) -> None:
    """One package has one entry for each platform."""
    entry = LOCK[LOCK.index("- name") :]
    assert "nose-2 stands twice for linux-64" in str(refusal(path, LOCK + entry))


def test_a_broken_entry_never_shows_a_secret(path: Path) -> None:
    """The text of an error has the secret in a URL masked."""
    text = LOCK.replace("https://emb", "https://u:secret@emb").replace(
        "version: 1!1.0", "version: 9"
    )
    assert "secret" not in str(refusal(path, text)).replace(str(path), "")
