from __future__ import annotations

import asyncio
import logging
import zlib

import pytest
from aiohttp import web

from artoo.contracts.errors import ConfigurationError, ModelUnreachable
from artoo.llm import guard
from artoo.llm.http import HttpTransport, normalise_base_url
from artoo.settings.proxy import is_loopback, proxy_for
from artoo.testing import ScriptedServer, slow

from .asking import STEP, client_of, question

BODY: dict[str, object] = {"model": "m", "messages": []}


async def test_pool_is_reused_and_bounded():
    """Questions one after the other use one connection; never more than the limit are under way."""
    replies = [slow(STEP, 0.01)] * 16
    async with ScriptedServer({"Step": replies}) as server, client_of(server, limit=3) as model:
        for _ in range(4):
            await model.ask(question())
        assert server.connections == 1
        await asyncio.gather(*(model.ask(question()) for _ in range(12)))
    assert (server.most_at_once, server.connections) == (3, 3)


async def test_key_is_sent_and_never_shown(caplog: pytest.LogCaptureFixture):
    """The key travels in its header; logs, errors and representations do not hold it."""
    caplog.set_level(logging.DEBUG)
    async with ScriptedServer({"Step": [STEP]}, api_key="sk-secret") as server:
        async with client_of(server, key="sk-secret") as model:
            await model.ask(question())
        transport = HttpTransport(server.base_url, "sk-secret")
        assert server.headers[0]["authorization"] == "Bearer sk-secret"
        assert "sk-secret" not in caplog.text + repr(transport) + transport.name


async def test_nobody_there():
    """A port without server is reported with the address and what to check."""
    async with ScriptedServer({}) as server:
        address = server.base_url
    guard.admit(address)
    transport = HttpTransport(address)
    with pytest.raises(
        ModelUnreachable, match=r"cannot connect to http://127.0.0.1:\d+/v1.*server running"
    ) as caught:
        await transport.post(BODY, timeout=5)
    assert caught.value.transient
    await transport.close()
    guard.retract(address)


async def test_redirects_and_pages_are_returned_as_they_are():
    """The key never follows a redirect, and a page that is no JSON comes back as text."""

    async def moved(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"}, text="<html>moved")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", moved)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    guard.admit(address)
    transport = HttpTransport(address)
    reply = await transport.post(BODY, timeout=5)
    assert (reply.status, reply.body, reply.text) == (302, None, "<html>moved")
    assert reply.headers["location"] == "http://127.0.0.1:9/"
    await transport.close()
    await runner.cleanup()
    guard.retract(address)


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
        (" https://api.openai.com/v1/chat/completions ", "https://api.openai.com/v1"),
    ],
)
def test_base_url_forms(given: str, normal: str):
    """A final slash or the full path of the call is understood."""
    assert normalise_base_url(given) == normal


@pytest.mark.parametrize(
    "given",
    [
        "localhost:8080",
        "ftp://x/v1",
        "",
        "https://user:pw@host/v1",
        "http://[::1/v1",
        "http://host:99999/v1",
        "http://host:port/v1",
        "http://host/\udcff",
        "http://a..b/v1",
        f"http://{'a' * 64}.example/v1",
    ],
)
def test_base_url_faults(given: str):
    """What is no address, or hides a password, is a configuration error that does not repeat the password."""
    with pytest.raises(ConfigurationError) as caught:
        normalise_base_url(given)
    assert "pw" not in str(caught.value)


def test_proxy_of_the_environment_never_for_loopback(monkeypatch: pytest.MonkeyPatch):
    """HTTPS_PROXY holds for other machines, NO_PROXY exempts, loopback is always direct."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    assert proxy_for("https://api.openai.com/v1") == "http://proxy:3128"
    assert proxy_for("https://inside.example/v1") is None
    for local in ("http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1", "http://127.8.0.1/v1"):
        assert is_loopback(local)
        assert proxy_for(local) is None
    assert not is_loopback("http://localhost.example.com/v1")


async def test_real_endpoints_are_forbidden_in_tests():
    """The suite's guard stops a request to anything but a double, before it leaves."""
    transport = HttpTransport("http://127.0.0.1:9/v1")
    with pytest.raises(ConfigurationError, match="forbid_real_models"):
        await transport.post(BODY, timeout=1)


async def _packed(request: web.Request) -> web.Response:
    """64 MiB of nothing, in 64 kB with their length."""
    packed = zlib.compressobj(9, wbits=31 if request.query.get("how") != "deflate" else 15)
    body = b"".join((packed.compress(bytes(64 << 20)), packed.flush()))
    return web.Response(body=body, headers={"Content-Encoding": request.query.get("how", "gzip")})


@pytest.mark.parametrize("how", ["gzip", "deflate"])
async def test_a_packed_reply_is_bounded_unpacked(how: str):
    """A reply of 64 kB that unpacks to 64 MiB is refused, though its announced length is small."""
    application = web.Application()
    application.router.add_post("/v1/chat/completions", _packed)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    guard.admit(address)
    transport = HttpTransport(address)
    path = f"/chat/completions?how={how}"
    try:
        with pytest.raises(ModelUnreachable, match="sent more than"):
            await transport.post(BODY, timeout=20, path=path)
    finally:
        await transport.close()
        await runner.cleanup()
        guard.retract(address)
