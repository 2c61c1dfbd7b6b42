"""Which address a permitted host may have: a name that somebody else controls must not lead into this machine.

public                        any permitted host
private networks              a host that a permission names itself (an index inside a company)
this machine, link-local      `localhost`, or when a permission names the address itself
multicast, unspecified, …     never
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Network, ip_network

from artoo.world.edge.hosts import Address, Destination, Permits

_EMBEDDING = tuple(
    (net, shift)
    for text, shift in (("64:ff9b::/96", 0), ("2002::/16", 80), ("::/96", 0))
    if isinstance(net := ip_network(text), IPv6Network)
)
"""Where an IPv6 address holds the IPv4 address that is reached in the end: translated, 6to4, compatible."""

_NEVER = tuple(ip_network(text) for text in ("0.0.0.0/8", "240.0.0.0/4", "64:ff9b:1::/48", "2001::/32"))
"""Not addresses of hosts, or such that hold an address that the edge cannot read (local translation, Teredo)."""


def reached(address: Address) -> Address:
    """The address that is reached in the end."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    for network, shift in _EMBEDDING:
        if address in network and int(address) > 1:
            return IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return address


def problem_with(address: Address, goal: Destination, permits: Permits) -> str | None:
    """Why `goal` may not be reached at this address; None when it may."""
    end = reached(address)
    if end.is_multicast or end.is_unspecified or any(end in network for network in _NEVER):
        return "is an address that no permission covers"
    if end.is_global:
        return None
    if permits.covers(Destination(str(end), goal.port)):
        return None
    if end.is_loopback and goal.host == "localhost":
        return None
    if end.is_loopback or end.is_link_local:
        return "is this machine's own; a permission must name the address itself"
    if permits.names(goal):
        return None
    return "is in a private network; a permission must name the host itself, without a wildcard"


def usable(addresses: Iterable[Address], goal: Destination, permits: Permits) -> tuple[list[Address], str]:
    """The addresses at which `goal` may be reached, in order, and what was wrong with the last of the others."""
    good: list[Address] = []
    problem = ""
    for address in addresses:
        found = problem_with(address, goal, permits)
        if found is None:
            good.append(address)
        else:
            problem = f"{address} {found}"
    return good, problem
