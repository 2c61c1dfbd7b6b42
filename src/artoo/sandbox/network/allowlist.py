"""Parse host patterns and addresses of permissions, default ports, and forbidden address ranges.

The module decides which connections a permission covers.

A filter could be bypassed by another spelling of a name or an address. Therefore a host in an unusual form is
refused instead of interpreted. Examples are an address in hexadecimal, a name with characters outside of ASCII, and
a user name before the host.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from artoo.contracts.errors import SandboxError

WEB_PORTS = (443, 80)
"""The ports for https and http. A permission without a port covers both."""

Address = IPv4Address | IPv6Address

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253


class NotAHost(ValueError):
    """Raised for a text that is no host and no destination. The message continues a sentence that begins with the
    text."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The host (in its plain form) and the port of a connection."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def address(self) -> Address | None:
        """The IP address, or None if the host is a name."""
        return address_of(self.host)


def not_permitted(goal: Destination | str) -> str:
    """Return the message for a destination that no permission covers. The task may request a permission."""
    return f"{goal} is not permitted"


def address_of(host: str) -> Address | None:
    """Parse a plain host as an IP address. Returns None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def plain_host(text: str) -> str:
    """Return a host in its plain form. It is in lower case, without a trailing dot or brackets. A mapped IPv4
    address becomes an IPv4 address.

    Raises NotAHost.
    """
    if text.startswith("[") and text.endswith("]"):
        return _plain_ipv6(text[1:-1])
    if ":" in text:
        return _plain_ipv6(text)
    if not text.isascii():
        raise NotAHost("holds letters outside ASCII; write it in its ASCII form (xn--…)")
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise NotAHost("is not the name of a host")
    # No top-level domain is a number, but C libraries read `127.1` and `0x7f.1` as addresses, so such names are
    # refused.
    if _NUMBER.fullmatch(labels[-1]):
        return _plain_ipv4(name)
    return name


def _plain_ipv4(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError as error:
        raise NotAHost("looks like an address, but is not written as four numbers with dots") from error


def _plain_ipv6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except ValueError as error:
        raise NotAHost("is neither a host nor an IPv6 address") from error
    if address.scope_id is not None:
        raise NotAHost("names an interface of this machine")
    return str(address.ipv4_mapped or address)


def destination(text: str, default_port: int | None = None) -> Destination:
    """Parse `HOST:PORT`, or `HOST` if there is a default port. An IPv6 address is in brackets. Raises NotAHost."""
    host, port = _split(text)
    if port is None:
        if default_port is None:
            raise NotAHost("has no port")
        return Destination(plain_host(host), default_port)
    return Destination(plain_host(host), port)


def _split(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise NotAHost("is neither a host nor an IPv6 address")
        return host + bracket, _port(rest[1:]) if rest else None
    if text.count(":") > 1:
        return text, None
    host, colon, port = text.partition(":")
    return host, _port(port) if colon else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536):
        raise NotAHost("has no valid port after the colon")
    return int(text)


@dataclass(frozen=True, slots=True)
class Permit:
    """A permission for `HOST[:PORT]`. `subdomains`: true for `*.HOST`, which covers only names below HOST and not
    HOST itself."""

    host: str
    port: int | None = None
    subdomains: bool = False

    @classmethod
    def parse(cls, text: str) -> Permit:
        """Parse `HOST`, `HOST:PORT` or `*.HOST`. Raises NotAHost."""
        subdomains = text.startswith("*.")
        host, port = _split(text.removeprefix("*."))
        plain = plain_host(host)
        if subdomains and address_of(plain) is not None:
            raise NotAHost("puts a wildcard before an address")
        return cls(plain, port, subdomains)

    def covers(self, goal: Destination) -> bool:
        """True if a connection to `goal` is permitted."""
        right_port = goal.port in WEB_PORTS if self.port is None else goal.port == self.port
        return right_port and self.covers_host(goal.host)

    def covers_host(self, host: str) -> bool:
        """True if the permission is for `host` (plain), on any port."""
        return host.endswith(f".{self.host}") if self.subdomains else host == self.host


@dataclass(frozen=True, slots=True)
class Permits:
    """All permissions of one command."""

    listed: tuple[Permit, ...]

    @classmethod
    def given(cls, texts: Iterable[str]) -> Permits:
        """Parse the texts of permissions. Raises SandboxError for a text that is no host."""
        listed: list[Permit] = []
        for text in texts:
            try:
                listed.append(Permit.parse(text))
            except NotAHost as error:
                raise SandboxError(f"{text!r} {error}; name hosts as in pypi.org:443") from error
        return cls(tuple(listed))

    def covers(self, goal: Destination) -> bool:
        """True if a connection to `goal` is permitted."""
        return any(permit.covers(goal) for permit in self.listed)

    def names(self, goal: Destination) -> bool:
        """True if a permission names the host itself. A wildcard for a parent domain does not count."""
        return any(permit.covers(goal) and not permit.subdomains for permit in self.listed)

    def allows_any_protocol(self, goal: Destination) -> bool:
        """True if protocols other than TLS are allowed to a destination. They are if a permission names its port
        and the port is not 443."""
        return goal.port != WEB_PORTS[0] and any(
            permit.covers(goal) and permit.port is not None for permit in self.listed
        )


# --- addresses --------------------------------------------------------------------------------------------------


_EMBEDDING = tuple(
    (net, shift)
    for text, shift in (("64:ff9b::/96", 0), ("2002::/16", 80), ("::/96", 0), ("::ffff:0:0:0/96", 0))
    if isinstance(net := ip_network(text), IPv6Network)
)
"""IPv6 networks whose addresses contain the IPv4 address that is finally reached: NAT64, 6to4, IPv4-compatible,
SIIT."""

_NEVER = tuple(ip_network(text) for text in ("0.0.0.0/8", "240.0.0.0/4", "64:ff9b:1::/48", "2001::/32"))
"""Networks that contain no addresses of hosts, or whose embedded address cannot be determined (local translation,
Teredo)."""

_SITE_LOCAL = ip_network("fec0::/10")
"""A deprecated range of private addresses. The routers of a company may still use it, but Python treats it as
public."""
_ITSELF = "a permission must name the address itself"


def final_address(address: Address) -> Address:
    """Return the address that packets finally reach. This is the embedded IPv4 address if there is one."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    for network, shift in _EMBEDDING:
        if address in network and int(address) > 1:
            return IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return address


def is_own(address: Address) -> bool:
    """True if the address belongs to this machine, which is the case if a socket can be bound to it. No packet is
    sent.

    If the setting `ip_nonlocal_bind` allows binding to every address, all addresses count as this machine's. A
    permission must then name the address itself.
    """
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((str(address), 0))
    except OSError as error:
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True


def problem_with(address: Address, goal: Destination, permits: Permits) -> str | None:
    """Return the reason why `goal` may not be reached at this address, or None if it may."""
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
    """Return the addresses of `goal` that are permitted, in order. Also return the problem with the last refused
    address."""
    good: list[Address] = []
    problem = ""
    for address in addresses:
        found = problem_with(address, goal, permits)
        if found is None:
            good.append(address)
        else:
            problem = f"{address} {found}"
    return good, problem
