"""Decides whether an address is this machine's own, by asking the kernel at each connection: addresses change.

Linux        where the route of the address leads, by netlink: every address of every interface, secondary ones
             and local ranges too
otherwise    whether a socket can be bound to it: another system, no route, or netlink is not permitted
"""

from __future__ import annotations

import errno
import socket
import struct
from ipaddress import IPv4Address

from artoo.sandbox.network.allowlist import Address

_HEADER = struct.Struct("=IHHII")
_ROUTE = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_GET_ROUTE, _NEW_ROUTE, _REQUEST, _TO = 26, 24, 1, 1
_LOCAL = 2
"""Numbers and layouts of rtnetlink(7)."""

_SECONDS = 1.0
_ANSWER_BYTES = 4096


def is_own(address: Address) -> bool:
    """True if packets to this address stay on this machine. Takes microseconds; nothing is sent."""
    try:
        return _leads_here(address)
    except OSError:
        return _can_be_bound(address)


def _leads_here(address: Address) -> bool:
    """Return what the kernel says about the route. Raises OSError when it says nothing, or knows no route."""
    family = getattr(socket, "AF_NETLINK", None)
    if family is None:
        raise OSError(errno.EAFNOSUPPORT, "no netlink")
    with socket.socket(family, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(_question(address))
        answer = kernel.recv(_ANSWER_BYTES)
    if len(answer) < _HEADER.size + _ROUTE.size:
        raise OSError(errno.EBADMSG, "no answer about a route")
    _, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _NEW_ROUTE:
        raise OSError(errno.ENOENT, "the kernel knows no route")
    return _ROUTE.unpack_from(answer, _HEADER.size)[7] == _LOCAL


def _question(address: Address) -> bytes:
    packed = address.packed
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    attribute = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(packed), _TO) + packed
    body = _ROUTE.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, 0) + attribute
    return _HEADER.pack(_HEADER.size + len(body), _GET_ROUTE, _REQUEST, 1, 0) + body


def _can_be_bound(address: Address) -> bool:
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((str(address), 0))
    except OSError as error:
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True
