"""A proxy without a sandbox: its resolver and its connections are doubles, so every packet stays on loopback."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from artoo.contracts.events import NetworkUsed
from artoo.sandbox.network.allowlist import Address, Destination, Permits, address_of
from artoo.sandbox.network.proxy import Proxy, ProxyLimits, Streams

PUBLIC = "93.184.216.34"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
_PATIENCE = 10.0


@dataclass
class ProxyWorld:
    """One proxy at work. `names`: what the resolver answers, one answer after the other, the last for ever.

    `connected`: the addresses that it connected to; `received`: what all hosts together were sent; `denied`: the
    destinations that it denied. Every host is one server on loopback, which answers everything with `answer`.
    """

    names: Mapping[str, Sequence[Sequence[str]]]
    answer: bytes = ANSWER
    heard: list[NetworkUsed] = field(default_factory=list[NetworkUsed])
    denied: list[str] = field(default_factory=list[str])
    connected: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    asked: list[str] = field(default_factory=list[str])
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    unreachable: set[str] = field(default_factory=set[str])
    received: bytearray = field(default_factory=bytearray)
    proxy_port: int = 0
    host_port: int = 0

    async def resolve(self, goal: Destination) -> tuple[Address, ...]:
        answers = self.names.get(goal.host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        found = answers[min(self.asked.count(goal.host), len(answers) - 1)]
        self.asked.append(goal.host)
        return tuple(address for text in found if (address := address_of(text)) is not None)

    async def connect(self, address: Address, port: int) -> Streams:
        if str(address) in self.unreachable:
            raise ConnectionRefusedError(f"nobody is at {address}")
        self.connected.append((str(address), port))
        return await asyncio.open_connection("127.0.0.1", self.host_port)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                self.received += data
                self.arrived.set()
                if self.answer:
                    writer.write(self.answer)
        writer.close()

    async def say(self, *parts: bytes, wait: bytes = b"", keep: bool = False) -> bytes:
        """Send the first part to the proxy, wait until `wait` has come back, send the rest, and read to the end.

        `keep`: leave the connection open for sending.
        """
        heard = b""
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy_port)
            try:
                for number, part in enumerate(parts):
                    if number and wait:
                        heard += await asyncio.wait_for(reader.readuntil(wait), _PATIENCE)
                    writer.write(part)
                    await writer.drain()
                if not keep:
                    writer.write_eof()
                heard += await asyncio.wait_for(reader.read(), _PATIENCE)
            finally:
                writer.close()
        return heard

    async def until(self, ending: bytes) -> None:
        """Wait until the hosts were sent something that ends so."""
        while not self.received.endswith(ending) or not self.received:
            self.arrived.clear()
            await asyncio.wait_for(self.arrived.wait(), _PATIENCE)

    async def tunnelled(self, goal: str, *parts: bytes) -> bytes:
        """Send a CONNECT, and the parts when it was granted."""
        request = f"CONNECT {goal} HTTP/1.1\r\nHost: {goal}\r\n\r\n".encode()
        return await self.say(request, b"".join(parts), wait=b"\r\n\r\n")

    @property
    def refusals(self) -> list[str]:
        return [used.refused for used in self.heard if used.refused is not None]


@asynccontextmanager
async def proxy_world(
    *permits: str,
    names: Mapping[str, Sequence[Sequence[str]]] | None = None,
    answer: bytes = ANSWER,
    limits: ProxyLimits | None = None,
) -> AsyncGenerator[ProxyWorld]:
    """A proxy that permits `permits` and knows `ok.test`, a public host."""
    world = ProxyWorld({"ok.test": [[PUBLIC]], **(names or {})}, answer)
    server = await asyncio.start_server(world.serve, "127.0.0.1", 0)
    world.host_port = server.sockets[0].getsockname()[1]
    proxy = Proxy(
        Permits.given(permits),
        world.heard.append,
        on_denied=world.denied.append,
        resolve=world.resolve,
        connect=world.connect,
        limits=limits,
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        world.proxy_port = listening.getsockname()[1]
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(proxy.serve(listening))
            try:
                yield world
            finally:
                serving.cancel()
                server.close()


@functools.cache
def hello(name: str | None) -> bytes:
    """What a real TLS client says first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(into, out, server_hostname=name)
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def in_records(message: bytes, size: int) -> bytes:
    """The same hello in records of `size` bytes."""
    body = message[5:]
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)


def with_extension(message: bytes, kind: int, content: bytes) -> bytes:
    """The same hello with one more extension."""
    body = bytearray(message[5:])
    at = 4 + 2 + 32
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    more = kind.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content
    length = int.from_bytes(body[at : at + 2], "big") + len(more)
    body[at : at + 2] = length.to_bytes(2, "big")
    body += more
    body[1:4] = (len(body) - 4).to_bytes(3, "big")
    return b"\x16\x03\x01" + len(body).to_bytes(2, "big") + bytes(body)
