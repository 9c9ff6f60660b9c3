"""The port of the rendezvous, where somebody has named one."""

from __future__ import annotations

import errno
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from ddp.errors import Refused
from ddp.nodes import HIGHEST_PORT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddp.plan import Plan


def with_port(plan: Plan, environ: Mapping[str, str]) -> Plan:
    """Return the plan of one host with the port that --rdzv or MASTER_PORT name.

    Where somebody listens on it the plan is not fit: agents that take each
    other's port wait for each other.  Raises `Refused` for a MASTER_PORT that is
    no port.
    """
    if plan.nodes.count > 1 or plan.unfit is not None:
        return plan
    where, port = "--rdzv", plan.nodes.port
    if port == 0 and environ.get("MASTER_PORT"):
        where, port = "MASTER_PORT", _number(environ["MASTER_PORT"])
    if port == 0:
        return plan
    planned = replace(plan, nodes=replace(plan.nodes, port=port))
    if not is_taken(port):
        return planned
    reason = (
        f"{where} names port {port}, on which another program listens; name a free one, or none: "
        "then a free one is taken"
    )
    return replace(planned, unfit=reason, unfit_phase="rendezvous")


def is_taken(port: int) -> bool:
    """Whether somebody listens on this TCP port, at any of this host's addresses."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                # As torch's store does; it is no excuse for a port with a listener.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(("", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                raise  # anything but a host without IPv6 (or IPv4)
    return False


def _number(text: str) -> int:
    if text.isascii() and text.isdecimal() and 0 < int(text) <= HIGHEST_PORT:
        return int(text)
    raise Refused("MASTER_PORT", f"{text!r} is not a port", "unset it, or give 1 to 65535")
