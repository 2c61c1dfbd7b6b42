"""HTTP from here to foreign agents, only to addresses that the egress proxy would allow a permitted host.

A name is looked up here, every address is checked (`sandbox.network.address_policy`), and the connection goes to
the address that was checked, so a second answer of the resolver changes nothing. Redirects and proxies are not
followed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import cast
from urllib.parse import urlsplit

import httpx

from artoo.contracts.errors import ForeignRefused
from artoo.sandbox.network.address_policy import usable
from artoo.sandbox.network.allowlist import Destination, NotAHost, Permits, plain_host
from artoo.sandbox.network.proxy import Resolve, system_addresses
from artoo.tools.approval.policy import parse_policy

SECONDS = 30.0
LARGEST_ANSWER = 8 << 20
"""Bytes of an answer, and of a whole stream of events."""
_PORTS = {"http": 80, "https": 443}


def permits_of(lines: Iterable[str], named: Iterable[str] = ()) -> Permits:
    """The hosts that standing permissions name, and those of addresses (`named`) that the operator wrote down."""
    policies = map(parse_policy, lines)
    given = [policy.argument for policy in policies if policy.kind == "network"]
    return Permits.given([*given, *(str(goal_of(url)) for url in named)])


def goal_of(url: str) -> Destination:
    """Where an address leads. Raises ForeignRefused for what is none that can be judged."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        if parts.username is not None or parts.password is not None:
            raise NotAHost("has a user before its host")
        return Destination(plain_host(parts.hostname or ""), port)
    except (ValueError, KeyError) as error:
        raise ForeignRefused(f"{url[:200]!r} is no usable address: http or https, a host, a port") from error


async def check(url: str, permits: Permits, resolve: Resolve = system_addresses) -> str:
    """The address at which it may be reached.

    Raises ForeignRefused unless it is encrypted, or named by the operator, and leads where it may.
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
    """Connects only where it may. No connection is used twice: it was judged for one name.

    How many there are at a time is the callers': here one host that hangs would take the place of others.
    """

    def __init__(self, permits: Permits, resolve: Resolve = system_addresses) -> None:
        self._permits = permits
        self._resolve = resolve
        self._inner = httpx.AsyncHTTPTransport(
            trust_env=False, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See httpx. Raises httpx.ConnectError for an address that may not be reached."""
        url = str(request.url)
        try:
            address, goal = await check(url, self._permits, self._resolve), goal_of(url)
        except ForeignRefused as error:
            raise httpx.ConnectError(str(error), request=request) from error
        request.url = request.url.copy_with(host=address)
        request.extensions = {**request.extensions, "sni_hostname": goal.host}
        response = await self._inner.handle_async_request(request)
        response.stream = _Bounded(cast(httpx.AsyncByteStream, response.stream))
        return response

    async def aclose(self) -> None:
        """See httpx."""
        await self._inner.aclose()


class _Bounded(httpx.AsyncByteStream):
    """Ends an answer that has no end."""

    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > LARGEST_ANSWER:
                raise httpx.ReadError(f"the answer is larger than {LARGEST_ANSWER:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def outward(permits: Permits, resolve: Resolve = system_addresses) -> AsyncGenerator[httpx.AsyncClient]:
    """A client that is closed afterwards."""
    transport = CheckedTransport(permits, resolve)
    async with httpx.AsyncClient(transport=transport, timeout=SECONDS, follow_redirects=False) as client:
        yield client
