"""The lock room: what a variant's environments are made of, down to each package's hash."""

from strata.lock.changes import Download, LockChange, Solved, download, downloads
from strata.lock.check import check_lock
from strata.lock.inputs import lock_inputs
from strata.lock.model import (
    Environment,
    Lock,
    LockedPackage,
    LockInputs,
    inputs_digest,
    packages_digest,
)
from strata.lock.read import read_lock
from strata.lock.slice import slice_document, slice_for
from strata.lock.solve import solve_lock

__all__ = [
    "Download",
    "Environment",
    "Lock",
    "LockChange",
    "LockInputs",
    "LockedPackage",
    "Solved",
    "check_lock",
    "download",
    "downloads",
    "inputs_digest",
    "lock_inputs",
    "packages_digest",
    "read_lock",
    "slice_document",
    "slice_for",
    "solve_lock",
]
