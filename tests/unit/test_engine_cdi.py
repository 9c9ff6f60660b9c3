"""CDI files: read whole, or named with what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from strata.engine.cdi import read_cdi

GOOD = 'cdiVersion: "0.6.0"\nkind: nvidia.com/gpu\ndevices: [{name: "0"}]\n'


def test_both_formats_are_read(tmp_path: Path) -> None:
    """JSON and YAML are told by their endings; other files and missing folders are nothing."""
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.json").write_text('{\n\t"kind": "vendor.example/nic"\n}')
    (tmp_path / "c.yaml.bak").write_text("{")
    read = read_cdi([str(tmp_path), str(tmp_path / "none")])
    assert [(one.file.name, one.kind) for one in read.found] == [
        ("a.yaml", "nvidia.com/gpu"),
        ("b.json", "vendor.example/nic"),
    ]
    assert read.found[0].text == GOOD
    assert read.problems == ()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("nvidia.json", b'{"kind": "nvidia.com/gpu"', "Expecting ',' delimiter: line 1 column 26"),
        ("nvidia.json", b"", "Expecting value: line 1 column 1"),
        ("nvidia.yaml", b"kind: [nvidia.com/gpu", "expected ',' or ']', but got"),
        ("nvidia.yaml", b"", "it is empty"),
        ("nvidia.yaml", b"- kind", "it names no kind of devices"),
        ("nvidia.yaml", b"kind: 7", "it names no kind of devices"),
        ("nvidia.yaml", b"kind: \xff", "can't decode byte 0xff"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    """File, reason, what follows, and how to mend it; the files beside it still count."""
    file = tmp_path / name
    file.write_bytes(content)
    (tmp_path / "other.yaml").write_text(GOOD)
    read = read_cdi([str(tmp_path)])
    assert [one.file.name for one in read.found] == ["other.yaml"]
    (problem,) = read.problems
    assert problem.where == str(file)
    assert problem.what.startswith("is no CDI specification (")
    assert reason in problem.what
    assert problem.what.endswith("), so it is not known whether it gives containers GPUs")
    assert problem.fix == (
        f"sudo nvidia-ctk cdi generate --output={file}, or sudo rm {file} if no device needs it"
    )


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only root may read says so, and how to open it."""
    file = tmp_path / "nvidia.yaml"
    file.write_text(GOOD)

    def refuse(self: Path, **_: str) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", refuse)  # root, who runs tests too, may read all
    (problem,) = read_cdi([str(tmp_path)]).problems
    assert problem.where == str(file)
    assert problem.what.startswith("cannot be read (Permission denied), ")
    assert problem.fix.startswith(f"sudo chmod a+r {file}, or ")


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    """A folder in place of a file, a link to nowhere, a file in place of a folder."""
    (tmp_path / "a.yaml").mkdir()
    (tmp_path / "b.json").symlink_to("nowhere")
    (tmp_path / "c").touch()
    told = read_cdi([str(tmp_path), str(tmp_path / "c")]).problems
    assert [(Path(problem.where).name, problem.what.partition(",")[0]) for problem in told] == [
        ("a.yaml", "cannot be read (Is a directory)"),
        ("b.json", "cannot be read (No such file or directory)"),
        ("c", "cannot be read (Not a directory)"),
    ]
