"""The egress proxy relays what was permitted, and nothing else, however it is asked."""

from __future__ import annotations

import asyncio

import pytest
from proxy_world import PUBLIC, hello, in_records, proxy_world, with_extension

from artoo.sandbox.network import allowlist
from artoo.sandbox.network.allowlist import Address
from artoo.sandbox.network.proxy import ProxyLimits

LOOPBACK = "127.0.0.1"
OWN, OWN_PUBLIC = "192.168.7.7", "93.184.216.77"
"""What the machine of a test takes for its interfaces' addresses."""


def get(url: str, *headers: str, host: str = "ok.test") -> bytes:
    return "\r\n".join((f"GET {url} HTTP/1.1", f"Host: {host}", *headers, "", "")).encode()


def post(*headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join(("POST http://ok.test/ HTTP/1.1", "Host: ok.test", *headers, "", "")).encode() + body


def connect(goal: str) -> bytes:
    return f"CONNECT {goal} HTTP/1.1\r\nHost: {goal}\r\n\r\n".encode()


WAYS = {
    "another host": connect("evil.test:443"),
    "a host below": connect("sub.ok.test:443"),
    "another port": connect("ok.test:22"),
    "raw address": connect(f"{PUBLIC}:443"),
    "loopback": connect("127.0.0.1:443"),
    "localhost": connect("localhost:443"),
    "link-local": connect("169.254.1.1:443"),
    "metadata": get("http://169.254.169.254/latest/", host="169.254.169.254"),
    "decimal address": connect("2130706433:443"),
    "hexadecimal address": connect("0x7f.0.0.1:443"),
    "IPv4 in IPv6": connect("[::ffff:127.0.0.1]:443"),
    "NAT64": connect("[64:ff9b::7f00:1]:443"),
    "6to4": connect("[2002:7f00:1::]:443"),
    "multicast": connect("224.0.0.251:443"),
    "an interface": connect("[fe80::1%25eth0]:443"),
    "a dot at the end": connect("evil.test.:443"),
    "user before the host": get("http://ok.test@evil.test/", host="evil.test"),
    "user before the host, CONNECT": connect("ok.test@evil.test:443"),
    "fragment before the host": get("http://evil.test#@ok.test/", host="evil.test"),
    "homograph": connect("оk.test:443"),
    "a null in the name": connect("ok.test\0.evil.test:443"),
    "another Host header": get("http://ok.test/", host="evil.test"),
    "two Host headers": get("http://ok.test/", "Host: evil.test"),
    "no URL": get("/", host="ok.test"),
    "https as a URL": get("https://ok.test/"),
    "two lengths": post("Content-Length: 5", "Content-Length: 6", body=b"abcdef"),
    "length and chunks": post("Content-Length: 4", "Transfer-Encoding: chunked", body=b"0\r\n\r\nGET"),
    "bare line ends": b"CONNECT evil.test:443 HTTP/1.1\n\n",
    "SOCKS 4": b"\x04\x01\x01\xbb\x5d\xb8\xd8\x22\0",
    "SOCKS 5": b"\x05\x01\x00\x05\x01\x00\x01\x5d\xb8\xd8\x22\x01\xbb",
    "TLS to the proxy": hello("ok.test"),
    "TRACE on a host": b"TRACE http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "a huge head": get("http://ok.test/", *(f"X-{n}: {'a' * 1000}" for n in range(64))),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_no_way_around(way: bytes) -> None:
    """Nothing is sent, and nobody even connected to, when a request is for something else, or could be read so."""
    evil = {name: [[LOOPBACK]] for name in ("evil.test", "sub.ok.test", "localhost")}
    async with proxy_world("ok.test:443", "ok.test:80", names=evil) as world:
        said = await world.say(way)
        assert b" 200 " not in said.split(b"\r\n")[0]
    assert (world.connected, bytes(world.received)) == ([], b"")


async def test_a_refusal_says_what_to_ask_for() -> None:
    """The reason is in the status line, in the body and in the report, with the host in its plain form."""
    async with proxy_world("ok.test:443") as world:
        said = await world.say(connect("EVIL.test.:443"))
    assert said.startswith(b"HTTP/1.1 403 artoo: evil.test:443 is not permitted\r\n")
    assert said.endswith(b"artoo: evil.test:443 is not permitted\n")
    assert [(one.host, one.port, one.bytes_out, one.refused) for one in world.heard] == [
        ("evil.test", 443, 0, "evil.test:443 is not permitted")
    ]
    assert world.denied == ["evil.test:443"]


async def test_a_host_that_fails_was_not_denied() -> None:
    """What is not permitted, or leads into this machine, is denied; an outage or a malformed request is not."""
    names = {"ok.test": [["10.0.0.1"]], "down.test": [[PUBLIC]], "here.test": [[LOOPBACK]]}
    async with proxy_world("ok.test", "down.test", "here.test", "missing.test", names=names) as world:
        world.unreachable.add(PUBLIC)
        for goal in (
            "down.test:443",
            "missing.test:443",
            "here.test:443",
            "evil.test:443",
            "ok.test",
            "0x7f.1:443",
        ):
            await world.say(connect(goal))
    assert sorted(world.denied) == ["evil.test:443", "here.test:443"]
    assert len(world.refusals) == 6


# --- tunnels ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1 << 14, 60])
async def test_tls_to_the_permitted_host_passes(size: int) -> None:
    """A hello that names the host goes out byte for byte, in however many records it comes, and is counted."""
    first = in_records(hello("ok.test"), size)
    async with proxy_world("ok.test:443", answer=b"server's turn") as world:
        said = await world.tunnelled("ok.test:443", first)
    assert bytes(world.received) == first
    assert world.connected == [(PUBLIC, 443)]
    assert said.startswith(b"HTTP/1.1 200 ") and said.endswith(b"server's turn")
    (used,) = world.heard
    assert (used.host, used.bytes_out, used.refused) == ("ok.test", len(first), None)
    assert used.bytes_in >= len(b"server's turn")


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (hello("evil.test"), "its TLS hello says 'evil.test', CONNECT ok.test:443"),
        (hello(None), "its TLS hello names no host"),
        (with_extension(hello("ok.test"), 0xFE0D, b"\0" * 40), "its TLS hello hides the host that it means"),
        (with_extension(hello("ok.test"), 0, b"\0\x0c\0\0\x09evil.test"), "its TLS hello says one thing twice"),
        (hello("ok.test")[:80], "it said nothing after CONNECT"),
        (b"", "it said nothing after CONNECT"),
        (b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "it does not speak TLS"),
        (b"\x16\x03\x01\x00\x04\x02\0\0\0", "it does not begin with a TLS hello"),
        (b"\x16\x03\x01\xff\xff" + b"\x01" * 100, "its TLS hello is malformed"),
        (b"\x16\x03\x01\x00\x04\x01\xff\xff\xff", "its TLS hello is too long"),
    ],
    ids=range(10),
)
async def test_a_tunnel_must_say_its_host(first: bytes, reason: str) -> None:
    """After CONNECT not one byte goes out unless a TLS hello names the very host in clear."""
    async with proxy_world("ok.test:443", answer=b"") as world:
        await world.tunnelled("ok.test:443", first)
    assert bytes(world.received) == b""
    assert [one.bytes_out for one in world.heard] == [0]
    assert world.refusals[0].startswith(reason)


