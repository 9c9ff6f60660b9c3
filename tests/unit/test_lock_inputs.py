"""Reading what decides a solve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.errors import DefinitionError
from strata.lock import LockInputs, inputs_digest, lock_inputs

if TYPE_CHECKING:
    from pathlib import Path

PINS = """\
accelerator: cpu
channels:
  - https://embedded.strata.invalid/
platforms:
  - linux-64
virtual-packages:
  linux-64:
    __glibc: "2.36"
pins:
  python: 3.11.*
"""
CUDA_PINS = PINS.replace("cpu", "cuda") + 'minimum-driver: "525.60.13"\n'
LOWER = """\
dependencies:
  - python
  - numpy >=2,<3
"""
UPPER = """\
dependencies: [jupyterlab]
"""


def read(folder: Path, *, pins: str = PINS, lower: str = LOWER, upper: str = UPPER) -> LockInputs:
    """Read a variant with two layers."""
    (folder / "pins.yml").write_text(pins, encoding="utf-8")
    (folder / "lower.yml").write_text(lower, encoding="utf-8")
    (folder / "upper.yml").write_text(upper, encoding="utf-8")
    return lock_inputs(
        {"pytorch": folder / "lower.yml", "jupyter": folder / "upper.yml"}, folder / "pins.yml"
    )


def refusal(folder: Path, **texts: str) -> str:
    """Return the text with which a variant is refused."""
    with pytest.raises(DefinitionError) as caught:
        read(folder, **texts)
    return str(caught.value)


def test_reads_all_that_decides_a_solve(tmp_path: Path) -> None:
    """Environments, pins, channels, platforms and virtual packages arrive as they were written."""
    assert read(tmp_path).facts() == {
        "accelerator": "cpu",
        "categories": "pytorch jupyter",
        "channels": "https://embedded.strata.invalid/",
        "environment.jupyter.jupyterlab": "*",
        "environment.pytorch.numpy": ">=2,<3",
        "environment.pytorch.python": "*",
        "pins.python": "3.11.*",
        "platforms": "linux-64",
        "virtual-packages.linux-64.__glibc": "2.36",
    }


def test_digest_ignores_comments_order_and_space(tmp_path: Path) -> None:
    """A change that means nothing leaves the digest alone."""
    lower = "# why\ndependencies:\n\n  - numpy   >=2,<3   # why\n  - python\n"
    assert inputs_digest(read(tmp_path, lower=lower)) == inputs_digest(read(tmp_path))


@pytest.mark.parametrize(
    "texts",
    [
        {"pins": PINS.replace("3.11", "3.12")},
        {"pins": PINS.replace("2.36", "2.28")},
        {"pins": CUDA_PINS},
        {"pins": PINS.replace("embedded.", "other.")},
        {"pins": PINS.replace("linux-64", "linux-aarch64")},
        {"lower": LOWER.replace(">=2", ">=1")},
        {"upper": "dependencies: [jupyterlab, ipykernel]\n"},
    ],
)
def test_digest_follows_every_input(tmp_path: Path, texts: dict[str, str]) -> None:
    """Each single fact that decides a solve changes the digest."""
    assert inputs_digest(read(tmp_path, **texts)) != inputs_digest(read(tmp_path))


def test_the_minimum_driver_is_part_of_what_a_lock_claims(tmp_path: Path) -> None:
    """Another driver makes another digest."""
    later = CUDA_PINS.replace("525.60.13", "575.51.03")
    assert inputs_digest(read(tmp_path, pins=later)) != inputs_digest(
        read(tmp_path, pins=CUDA_PINS)
    )


def test_digest_follows_the_wheels_that_a_channel_is_made_of(tmp_path: Path) -> None:
    """Another hash in wheels.txt changes the digest; another comment does not."""
    wheels = tmp_path / "wheels.txt"
    wheels.write_text("a==1 --hash=sha256:00  # via b\n", encoding="utf-8")
    first = inputs_digest(read(tmp_path))
    wheels.write_text("# made anew\na==1 --hash=sha256:00  # via c\n", encoding="utf-8")
    assert inputs_digest(read(tmp_path)) == first
    wheels.write_text("a==1 --hash=sha256:11\n", encoding="utf-8")
    assert inputs_digest(read(tmp_path)) != first


def test_an_unknown_key_names_the_closest_and_the_line(tmp_path: Path) -> None:
    """A slip in a key's name is an error, not silence."""
    text = refusal(tmp_path, pins=PINS.replace("platforms:", "platfroms:"))
    assert 'pins.yml:4: unknown key "platfroms" (did you mean "platforms"?)' in text


def test_invalid_yaml_names_the_line(tmp_path: Path) -> None:
    """A file that is no YAML is refused at the line that is wrong."""
    text = refusal(tmp_path, lower="dependencies:\n  - python\n - numpy\n")
    assert "lower.yml:3: invalid YAML" in text


