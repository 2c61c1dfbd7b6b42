"""HTTP requests to foreign agents, only to permitted and checked addresses, with their timeout.

The module resolves a host name, checks every address (`sandbox.network.allowlist`), and connects to the address
that was checked. A different later answer of the resolver thus has no effect. Redirects and proxies are not
followed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx

from artoo.contracts.errors import ForeignRefused
from artoo.sandbox.network.allowlist import Destination, NotAHost, Permits, plain_host, usable
from artoo.sandbox.network.proxy import Resolve, system_addresses
from artoo.tools.approval.policy import parse_policy

SECONDS = 30.0
_PORTS = {"http": 80, "https": 443}


def permits_of(lines: Iterable[str]) -> Permits:
    """Return the hosts that the operator's standing permissions name."""
    policies = map(parse_policy, lines)
    return Permits.given([policy.argument for policy in policies if policy.kind == "network"])


def goal_of(url: str) -> Destination:
    """Return the host and port of a URL. Raises ForeignRefused if the URL cannot be used."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        if parts.username is not None or parts.password is not None:
            raise NotAHost("has a user before its host")
        return Destination(plain_host(parts.hostname or ""), port)
    except (ValueError, KeyError) as error:
        raise ForeignRefused(f"{url[:200]!r} is no usable address: http or https, a host, a port") from error


async def check(url: str, permits: Permits, resolve: Resolve = system_addresses) -> str:
    """Resolve a URL. Return an IP address to which a connection is permitted.

    Raises ForeignRefused if no address is permitted. Also raises it if the URL is not HTTPS and its host is not
    permitted.
    """
    goal = goal_of(url)
    if not url.startswith("https:") and not permits.names(goal):
        raise ForeignRefused(f"{goal} is not encrypted: https, unless the operator's policy names the host")
    try:
        found = (goal.address,) if goal.address is not None else await resolve(goal)
    except OSError as error:
        raise ForeignRefused(f"{goal} cannot be found") from error
    good, problem = usable(found, goal, permits)
    if not good:
        raise ForeignRefused(f"{goal} may not be reached: {problem or 'it has no address'}")
    return str(good[0])


class CheckedTransport(httpx.AsyncBaseTransport):
    """A transport that connects only to addresses that were checked. Connections are not reused, because the check
    is made for each name.

    The callers limit the number of connections. A limit here would let one host that hangs block the others.
    """

    def __init__(self, permits: Permits, resolve: Resolve = system_addresses) -> None:
        self._permits = permits
        self._resolve = resolve
        self._inner = httpx.AsyncHTTPTransport(
            trust_env=False, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises httpx.ConnectError if the address is not permitted."""
        url = str(request.url)
        try:
            address, goal = await check(url, self._permits, self._resolve), goal_of(url)
        except ForeignRefused as error:
            raise httpx.ConnectError(str(error), request=request) from error
        # The connection goes to the checked address. TLS still verifies the name.
        request.url = request.url.copy_with(host=address)
        request.extensions = {**request.extensions, "sni_hostname": goal.host}
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


@asynccontextmanager
async def outward(permits: Permits, resolve: Resolve = system_addresses) -> AsyncGenerator[httpx.AsyncClient]:
    """Open an HTTP client while the block runs."""
    transport = CheckedTransport(permits, resolve)
    async with httpx.AsyncClient(transport=transport, timeout=SECONDS, follow_redirects=False) as client:
        yield client