async def test_other_protocols_need_a_permitted_port() -> None:
    """Plain text passes through a tunnel only where a permission names a port that is not https's."""
    for permit, goal, passes in (("ok.test", "ok.test:80", False), ("ok.test:9418", "ok.test:9418", True)):
        async with proxy_world(permit, answer=b"ok") as world:
            await world.tunnelled(goal, b"git-upload-pack")
        assert bool(world.received) is passes


async def test_a_named_address_needs_no_name() -> None:
    """TLS to an address that a permission names says no host, and may not say another."""
    async with proxy_world(f"{PUBLIC}:443", answer=b"") as world:
        await world.tunnelled(f"{PUBLIC}:443", hello(None))
        assert world.received
        world.received.clear()
        await world.tunnelled(f"{PUBLIC}:443", hello("evil.test"))
    assert bytes(world.received) == b""


# --- addresses --------------------------------------------------------------------------------------------------


async def test_rebinding_is_closed() -> None:
    """A name is looked up once a connection, and the address that was judged is the one that is connected to."""
    async with proxy_world("ok.test:443", names={"ok.test": [[PUBLIC], [LOOPBACK]]}) as world:
        await world.tunnelled("ok.test:443", hello("ok.test"))
        assert (world.asked, world.connected) == (["ok.test"], [(PUBLIC, 443)])
        said = await world.tunnelled("ok.test:443", hello("ok.test"))
    assert said.startswith(b"HTTP/1.1 403 ") and world.connected == [(PUBLIC, 443)]


