"""Each kind of damage to a real lock, and the message that it ends in."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from strata.errors import LockError
from strata.load import load
from strata.lock import (
    LockInputs,
    check_lock,
    inputs_digest,
    lock_inputs,
    packages_digest,
    read_lock,
)
from strata.locking import variant_inputs

ROOT = Path(__file__).parents[2]
NAME = "cuda118-py39"
CUDA = (ROOT / "locks" / NAME / "conda-lock.yml").read_text(encoding="utf-8")
CPU = (ROOT / "locks" / "embedded" / "conda-lock.yml").read_text(encoding="utf-8")
TOO_OLD = "CUDA 11.8 needs the driver 450.80.02 or newer, and minimum-driver is 440.33"
FORGE = "https://conda.anaconda.org/conda-forge/"


def entry(name: str, version: str = "1.0", build: str = "h0_0") -> str:
    """Return the lines of one more package, on which nothing depends."""
    return f"""\
- name: {name}
  version: '{version}'
  manager: conda
  platform: linux-64
  dependencies: {{}}
  url: CHANNEL/linux-64/{name}-{version}-{build}.conda
  hash: {{md5: {"cd" * 16}, sha256: {"ab" * 32}}}
  category: pytorch
  optional: true
"""


class Damaged:
    """A copy of a committed lock, in which one thing is changed."""

    def __init__(self, folder: Path, variant: str) -> None:
        """Take the inputs of the committed variant."""
        self.path = folder / variant / "conda-lock.yml"
        self.path.parent.mkdir()
        project = load(ROOT)
        self.inputs = variant_inputs(project, project.variants[variant])
        self.text = CUDA if variant == NAME else CPU
        self.channel = self.inputs.channels[0].rstrip("/")

    def replace(self, old: str, new: str) -> None:
        """Replace a text that stands in the lock."""
        if old not in self.text:
            raise ValueError(f"the lock does not hold {old!r}")
        self.text = self.text.replace(old, new)

    def rebuild(self, name: str, build: str) -> None:
        """Give a package another build."""
        pattern = rf"(/{re.escape(name)}-[^-/]+-)[^-/]+(\.conda|\.tar\.bz2)\n"
        self.text, count = re.subn(pattern, rf"\g<1>{build}\g<2>\n", self.text)
        if count != 1:
            raise ValueError(f"the lock holds {name} {count} times")

    def add(self, *packages: str) -> None:
        """Put packages at the end."""
        self.text += "".join(packages).replace("CHANNEL", self.channel)

    def remove(self, name: str) -> None:
        """Take a package out, and all dependencies on it."""
        head, start, rest = self.text.partition(f"- name: {name}\n")
        if not start:
            raise ValueError(f"the lock does not hold {name}")
        _, after, tail = rest.partition("- name: ")
        self.text = head + after + tail
        lines = self.text.splitlines(keepends=True)
        self.text = "".join(line for line in lines if not line.startswith(f"    {name}: "))

    def problems(self, inputs: LockInputs | None = None) -> list[str]:
        """Write the lock, its packages as if they had been solved; return what is wrong with it."""
        self.path.write_text(self.text, encoding="utf-8")
        with suppress(LockError):  # which check_lock tells
            lock = read_lock(self.path)
            packages = ((p.platform, p.name, p.url, p.sha256) for p in lock.packages)
            text = self.text.replace(lock.packages_digest, packages_digest(packages))
            self.path.write_text(text, encoding="utf-8")
        return [problem.what for problem in check_lock(self.path, inputs or self.inputs)]


@pytest.fixture
def cuda(tmp_path: Path) -> Damaged:
    """Return a copy of the lock for CUDA 11.8."""
    return Damaged(tmp_path, NAME)


@pytest.fixture
def cpu(tmp_path: Path) -> Damaged:
    """Return a copy of the embedded variant's lock, which has no CUDA."""
    return Damaged(tmp_path, "embedded")


def test_the_copies_are_whole(cuda: Damaged, cpu: Damaged) -> None:
    """What the other tests break is good before."""
    assert (cuda.problems(), cpu.problems()) == ([], [])


def test_a_cpu_build_of_pytorch_is_no_cuda_variant(cuda: Damaged) -> None:
    """The build's name says for what it was built."""
    cuda.rebuild("pytorch", "cpu_py39h0000000_1")
    assert cuda.problems() == [
        "linux-64: pytorch is the build cpu_py39h0000000_1, and the accelerator is cuda"
    ]


