"""What counts into a digest, and what does not."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from strata.digest import file_digest, folder_digests, inputs_digest, text_digest

if TYPE_CHECKING:
    from pathlib import Path


def test_a_text_has_the_sha256_of_its_utf_8() -> None:
    """Anybody can compute it again."""
    assert text_digest("é") == hashlib.sha256("é".encode()).hexdigest()


def test_of_a_files_mode_only_the_owners_x_bit_counts(tmp_path: Path) -> None:
    """Neither umask nor clock of whoever cloned reaches a digest."""
    file = tmp_path / "file"
    file.write_text("text")
    digests = {}
    for mode in (0o600, 0o644, 0o664, 0o655, 0o700, 0o755, 0o775):
        file.chmod(mode)
        os.utime(file, (mode, mode))
        digests[mode] = file_digest(file)
    plain = hashlib.sha256(b"text").hexdigest()
    assert {digests[mode] for mode in (0o600, 0o644, 0o664, 0o655)} == {plain}
    assert {digests[mode] for mode in (0o700, 0o755, 0o775)} == {f"{plain}+x"}


def test_a_symbolic_link_counts_by_where_it_points(tmp_path: Path) -> None:
    """Be there something or not."""
    link = tmp_path / "folder" / "link"
    link.parent.mkdir()
    link.symlink_to("nowhere")
    assert folder_digests(link.parent, "f") == {"f/link": "-> nowhere"}


def test_a_folder_is_its_files_by_path_but_for_caches(tmp_path: Path) -> None:
    """Python's caches come and go; files below folders count."""
    folder = tmp_path / "__pycache__" / "folder"  # where the folder itself lies says nothing
    for path in ("b", "a/c", "a/__pycache__/c.pyc"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    assert folder_digests(folder, "layers/x") == {
        "layers/x/a/c": text_digest("a/c"),
        "layers/x/b": text_digest("b"),
    }


def test_inputs_have_one_digest_whatever_their_order() -> None:
    """Names and values decide it, and cannot be taken for each other."""
    assert inputs_digest({"a": "1", "b": "2"}) == inputs_digest({"b": "2", "a": "1"})
    others = [{"a": "1"}, {"a": "2", "b": "1"}, {"a": '1","b":"2'}, {"a1": "", "b2": ""}]
    digests = {inputs_digest(other) for other in ({"a": "1", "b": "2"}, *others)}
    assert len(digests) == 5
