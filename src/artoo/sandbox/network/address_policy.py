"""Decides which addresses a permitted host may have: a name must not lead into this machine unasked.

public                        any permitted host
private networks              a host that a permission names itself (an index inside a company)
this machine, link-local      when a permission names the address itself; this machine's also by `localhost`. All
                              addresses of its interfaces count as its own, public ones too
multicast, unspecified, …     never
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Network, ip_network

from artoo.sandbox.network.allowlist import Address, Destination, Permits

_EMBEDDING = tuple(
    (net, shift)
    for text, shift in (("64:ff9b::/96", 0), ("2002::/16", 80), ("::/96", 0), ("::ffff:0:0:0/96", 0))
    if isinstance(net := ip_network(text), IPv6Network)
)
"""IPv6 networks whose addresses hold the IPv4 address that is reached: NAT64, 6to4, compatible, SIIT."""

_NEVER = tuple(ip_network(text) for text in ("0.0.0.0/8", "240.0.0.0/4", "64:ff9b:1::/48", "2001::/32"))
"""Not addresses of hosts, or addresses that hold another one which cannot be read (local translation, Teredo)."""

_SITE_LOCAL = ip_network("fec0::/10")
"""Deprecated, but routers of a company may still know it; Python counts it as public."""
_ITSELF = "a permission must name the address itself"


def final_address(address: Address) -> Address:
    """Return the address that is reached in the end."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    for network, shift in _EMBEDDING:
        if address in network and int(address) > 1:
            return IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return address


def is_own(address: Address) -> bool:
    """True if packets to the address end on this machine now: a socket can be bound to it. No packet is sent.

    Where a setting (`ip_nonlocal_bind`) allows every address, all count as this machine's, and a permission has to
    name the address itself.
    """
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((str(address), 0))
    except OSError as error:
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True


def problem_with(address: Address, goal: Destination, permits: Permits) -> str | None:
    """Return why `goal` may not be reached at this address; None when it may."""
    end = final_address(address)
    if end.is_multicast or end.is_unspecified or any(end in network for network in _NEVER):
        return "is an address that no permission covers"
    if permits.covers(Destination(str(end), goal.port)):
        return None
    if end.is_loopback or is_own(end) or is_own(address):
        here = permits.covers(Destination("localhost", goal.port))
        return None if here else f"is this machine's own; {_ITSELF}, or localhost"
    if end.is_link_local:
        return f"is link-local; {_ITSELF}"
    if end.is_global and end not in _SITE_LOCAL:
        return None
    if permits.names(goal):
        return None
    return "is in a private network; a permission must name the host itself, without a wildcard"


def usable(addresses: Iterable[Address], goal: Destination, permits: Permits) -> tuple[list[Address], str]:
    """Return the addresses at which `goal` may be reached, in order, and what is wrong with the last other one."""
    good: list[Address] = []
    problem = ""
    for address in addresses:
        found = problem_with(address, goal, permits)
        if found is None:
            good.append(address)
        else:
            problem = f"{address} {found}"
    return good, problem