def test_a_pytorch_of_another_cuda_is_refused(cuda: Damaged) -> None:
    """PyTorch and the runtime beside it are of one family."""
    cuda.rebuild("pytorch", "cuda129_py39h0000000_301")
    assert cuda.problems() == ["linux-64: pytorch is built for CUDA 12.9, and the runtime is 11.8"]


@pytest.mark.parametrize("build", ["cuda13_py39h0_0", "cuda130_mkl_py39h0_0", "cuda_13_py39h0_0"])
def test_a_build_names_its_family_of_cuda(cuda: Damaged, build: str) -> None:
    """With its minor version or without."""
    cuda.rebuild("pytorch", build)
    (problem,) = cuda.problems()
    assert problem.startswith("linux-64: pytorch is built for CUDA 13")
    assert problem.endswith(", and the runtime is 11.8")


@pytest.mark.parametrize("build", ["cuda_py313_h6be0d2c_2", "cuda11_py39h0_0", "cuda_h0_0"])
def test_a_build_for_cuda_may_leave_its_version_open(cuda: Damaged, build: str) -> None:
    """As torchvision's do; it is no other CUDA's, then."""
    cuda.rebuild("pytorch", build)
    assert cuda.problems() == []


def test_a_cuda_variant_without_a_runtime_is_refused(cuda: Damaged) -> None:
    """PyTorch alone runs on no GPU."""
    cuda.remove("cuda-version")
    cuda.remove("cudatoolkit")
    assert cuda.problems() == [
        "linux-64: there is no CUDA runtime, and the accelerator is cuda",
        "the pin cuda-version 11.8.* pins nothing that is needed",
    ]


def test_a_cuda_variant_without_nccl_is_refused(cuda: Damaged) -> None:
    """The layer asks for it, and the check says so even where no layer does."""
    cuda.remove("nccl")
    assert "linux-64: nccl is missing, without which GPUs can't train together" in cuda.problems()


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("cuda-cudart", "h0_0"),
        ("cudatoolkit", "h0_0"),
        ("libcublas", "h0_0"),
        ("libcudnn", "h0_0"),
        ("libcudnn-dev", "h0_0"),
        ("libcutensor", "h0_0"),
        ("libnvshmem3", "h0_0"),
        ("libmagma_sparse", "h0_0"),
        ("nccl", "h0_0"),
    ],
)
def test_cuda_has_no_place_in_a_cpu_variant(cpu: Damaged, name: str, build: str) -> None:
    """A package of its runtime would be 100 MB and more that nobody uses."""
    cpu.add(entry(name, build=build))
    assert cpu.problems() == [f"linux-64: {name} 1.0 is of CUDA, and the accelerator is cpu"]


@pytest.mark.parametrize(
    "name", ["cuda-version", "libcurl", "libcups", "numcodecs", "nvidia-ml-py"]
)
def test_what_only_sounds_like_cuda_has(cpu: Damaged, name: str) -> None:
    """`cuda-version` holds nothing, nvidia-ml-py only asks, libcurl is no library of CUDA."""
    cpu.add(entry(name))
    assert cpu.problems() == []


@pytest.mark.parametrize("name", ["torchvision", "triton"])
@pytest.mark.parametrize("build", ["cuda129_py311h0_0", "py311_cuda_h0_0"])
def test_a_cuda_build_in_a_cpu_variant_is_refused(cpu: Damaged, name: str, build: str) -> None:
    """Of whatever package, and even where its runtime is missing."""
    cpu.add(entry(name, build=build))
    assert cpu.problems() == [f"linux-64: {name} is the build {build}, and the accelerator is cpu"]


