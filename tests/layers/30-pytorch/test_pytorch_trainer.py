"""The trainer is there for every folder, and the image leaves training's variables alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

# What torchrun, clusters and users set: a value of the image's would break one of them.
THEIRS = re.compile(
    r"^(MASTER_|WORLD_SIZE|RANK|LOCAL_|GROUP_|CUDA_|NVIDIA_|OMP_|MKL_|NCCL_|GLOO_|TORCH|PYTORCH)"
)


def test_the_trainer_is_found_from_any_folder(layer: Layer) -> None:
    """`python -m trainer` works where the user happens to be."""
    assert layer.out("cd / && python -m trainer --help").startswith("usage: trainer")
    program = "import trainer; print(trainer.__file__)"
    assert layer.out(f"cd /tmp && python -c '{program}'") == "/opt/strata/train/trainer/__init__.py"


def test_a_copy_of_the_trainer_comes_first(layer: Layer) -> None:
    """Who copies the trainer into the working folder runs the copy."""
    folder = layer.out("mktemp -d")
    layer.out(f"cp -r /opt/strata/train/trainer {folder} && cd {folder}")
    layer.out(f"cd {folder} && echo 'print(__file__)' > trainer/__main__.py")
    said = layer.out(f"cd {folder} && python -m trainer && rm -r {folder}")
    assert said == f"{folder}/trainer/__main__.py"


def test_the_image_sets_no_variable_of_trainings(layer: Layer) -> None:
    """No variable of torchrun's, NCCL's, gloo's, CUDA's or OpenMP's has a value in the image."""
    names = [line.partition("=")[0] for line in layer.lines("env")]
    assert "PATH" in names
    assert [name for name in names if THEIRS.match(name)] == []
