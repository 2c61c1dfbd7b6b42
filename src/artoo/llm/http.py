"""HTTP requests to model servers, with API key headers, connection limit, connect timeout, and reply limit.

It uses aiohttp and orjson, without an SDK. It also sends the headers that servers with Anthropic's format need.
Reference: SPEC section 9.

It imports aiohttp, so it should be imported only if an endpoint is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

import aiohttp
import orjson
from yarl import URL

from artoo.contracts.errors import ModelUnreachable
from artoo.llm import guard
from artoo.llm.address import normalise_base_url
from artoo.llm.streamed import EventReader
from artoo.llm.text.jsontext import read_leniently
from artoo.llm.transport import Json, OnEvent, TransportReply
from artoo.redaction import Redactor
from artoo.settings.proxy import proxy_for

MAX_REPLY_BYTES = 32 * 1024 * 1024
_CONNECT_SECONDS = 15.0
_KEEP_ALIVE_SECONDS = 60.0
_ERROR_TEXT_KEPT = 2_000
# The limit for the total time of a stream, as a multiple of the limit of a call.
_LONGEST_STREAM = 6
_ANTHROPIC, _VERSION = "anthropic.com", "2023-06-01"
_CHECK_PROXY = "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"


class HttpTransport:
    """The connections to one endpoint. They are opened by the first request and kept until `close`.

    `base_url` is the part of the address before `/chat/completions` (`https://api.openai.com/v1`). At most `limit`
    requests run at the same time. Further requests wait. Their timeout begins when they are sent. The proxy
    settings in the environment are used, except for loopback addresses. The key is sent only in a header.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        limit: int = 64,
        headers: Mapping[str, str] | None = None,
        socket: str = "",
        name: str = "",
    ) -> None:
        """Set up an endpoint. `socket`: the path of a UNIX socket to connect to. `name`: the name of the endpoint
        in messages, which is used instead of the URL.
        """
        self._base = normalise_base_url(base_url)
        self._name = name or self._base
        self._socket = socket
        self._urls: dict[str, URL] = {}
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})}
        self._key = api_key
        if (URL(self._base).host or "").endswith(_ANTHROPIC):
            self._headers |= self._anthropic()
        elif api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        # A server repeats a key that it refuses, so the key is redacted before an error quotes the server.
        self._own = Redactor([api_key] if api_key else [])
        self._limit = limit
        self._proxy = proxy_for(self._base)
        self._pool: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession, asyncio.Semaphore] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"HttpTransport({self._base!r})"

    @property
    def name(self) -> str:
        """Return the given name, or the base URL without credentials."""
        return self._name

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        """Send a POST request to a path below the base URL, as Transport describes."""
        data = orjson.dumps(body if isinstance(body, dict) else dict(body))
        return await self._request("POST", path, data, timeout, on_event)

    def _anthropic(self) -> dict[str, str]:
        """Return the headers that servers with Anthropic's format require."""
        return {"anthropic-version": _VERSION, **({"x-api-key": self._key} if self._key else {})}

    async def models(self, *, timeout: float) -> TransportReply:
        """Request `/models`, as Transport describes."""
        return await self._request("GET", "/models", None, timeout, None)

    async def close(self) -> None:
        """Close the pool. Later requests raise ModelUnreachable. Idempotent."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool[1].close()

    async def _request(
        self, method: str, path: str, data: bytes | None, timeout: float, on_event: OnEvent | None
    ) -> TransportReply:
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = URL(f"{self._base}{path}")
        session, places = self._connected()
        limits = _limits(timeout, streamed=on_event is not None)
        async with places:
            try:
                # A redirect would send the key to another host. It is therefore reported and not followed.
                response = await session.request(
                    method,
                    url,
                    data=data,
                    timeout=limits,
                    proxy=self._proxy,
                    allow_redirects=False,
                    headers=self._anthropic() if path.endswith("/messages") else None,
                )
                hears = on_event if response.status == 200 else None
                return _reply(response, self._own.known(await self._read(response, hears)))
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                raise self._unreachable(error, limits, timeout) from error

    def _unreachable(self, error: Exception, limits: aiohttp.ClientTimeout, timeout: float) -> ModelUnreachable:
        """Return the error, with its likely cause and with whether the request was sent."""
        if self._socket:
            late = f"gave no complete answer within {timeout:g} s"
            said = late if isinstance(error, TimeoutError) else f"stopped answering ({type(error).__name__})"
            remedy = "allow more time, or use a smaller model or a model server"
            return ModelUnreachable(f"the embedded model {self._name} {said}; {remedy}", transient=True)
        name, proxy = self._name, URL(self._proxy).with_user(None) if self._proxy else None
        through = f" by the proxy {proxy}" if proxy else ""
        transient, sent = True, False
        match error:
            case aiohttp.ConnectionTimeoutError():
                said = f"no connection to {name}{through} within {limits.connect:g} s; is the server running "
                said += "and the network up?"
            case TimeoutError():
                said = f"{name} gave no complete answer within {timeout:g} s; check the server, or allow more time "
                said, sent = f"{said}per call", True
            case aiohttp.ClientConnectorCertificateError():
                said = f"the certificate of {self._base} is not trusted ({error.certificate_error}); check "
                said += (
                    "the base URL and the clock, or name the file of your authority's certificates in SSL_CERT_FILE"
                )
                transient = False
            case aiohttp.ClientProxyConnectionError():
                said = (
                    f"cannot connect to the proxy {proxy} ({error.os_error.strerror or error.os_error}), which the "
                )
                said += f"environment names for {self._base}; {_CHECK_PROXY}"
            case aiohttp.ClientConnectorError():
                said = f"cannot connect to {name}{through} ({error.os_error.strerror or error.os_error}); "
                said += "is the server running and the base URL right?"
            case aiohttp.ClientHttpProxyError():
                said = f"the proxy {proxy} makes no connection to {self._base} (HTTP {error.status}: "
                said, transient = f"{said}{error.message}); {_CHECK_PROXY}", error.status >= 500
            case _:
                said = f"the connection to {name} broke before the answer was complete ({type(error).__name__}); "
                said, sent = f"{said}try again, or check the server", True
        return ModelUnreachable(said, transient=transient, sent=sent)

    def _connected(self) -> tuple[aiohttp.ClientSession, asyncio.Semaphore]:
        guard.check(self._name)
        if self._closed:
            raise ModelUnreachable(
                f"the connection to {self._name} was closed; make a new one to use it again", sent=False
            )
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool[0] is not loop:
            connector = (
                # A connection in the pool that the server has closed would make the next request fail.
                aiohttp.UnixConnector(self._socket, limit=0, force_close=True)
                if self._socket
                else aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS)
            )
            session = aiohttp.ClientSession(
                connector=connector, headers=self._headers, cookie_jar=aiohttp.DummyCookieJar()
            )
            self._pool = (loop, session, asyncio.Semaphore(self._limit))
        return self._pool[1], self._pool[2]

    async def _read(self, response: aiohttp.ClientResponse, on_event: OnEvent | None) -> bytes:
        """Return the whole body. The limit `MAX_REPLY_BYTES` is for its uncompressed bytes."""
        kept, reader = bytearray(), EventReader()
        try:
            async for chunk in response.content.iter_any():
                kept += chunk
                if on_event is not None:
                    for event in reader.feed(self._own.known(chunk)):
                        on_event(event)
                if len(kept) > MAX_REPLY_BYTES:
                    raise ModelUnreachable(
                        f"{self._name} sent more than {MAX_REPLY_BYTES} bytes; this is no model server"
                    )
        finally:
            response.release()
        return bytes(kept)


@lru_cache(maxsize=16)
def _limits(timeout: float, *, streamed: bool) -> aiohttp.ClientTimeout:
    """Return the time limits of a request. A stream may take much longer in total, as long as bytes arrive."""
    connect = min(timeout, _CONNECT_SECONDS)
    if streamed:
        return aiohttp.ClientTimeout(total=_LONGEST_STREAM * timeout, connect=connect, sock_read=timeout)
    return aiohttp.ClientTimeout(total=timeout, connect=connect)


def _reply(response: aiohttp.ClientResponse, raw: bytes) -> TransportReply:
    status, headers = response.status, response.headers  # the mapping of aiohttp ignores the case of names
    try:
        return TransportReply(status, headers, cast("Json", orjson.loads(raw)))
    except orjson.JSONDecodeError:
        pass
    reader = EventReader()
    reader.feed(raw)
    reader.end()
    if reader.streamed and not reader.unread and reader.events:
        return TransportReply(status, headers, None, events=tuple(reader.events))
    # The answer must be paid for, so invalid UTF-8 in it is no reason to ask again.
    body = cast("Json", read_leniently(raw))
    text = raw[:_ERROR_TEXT_KEPT].decode(errors="replace") if body is None else ""
    return TransportReply(status, headers, body, text)
