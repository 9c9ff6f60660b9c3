"""What a bench was run on: figures mean little without it."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from strata.engine import check_engine

if TYPE_CHECKING:
    from strata.engine import Engine

CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine and its engine; `memory` is in bytes, `processor` "" where nobody says."""

    processor: str
    cores: int
    memory: int
    system: str
    engine: str
    buildx: str


def read_machine(engine: Engine) -> Machine:
    """Look at this machine and ask its engine."""
    facts = check_engine(engine)
    return Machine(
        processor=processor_of(CPUINFO.read_text()),
        cores=len(os.sched_getaffinity(0)),
        memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        engine=facts.version,
        buildx=facts.buildx,
    )


def processor_of(cpuinfo: str) -> str:
    """Return the first processor's name in the text of /proc/cpuinfo, "" where it has none."""
    fields = (line.partition(":") for line in cpuinfo.splitlines())
    return next((text.strip() for name, _, text in fields if name.strip() == "model name"), "")