def test_a_build_without_cuda_has_a_place_in_a_cpu_variant(cpu: Damaged) -> None:
    """Some say so in their name."""
    cpu.add(entry("opencv", build="nocuda_py311h0_0"))
    assert cpu.problems() == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "450.80.02",
            "440.33",
            ["linux-64: " + TOO_OLD],
        ),
        (
            '__cuda: "11.0"',
            '__cuda: "12.0"',
            ["linux-64: the runtime is CUDA 11.8, and the virtual package __cuda is 12"],
        ),
        (
            '    __cuda: "11.0"\n',
            "",
            ["linux-64: the runtime is CUDA 11.8, and the virtual package __cuda is missing"],
        ),
        ("450.80.02", "450.080.2", []),
    ],
)
def test_the_cuda_version_fits_the_minimum_driver(
    cuda: Damaged, old: str, new: str, expected: list[str]
) -> None:
    """By NVIDIA's table, and the CUDA that the solver was told of is the driver's."""
    pins = cuda.path.with_name("pins.yml")
    text = (ROOT / "locks" / NAME / "pins.yml").read_text(encoding="utf-8")
    assert old in text
    pins.write_text(text.replace(old, new), encoding="utf-8")
    project = load(ROOT)
    inputs = lock_inputs(project.environments(project.variants[NAME]), pins)
    # A lock that was solved for these pins, so that it isn't stale.
    before = {f"strata-input.{name}": value for name, value in cuda.inputs.facts().items()}
    after = {f"strata-input.{name}": value for name, value in inputs.facts().items()}
    for name, value in before.items():
        if name not in after:
            cuda.replace(f"    {name}: '{value}'\n", "")
        elif after[name] != value:
            is_quoted = f"{name}: '{value}'" in cuda.text
            cuda.replace(
                f"{name}: '{value}'" if is_quoted else f"{name}: {value}",
                f"{name}: '{after[name]}'",
            )
    cuda.replace(inputs_digest(cuda.inputs), inputs_digest(inputs))
    assert cuda.problems(inputs) == expected


@pytest.mark.parametrize("name", ["libgomp", "intel-openmp"])
def test_two_openmp_runtimes_are_refused(cuda: Damaged, name: str) -> None:
    """Beside LLVM's, which all of conda-forge's PyTorch shares."""
    cuda.add(entry(name))
    pair = ", ".join(sorted([name, "llvm-openmp"]))
    assert cuda.problems() == [f"linux-64: there are 2 OpenMP runtimes: {pair}"]


def test_the_openmp_mutex_stands_for_the_runtime_that_is_there(cuda: Damaged) -> None:
    """Its build says whose libgomp.so.1 the programs load."""
    cuda.rebuild("_openmp_mutex", "2_gnu")
    assert cuda.problems() == [
        "linux-64: _openmp_mutex 2_gnu stands for libgomp, and the runtime is llvm-openmp"
    ]


def test_two_blas_libraries_are_refused(cuda: Damaged) -> None:
    """NumPy's and PyTorch's are one."""
    cuda.add(entry("libopenblas"))
    assert cuda.problems() == ["linux-64: there are 2 BLAS libraries: libopenblas, mkl"]


def test_the_interfaces_to_blas_are_of_one_family(cuda: Damaged) -> None:
    """A libblas for one library and liblapack for another would load both."""
    cuda.rebuild("liblapack", "20_linux64_openblas")
    assert cuda.problems() == ["linux-64: the BLAS interfaces are built for mkl and openblas"]


def test_a_package_of_pip_is_refused(cuda: Damaged) -> None:
    """It would come from another place, by another installer, with other dependencies."""
    head, start, rest = cuda.text.partition("- name: pip\n")
    cuda.text = head + start + rest.replace("manager: conda", "manager: pip", 1)
    (problem,) = cuda.problems()
    assert problem.endswith("(pip): comes from pip; a lock holds conda packages alone")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "conda.anaconda.org/conda-forge/noarch/pip-",
            "repo.anaconda.com/pkgs/main/noarch/pip-",
            f"is in none of {FORGE}",
        ),
        (
            "anaconda.org/conda-forge/noarch/pip-",
            "anaconda.org/t/secret/conda-forge/noarch/pip-",
            "carries a token",
        ),
        (
            "- url: https://conda.anaconda.org/conda-forge",
            "- url: https://repo.anaconda.com/pkgs/main",
            "is one of the defaults channels",
        ),
    ],
)
def test_packages_come_from_the_allowed_channel_without_a_secret(
    cuda: Damaged, old: str, new: str, expected: str
) -> None:
    """In packages and in the list of channels; a secret is never shown."""
    cuda.replace(old, new)
    (problem,) = cuda.problems()
    assert expected in problem
    assert "secret" not in problem
