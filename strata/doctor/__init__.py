"""Examines the host: what the engine says, and what `train/doctor` finds outside of containers.

The folder `train` must be on Python's path.
"""

from strata.doctor.host import examine_host

__all__ = ["examine_host"]
