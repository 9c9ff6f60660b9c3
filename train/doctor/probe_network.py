"""Reads network interfaces and RDMA devices from /sys and /dev."""

from __future__ import annotations

from pathlib import Path

from doctor.facts import Network, Port


def probe_network(root: Path = Path("/")) -> Network:
    """Return the interfaces and RDMA ports below `root`.

    Kernel documentation: ABI/stable/sysfs-class-infiniband (`state` reads
    "4: ACTIVE").
    """
    return Network(
        interfaces=tuple(_names(root / "sys/class/net")),
        ports=tuple(
            port
            for device in _names(root / "sys/class/infiniband")
            for port in _ports(root / "sys/class/infiniband" / device)
        ),
        verbs=tuple(name for name in _names(root / "dev/infiniband") if name.startswith("uverbs")),
    )


def _ports(device: Path) -> list[Port]:
    return [
        Port(
            device=device.name,
            number=int(name),
            state=_read(device / "ports" / name / "state").rpartition(":")[2].strip(),
            link_layer=_read(device / "ports" / name / "link_layer").strip(),
        )
        for name in _names(device / "ports")
    ]


def _names(folder: Path) -> list[str]:
    # bonding_masters is a file among the interfaces' folders.
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if entry.name != "bonding_masters")


def _read(file: Path) -> str:
    return file.read_text() if file.is_file() else ""
