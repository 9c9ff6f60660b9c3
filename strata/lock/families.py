"""That an environment holds one OpenMP runtime and one BLAS, not two that get in each other's way.

Two OpenMP runtimes in a process start two sets of threads, and may deadlock or
give wrong results; two BLAS libraries do the same, and differ in the last bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from strata.lock.model import LockedPackage

OPENMP = ("intel-openmp", "libgomp", "llvm-openmp")
# `_openmp_mutex` says by its build which of them provides libgomp.so.1.
MUTEX, LLVM_MUTEX = "_openmp_mutex", "llvm"
BLAS = ("blis", "libnvpl-blas0", "libopenblas", "mkl")
# Conda-forge's interfaces name in their build the library behind them.
INTERFACES = ("libblas", "libcblas", "liblapack")


def family_faults(packages: Mapping[str, LockedPackage]) -> Iterator[str]:
    """Yield what is wrong with one platform's packages, as texts that say what."""
    runtimes = [name for name in OPENMP if name in packages]
    if len(runtimes) > 1:
        yield f"there are {len(runtimes)} OpenMP runtimes: {', '.join(runtimes)}"
    mutex = packages.get(MUTEX)
    if mutex and runtimes == ["libgomp"] and LLVM_MUTEX in mutex.build:
        yield f"{MUTEX} {mutex.build} stands for llvm-openmp, and the runtime is libgomp"
    if mutex and runtimes == ["llvm-openmp"] and LLVM_MUTEX not in mutex.build:
        yield f"{MUTEX} {mutex.build} stands for libgomp, and the runtime is llvm-openmp"
    libraries = [name for name in BLAS if name in packages]
    if len(libraries) > 1:
        yield f"there are {len(libraries)} BLAS libraries: {', '.join(libraries)}"
    interfaces = {
        packages[name].build.rsplit("_", 1)[-1] for name in INTERFACES if name in packages
    }
    if len(interfaces) > 1:
        yield f"the BLAS interfaces are built for {' and '.join(sorted(interfaces))}"