@pytest.mark.parametrize(
    ("permits", "addresses", "connected"),
    [
        (["ok.test"], ["10.0.0.7"], ["10.0.0.7"]),
        (["*.test"], ["10.0.0.7"], []),
        (["*.test"], [PUBLIC], [PUBLIC]),
        (["ok.test"], [LOOPBACK], []),
        (["ok.test"], ["::ffff:127.0.0.1"], []),
        (["ok.test"], ["64:ff9b::a9fe:a9fe"], []),
        (["ok.test"], ["169.254.169.254"], []),
        (["ok.test"], ["fe80::1"], []),
        (["*.test"], ["fec0::1"], []),
        (["ok.test"], [OWN], []),
        (["ok.test"], [OWN_PUBLIC], []),
        (["ok.test"], [f"64:ff9b::{OWN_PUBLIC}"], []),
        (["ok.test"], [OWN, PUBLIC], [PUBLIC]),
        (["ok.test", OWN], [OWN], [OWN]),
        (["ok.test", "localhost"], [OWN], [OWN]),
        (["ok.test", "localhost:8080"], [OWN], []),
        (["ok.test"], ["0.0.0.0"], []),
        (["ok.test"], ["224.0.0.1"], []),
        (["ok.test"], [], []),
    ],
)
async def test_where_a_name_may_lead(
    permits: list[str], addresses: list[str], connected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine, by whichever of its addresses, and its neighbours are reached by a name only when a permission
    says so."""

    def is_own(address: Address) -> bool:
        return str(address) in (OWN, OWN_PUBLIC)

    monkeypatch.setattr(allowlist, "is_own", is_own)
    async with proxy_world(*permits, names={"ok.test": [addresses]}) as world:
        await world.say(get("http://ok.test/"))
    assert [one for one, _ in world.connected] == connected
    assert bool(world.refusals) is not bool(connected)


async def test_localhost_means_loopback() -> None:
    """`localhost` may be permitted by that name, on the port that is named."""
    async with proxy_world("localhost:8080", names={"localhost": [["::1", LOOPBACK]]}) as world:
        await world.say(get("http://localhost:8080/", host="localhost:8080"))
        await world.say(get("http://localhost:8081/", host="localhost:8081"))
    assert world.connected == [("::1", 8080)]


async def test_the_next_address_is_tried() -> None:
    """A host with an address that does not answer is reached at its next."""
    async with proxy_world("ok.test", names={"ok.test": [["2606:2800:220:1::1", PUBLIC]]}) as world:
        world.unreachable.add("2606:2800:220:1::1")
        assert (await world.say(get("http://ok.test/"))).endswith(b"hello")


# --- plain HTTP -------------------------------------------------------------------------------------------------


async def test_plain_http_is_written_again_by_the_proxy() -> None:
    """Request and answer are written anew: the path only, no headers of the way, one connection a request."""
    async with proxy_world("ok.test") as world:
        said = await world.say(
            get("http://OK.test/a?b=c", "Accept: x", "Proxy-Authorization: y", "Connection: accept")
        )
    assert bytes(world.received) == b"GET /a?b=c HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n"
    assert said == b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: close\r\n\r\nhello"


async def test_bodies_pass_whole() -> None:
    """A body with a length and one in chunks arrive, also when the client waits to be told to go on."""
    big = b"x" * 300_000
    async with proxy_world("ok.test", answer=b"") as world:
        server = asyncio.create_task(world.say(post(f"Content-Length: {len(big)}", body=big)))
        await world.until(big)
        server.cancel()
        world.received.clear()
        chunks = post("Transfer-Encoding: chunked", "Expect: 100-continue")
        asked = asyncio.create_task(world.say(chunks, b"3\r\nabc\r\n0\r\n\r\n", wait=b"100 \r\n\r\n"))
        await world.until(b"0\r\n\r\n")
        asked.cancel()
    assert b"3\r\nabc\r\n" in world.received and b"Expect" not in world.received


async def test_a_pipelined_request_is_not_sent() -> None:
    """What follows a request on its connection goes nowhere: neither to the first host nor to another."""
    async with proxy_world("ok.test", names={"evil.test": [[PUBLIC]]}) as world:
        await world.say(
            get("http://ok.test/") + get("http://evil.test/", host="evil.test") + get("http://ok.test/2")
        )
    assert len(world.connected) == 1 and world.received.count(b"GET ") == 1


# --- bounds -----------------------------------------------------------------------------------------------------


async def test_a_slow_head_is_not_waited_for() -> None:
    """A request that does not come, or not whole, ends with its time."""
    async with proxy_world("ok.test", limits=ProxyLimits(head_seconds=0.1)) as world:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.proxy_port)
        writer.write(b"GET http://ok.test/ HTTP/1.1\r\nHost: ok")
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 408 ")
        writer.close()
    assert world.connected == []


async def test_an_idle_connection_ends() -> None:
    """A connection over which nothing moves is cut, and says so."""
    async with proxy_world("ok.test", answer=b"", limits=ProxyLimits(idle_seconds=0.1)) as world:
        await world.say(get("http://ok.test/"))
    assert world.refusals == ["nothing moved for 0.1 s"]


async def test_connections_at_once_are_bounded() -> None:
    """More wait for their turn."""
    async with proxy_world("ok.test", limits=ProxyLimits(open_connections=2, head_seconds=0.2)) as world:
        said = await asyncio.gather(*(world.say(get("http://ok.test/")) for _ in range(5)))
        assert [one[-5:] for one in said] == [b"hello"] * 5


async def test_the_end_of_the_proxy_reports_what_is_open() -> None:
    """A connection that the command's end cuts is reported with what it has sent."""
    async with proxy_world("ok.test:443", answer=b"") as world:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.proxy_port)
        writer.write(connect("ok.test:443"))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(hello("ok.test"))
        await world.until(b"")
        sent = len(world.received)
    assert [(one.bytes_out, one.refused) for one in world.heard] == [(sent, None)]
    writer.close()
