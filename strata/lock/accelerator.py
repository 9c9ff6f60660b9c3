"""Whether a lock holds the accelerator that its variant says, on the driver that it declares."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from strata.lock.model import LockedPackage, LockInputs

# The oldest driver that a family of CUDA runs on ("minor version compatibility"): NVIDIA,
# CUDA Compatibility, https://docs.nvidia.com/deploy/cuda-compatibility/, table 1.
OLDEST_DRIVER = {"11": "450.80.02", "12": "525.60.13", "13": "580"}
# These carry the accelerator in their build: cuda129_mkl_py312_…, cuda13_…, cuda_py313_…,
# cpu_mkl_py312_….
BUILT_FOR_ONE = ("libtorch", "pytorch", "torchvision")
# What trains on several GPUs needs.
NEEDED = ("nccl",)
RUNTIME = re.compile(
    r"(cuda-(?!version\Z).+|cudatoolkit|(lib)?(cudnn|cutensor)([-_].+)?|nccl|nvidia-(?!ml-py\Z).+"
    r"|pytorch-gpu|lib(cublas|cudss|cufft|cufile|curand|cusolver|cusparse|cusparselt|magma|npp"
    r"|nvjitlink|nvjpeg|nvptxcompiler|nvrtc|nvshmem\d*)([-_].+)?)\Z"
)
FOR_CUDA = re.compile(r"(?:\A|_)cuda")
# Family and minor version, as far as the build says them.
CUDA_BUILD = re.compile(r"(?:\A|_)cuda_?(?:(\d\d)(\d?))?(?:_|py|\Z)")


def cuda_version(packages: Mapping[str, LockedPackage]) -> str:
    """Return the version of the CUDA runtime (`12.9`) among one platform's packages, or ``""``."""
    for name in ("cuda-version", "cudatoolkit"):
        if package := packages.get(name):
            return ".".join(package.version.split(".")[:2])
    return ""


def accelerator_faults(
    packages: Mapping[str, LockedPackage], inputs: LockInputs, platform: str
) -> Iterator[str]:
    """Yield what is wrong with one platform's packages, as texts that say what."""
    if inputs.accelerator == "cpu":
        yield from _without_cuda(packages)
    else:
        yield from _with_cuda(packages, inputs, platform)


def _without_cuda(packages: Mapping[str, LockedPackage]) -> Iterator[str]:
    for name, package in packages.items():
        if RUNTIME.match(name):
            yield f"{name} {package.version} is of CUDA, and the accelerator is cpu"
        elif FOR_CUDA.search(package.build):
            yield f"{name} is the build {package.build}, and the accelerator is cpu"


def _with_cuda(
    packages: Mapping[str, LockedPackage], inputs: LockInputs, platform: str
) -> Iterator[str]:
    version = cuda_version(packages)
    family = version.partition(".")[0]
    for name in BUILT_FOR_ONE:
        if (package := packages.get(name)) is None:
            continue
        built = CUDA_BUILD.search(package.build)
        if built is None:
            yield f"{name} is the build {package.build}, and the accelerator is cuda"
        elif family and built[1] and built[1] != family:
            for_one = f"{built[1]}.{built[2]}".rstrip(".")
            yield f"{name} is built for CUDA {for_one}, and the runtime is {version}"
    if not version:
        yield "there is no CUDA runtime, and the accelerator is cuda"
        return
    for name in NEEDED:
        if name not in packages:
            yield f"{name} is missing, without which GPUs can't train together"
    yield from _driver_faults(version, inputs, platform)


def _driver_faults(version: str, inputs: LockInputs, platform: str) -> Iterator[str]:
    family = version.partition(".")[0]
    oldest, declared = OLDEST_DRIVER.get(family), inputs.minimum_driver
    if oldest is None:
        yield f"of CUDA {version} it isn't known which driver it needs"
    elif _parts(declared) < _parts(oldest):
        yield (
            f"CUDA {version} needs the driver {oldest} or newer, and minimum-driver is {declared}"
        )
    offered = inputs.virtual_packages[platform].get("__cuda", "").partition(".")[0]
    if offered != family:
        yield (
            f"the runtime is CUDA {version}, and the virtual package __cuda is"
            f" {offered or 'missing'}"
        )


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)
