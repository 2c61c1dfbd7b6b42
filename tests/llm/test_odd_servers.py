"""Servers that answer as no book has it: what was paid for is read, and what went wrong is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from ssl import PROTOCOL_TLS_SERVER, SSLContext

import pytest

from artoo.contracts.errors import ConfigurationError, ModelRefused, ModelUnreachable
from artoo.llm import guard
from artoo.llm.client import EndpointModel
from artoo.llm.http import HttpTransport
from artoo.llm.retry import RetryPolicy
from artoo.settings.proxy import proxy_for
from artoo.testing import FakeClock
from certificates import Authority

from .asking import question


class Raw:
    """A server that answers every request with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        await reader.readexactly(length)
        self.requests += 1
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def answering(body: bytes, *, head: bytes = b"") -> AsyncGenerator[tuple[EndpointModel, Raw]]:
    """A client of a server with this body, and what the server has seen."""
    raw = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n%b" % (len(body), head, body))
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    guard.admit(address)
    policy, clock = RetryPolicy(attempts=2), FakeClock(auto_advance=True)
    model = EndpointModel(HttpTransport(address), "m", clock, retry=policy, random=Random(0))
    try:
        yield model, raw
    finally:
        await model.close()
        server.close()
        await server.wait_closed()
        guard.retract(address)


WHOLE = rb'{"choices":[{"message":{"content":"{\"tool\":\"shell\",\"command\":\"ls%b\"}"}}]%b}'


@pytest.mark.parametrize(
    ("body", "command"),
    [
        (WHOLE % (rb" \\ud83d", b""), "ls ?"),  # in the model's own JSON
        (WHOLE % (rb" \ud83d", b""), "ls ?"),  # in the server's
        (WHOLE % (b" caf\xe9", b""), "ls caf\ufffd"),
        (WHOLE % (b" a\tb", b""), "ls a\tb"),
        (b"\xef\xbb\xbf" + WHOLE % (b"", b""), "ls"),
        (WHOLE % (b"", b',"logprobs":NaN'), "ls"),
    ],
    ids=["half an emoji", "half an emoji of the server's", "no UTF-8", "a bare tab", "a byte order mark", "NaN"],
)
async def test_an_answer_that_is_nearly_json_is_read(body: bytes, command: str) -> None:
    """It was paid for: it is not thrown away, and not asked for again."""
    async with answering(body) as (model, raw):
        answer = await model.ask(question())
        assert (answer.value.command, raw.requests) == (command, 1)


async def failure(base_url: str) -> ModelUnreachable:
    """How one request to this address fails."""
    guard.admit(base_url)
    transport = HttpTransport(base_url)
    try:
        with pytest.raises(ModelUnreachable) as caught:
            await transport.post({"model": "m", "messages": []}, timeout=20)
    finally:
        await transport.close()
        guard.retract(base_url)
    return caught.value


async def test_a_certificate_that_is_not_trusted_is_named_as_that(tmp_path: Path) -> None:
    """With the setting that makes it trusted; it is not tried again, and nothing was sent."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    for path, content in zip((certificate, key), Authority("a stranger").server("localhost"), strict=True):
        path.write_bytes(content)
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(Raw(b"").serve, "127.0.0.1", 0, ssl=context)
    error = await failure(f"https://localhost:{server.sockets[0].getsockname()[1]}/v1")
    assert "is not trusted" in str(error) and "SSL_CERT_FILE" in str(error)
    assert (error.transient, error.sent) == (False, False)
    server.close()


@pytest.mark.parametrize(
    ("answer", "said", "transient"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required", "HTTP 407: Proxy Authentication Required", False),
        (b"HTTP/1.1 502 Bad Gateway", "HTTP 502: Bad Gateway", True),
    ],
)
async def test_a_proxy_that_refuses_is_named(
    monkeypatch: pytest.MonkeyPatch, answer: bytes, said: str, transient: bool
) -> None:
    """It and not the server, without its password; nothing was sent, so nothing was spent."""
    server = await asyncio.start_server(Raw(answer + b"\r\nContent-Length: 0\r\n\r\n").serve, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:hidden@{address}")
    error = await failure("https://model.example/v1")
    assert f"the proxy http://{address} makes no connection" in str(error) and said in str(error)
    assert (error.transient, error.sent) == (transient, False) and "hidden" not in str(error)
    server.close()
    await server.wait_closed()
    gone = await failure("https://model.example/v1")
    assert f"cannot connect to the proxy http://{address}" in str(gone) and not gone.sent


@pytest.mark.parametrize("named", ["socks5://proxy:1080", "http://me:hidden@proxy:port", "http://"])
def test_a_request_never_goes_around_a_proxy(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """One that cannot be used is refused with what to do; before, the request was sent straight to the server."""
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setenv("ALL_PROXY", named)
    with pytest.raises(ConfigurationError, match="NO_PROXY") as caught:
        proxy_for("https://model.example/v1")
    assert "hidden" not in str(caught.value)


async def test_when_to_come_back_is_said():
    """A server that asks for a longer wait than there is time is asked once."""
    body = b'{"error":{"code":429,"message":"daily limit"}}'
    async with answering(body, head=b"Retry-After: 7200\r\n") as (model, server):
        with pytest.raises(ModelRefused, match=r"HTTP 429.*daily limit; it asks to be asked again in 7200 s, at "):
            await model.ask(question())
        assert server.requests == 1
