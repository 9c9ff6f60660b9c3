"""Judges RDMA devices and the settings that choose a network.  Pure.

Source: NCCL's documentation, "Environment Variables".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doctor.facts import CONTAINER
from doctor.findings import ERROR, INFO, OK, WARNING, Finding, Remark, join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from doctor.facts import Facts, Port

ACTIVE = "ACTIVE"
# Gloo and TensorPipe take whole names where NCCL takes prefixes.
EXACT_VARIABLES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def matching(value: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that a list of NCCL's syntax chooses.

    "eth,ib" are prefixes, "=eth0" is a name, "^docker" leaves out.  A port
    after a colon ("mlx5_0:1") is not looked at.
    """
    is_exclusion = value.startswith("^")
    text = value[1:] if is_exclusion else value
    is_exact = text.startswith("=")
    words = [word.partition(":")[0] for word in text.lstrip("=").split(",") if word]

    def is_named(name: str) -> bool:
        return any(name == word if is_exact else name.startswith(word) for word in words)

    return tuple(name for name in names if is_named(name) != is_exclusion)


def judge_infiniband(facts: Facts) -> Finding:
    """Ask whether the RDMA devices that the kernel knows can be used from here."""
    ports, verbs = facts.network.ports, facts.network.verbs
    if not ports:
        return Finding("infiniband", OK, "there is no RDMA device: hosts talk over sockets")
    told = ", ".join(_port(port) for port in ports)
    if not verbs:
        fix = "docker run --device /dev/infiniband --ulimit memlock=-1"
        if facts.scope != CONTAINER:
            fix = "sudo modprobe ib_uverbs, and install rdma-core"
        why = "no /dev/infiniband/uverbs*: NCCL falls back to sockets"
        return Finding("infiniband", WARNING, f"{told}; {why}", fix)
    down = [port for port in ports if port.state != ACTIVE]
    if len(down) == len(ports):
        fix = "look at ibstat on the host: cable, switch, and for InfiniBand the subnet manager"
        return Finding("infiniband", WARNING, f"no port is active: {told}", fix)
    if down:
        return Finding("infiniband", INFO, f"some ports are not active: {told}")
    return Finding("infiniband", OK, told)


def _port(port: Port) -> str:
    return f"{port.device} port {port.number} {port.state} ({port.link_layer})"


def judge_interfaces(facts: Facts) -> Finding:
    """Ask whether the interfaces that are asked for exist."""
    names = facts.network.interfaces
    there = f"there are {', '.join(names) or 'none'}"
    remarks = []
    setting = facts.settings.get("NCCL_SOCKET_IFNAME")
    if setting is not None:
        told = f"NCCL_SOCKET_IFNAME={setting.value} ({setting.source})"
        chosen = matching(setting.value, names)
        fix = "unset NCCL_SOCKET_IFNAME, or name one of those"
        if not chosen:
            remarks.append(Remark(ERROR, f"{told} names no interface; {there}", fix))
        elif chosen == ("lo",):
            remarks.append(Remark(INFO, f"{told}: only ranks of this host can meet"))
    for variable in EXACT_VARIABLES:
        setting = facts.settings.get(variable)
        missing = (
            [word for word in setting.value.split(",") if word not in names] if setting else []
        )
        if setting and missing:
            told = f"{variable}={setting.value} ({setting.source}) names no interface"
            fix = f"unset {variable}, or name one of those"
            remarks.append(Remark(ERROR, f"{told}: {', '.join(missing)}; {there}", fix))
    return join("interfaces", remarks, there)


def judge_rdma_settings(facts: Facts) -> Finding:
    """Ask whether the settings for InfiniBand and RoCE fit the devices."""
    devices = tuple(dict.fromkeys(port.device for port in facts.network.ports))
    there = f"there are {', '.join(devices)}" if devices else "there is no RDMA device"
    is_active = any(port.state == ACTIVE for port in facts.network.ports)
    remarks = []
    off = facts.settings.get("NCCL_IB_DISABLE")
    if off is not None and off.value != "0" and is_active:
        told = f"NCCL_IB_DISABLE={off.value} ({off.source}), and {there}"
        remarks.append(Remark(WARNING, f"{told}: hosts talk over sockets", "unset NCCL_IB_DISABLE"))
    chosen = facts.settings.get("NCCL_IB_HCA")
    if chosen is not None and not matching(chosen.value, devices):
        told = f"NCCL_IB_HCA={chosen.value} ({chosen.source}) names no device; {there}"
        severity = ERROR if devices else WARNING
        remarks.append(Remark(severity, told, "unset NCCL_IB_HCA, or name a device of this host"))
    network = facts.settings.get("NCCL_NET")
    if network is not None and network.value.upper() == "IB" and not facts.network.verbs:
        told = f"NCCL_NET={network.value} ({network.source}), and no RDMA device can be used here"
        fix = "unset NCCL_NET, or docker run --device /dev/infiniband --ulimit memlock=-1"
        remarks.append(Remark(ERROR, told, fix))
    if network is not None and network.value.lower() == "socket" and is_active:
        told = f"NCCL_NET={network.value} ({network.source}), and {there}"
        remarks.append(Remark(WARNING, told, "unset NCCL_NET"))
    return join("rdma-settings", remarks, f"nothing contradicts the devices; {there}")
