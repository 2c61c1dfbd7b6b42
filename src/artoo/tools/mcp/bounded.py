"""Limit HTTP answers of an MCP server in size.

Without this limit, the SDK would collect answers of any length.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

LARGEST_ANSWER = 32 << 20
"""Maximum number of bytes of one answer, or of one event stream. If a stream is longer, the SDK opens it again."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._left = limit

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        pieces: AsyncIterator[bytes] = aiter(self._stream)
        async for piece in pieces:
            self._left -= len(piece)
            if self._left < 0:
                raise httpx2.ReadError(f"the answer is longer than {LARGEST_ANSWER} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    """Limit the size of an answer. A compressed answer is refused, because a megabyte of it may unpack to a
    thousand."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the answer is compressed, which was not asked for")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream, LARGEST_ANSWER)


def bounded_client(
    headers: Iterable[tuple[str, str]],
    auth: httpx2.Auth | None = None,
    note: Callable[[int], None] | None = None,
) -> httpx2.AsyncClient:
    """Create an HTTP client as the SDK does, but with answers limited to `LARGEST_ANSWER`.

    `auth` authenticates requests. `note` receives the status code of each answer.
    """
    from mcp.shared._httpx_utils import create_mcp_http_client

    client = create_mcp_http_client({**dict(headers), "accept-encoding": "identity"})
    if auth is not None:
        client.auth = auth

    async def noted(response: httpx2.Response) -> None:
        if note is not None:
            note(response.status_code)
        await _bound(response)

    client.event_hooks = {"request": [], "response": [noted]}
    return client