def test_a_version_that_yaml_reads_as_a_number_is_refused(tmp_path: Path) -> None:
    """3.10 without quotes would pin Python 3.1."""
    text = refusal(tmp_path, pins=PINS.replace("3.11.*", "3.10"))
    assert "pins.yml:10: pins.python is read as 3.1, not as text" in text


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """YAML parsers silently take the last of two; we don't."""
    text = refusal(tmp_path, pins=PINS + "  python: 3.12.*\n")
    assert 'pins.yml:11: key "python" stands twice' in text


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """One run shows every fault."""
    with pytest.raises(DefinitionError) as caught:
        read(
            tmp_path,
            pins=PINS.replace("cpu", "tpu").replace("- linux-64", "- linux-46"),
            lower="dependencies: [{pip: [torch]}, Numpy, python, python]\n",
        )
    told = [problem.what for problem in caught.value.problems]
    assert told == [
        "{'pip': ['torch']} is not a conda package",
        '"Numpy" is not the name of a conda package',
        "python stands twice",
        "accelerator 'tpu' is not known (did you mean \"cpu\"?)",
        "platform 'linux-46' is not known (did you mean \"linux-64\"?)",
        '"linux-64" is not one of the platforms (did you mean "linux-46"?)',
        "says nothing of linux-46",
    ]


@pytest.mark.parametrize(
    ("channel", "reason"),
    [
        ("https://user:secret@host/c", "carries a user name or password"),
        ("https://host/t/secret/c", "carries a token"),
        ("defaults", "defaults channels"),
        ("https://repo.anaconda.com/pkgs/main", "defaults channels"),
        ("file:///srv/secret", "exists on this machine only"),
        ("http://[secret/c", "is no URL"),
    ],
)
def test_a_channel_that_nobody_may_or_can_use_is_refused(
    tmp_path: Path, channel: str, reason: str
) -> None:
    """Secrets, Anaconda's own channels and local folders never get as far as a solve."""
    text = refusal(tmp_path, pins=PINS.replace("https://embedded.strata.invalid/", channel))
    assert reason in text
    assert "user:secret" not in text
    assert "/t/secret" not in text


def test_a_channel_may_take_its_secret_from_the_environment(tmp_path: Path) -> None:
    """$VAR in a channel's URL is no secret."""
    channel = "https://$USER:${PASSWORD}@host/t/$TOKEN/c"
    pins = PINS.replace("https://embedded.strata.invalid/", channel)
    assert read(tmp_path, pins=pins).channels == (channel,)


def test_a_missing_file_is_a_definition_error(tmp_path: Path) -> None:
    """A variant without pins.yml is refused by name."""
    with pytest.raises(DefinitionError, match=r"pins\.yml: can't be read"):
        lock_inputs({}, tmp_path / "pins.yml")


@pytest.mark.parametrize(
    ("pins", "expected"),
    [
        (
            CUDA_PINS.replace('"525.60.13"', "525.6"),
            '"minimum-driver" is missing, or is no version',
        ),
        (CUDA_PINS.replace('minimum-driver: "525.60.13"', ""), '"minimum-driver" is missing'),
        (CUDA_PINS.replace("cuda", "cpu"), "a variant without CUDA needs no driver"),
    ],
)
def test_the_minimum_driver_stands_where_cuda_does(
    tmp_path: Path, pins: str, expected: str
) -> None:
    """A CUDA variant declares it as text, and no other may."""
    assert expected in refusal(tmp_path, pins=pins)


def test_what_a_layer_asks_for_beside_cuda_is_asked_for_there_alone(tmp_path: Path) -> None:
    """The list `cuda` of an environment.yml counts where the accelerator is CUDA."""
    lower = LOWER + "cuda: [nvidia-ml-py]\n"
    (with_cuda, _) = read(tmp_path, pins=CUDA_PINS, lower=lower).environments
    (without, _) = read(tmp_path, lower=lower).environments
    assert with_cuda.roots == ("numpy", "nvidia-ml-py", "python")
    assert without.roots == ("numpy", "python")


def test_a_platform_may_have_no_part_of_a_layer(tmp_path: Path) -> None:
    """The layer is not among its environments, and the lock says for what it was solved."""
    both = PINS.replace("  - linux-64", "  - linux-64\n  - linux-aarch64").replace(
        '  linux-64:\n    __glibc: "2.36"\n',
        '  linux-64: {__glibc: "2.36"}\n  linux-aarch64: {__glibc: "2.36"}\n',
    )
    read(tmp_path, pins=both)
    files = {"pytorch": tmp_path / "lower.yml", "jupyter": tmp_path / "upper.yml"}
    inputs = lock_inputs(files, tmp_path / "pins.yml", {"linux-aarch64": ("jupyter",)})
    assert [one.category for one in inputs.on("linux-64")] == ["pytorch", "jupyter"]
    assert [one.category for one in inputs.on("linux-aarch64")] == ["pytorch"]
    assert inputs.facts()["lacking.linux-aarch64"] == "jupyter"
