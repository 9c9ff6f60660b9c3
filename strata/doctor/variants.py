"""Which variants' images this host's driver runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from doctor.findings import ERROR, INFO, OK, UNKNOWN, Finding, Remark, join
from doctor.judge_driver import version_tuple
from strata.errors import DefinitionError
from strata.lock.inputs import lock_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from doctor.facts import Nvidia


@dataclass(frozen=True, kw_only=True)
class Need:
    """The oldest driver of a variant with CUDA; or why its pins can't be read."""

    variant: str
    driver: str = ""
    fault: str = ""


def probe_needs(locks: Path) -> list[Need]:
    """Return what each variant with CUDA below `locks` needs."""
    needs = []
    for pins in sorted(locks.glob("*/pins.yml")):
        name = pins.parent.name
        try:
            inputs = lock_inputs({}, pins)
        except DefinitionError as error:
            needs.append(Need(variant=name, fault=error.problems[0].what))
            continue
        if inputs.accelerator == "cuda":
            needs.append(Need(variant=name, driver=inputs.minimum_driver))
    return needs


def judge_variants(needs: Sequence[Need], nvidia: Nvidia) -> Finding:
    """Compare the driver with each variant's oldest one.

    It is an error when none of them runs, and worth knowing when some don't.
    Under WSL the driver counts as Windows does, and the pins as Linux does.
    """
    check = "variants"
    if not nvidia.is_there:
        return Finding(check, INFO, "no driver here: variants without CUDA run")
    if not needs:
        return Finding(check, OK, "no variant needs a driver")
    if nvidia.is_wsl or not nvidia.version:
        why = "its version is Windows'" if nvidia.is_wsl else "the driver's version is unknown"
        return Finding(check, UNKNOWN, f"{why}: run strata-doctor in an image")
    mine = version_tuple(nvidia.version)
    known = [need for need in needs if not need.fault]
    too_new = [need for need in known if mine < version_tuple(need.driver)]
    remarks = [
        Remark(UNKNOWN, f"{need.variant}: its pins can't be read: {need.fault}")
        for need in needs
        if need.fault
    ]
    runs = ", ".join(need.variant for need in known if need not in too_new)
    for need in too_new:
        text = f"{need.variant} needs driver {need.driver}"
        fix = f"upgrade this host's driver ({nvidia.version}), or use {runs or 'a CPU variant'}"
        remarks.append(Remark(INFO if runs else ERROR, text, fix))
    return join(check, remarks, f"driver {nvidia.version} runs {runs}")
