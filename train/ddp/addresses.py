"""The host's own names and addresses on the network that leads to the other hosts."""

from __future__ import annotations

import fcntl
import os
import socket
import struct

# linux/sockios.h and linux/if.h
SIOCGIFADDR = 0x8915
IFNAMSIZ = 16


def host_name() -> str:
    """Return this host's name, as people know it."""
    return os.uname().nodename


def own_address(host: str, port: int) -> str:
    """Return our IPv4 address towards another host; `OSError` when no way leads there."""
    found = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_DGRAM)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(found[0][4])  # of a datagram socket: nothing is sent
        return str(probe.getsockname()[0])


def interface_of(address: str) -> str:
    """Return the name of the network interface that has this IPv4 address.

    Raises `OSError` when none has.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[: IFNAMSIZ - 1])
            try:
                answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)
            except OSError:  # an interface without an address
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    raise OSError(f"no network interface has the address {address}")
