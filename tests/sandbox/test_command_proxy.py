"""A command has its own proxy for as long as it runs, or a plain word that it has no network."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import pytest
from proxy_world import ANSWER

from artoo.contracts.errors import SandboxError
from artoo.contracts.network import NetworkUsed
from artoo.ports.workspace import Command
from artoo.sandbox.network.command_proxy import proxied
from artoo.sandbox.network.proxy_env import no_network_environment


async def _listen() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


async def _never() -> socket.socket:
    raise AssertionError("a command without hosts needs no socket")


async def _fails() -> socket.socket:
    raise OSError("no such network")


async def _asked(proxy: str, url: str) -> bytes:
    """Send a GET through the proxy that an environment names, and return the answer."""
    parts = urlsplit(proxy)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {url} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ANSWER)
    writer.close()


async def test_a_command_reaches_what_it_was_allowed() -> None:
    """The environment names the proxy; allowed hosts answer, others are denied, and the record has them once."""
    used: list[NetworkUsed] = []
    async with await asyncio.start_server(_serve, "127.0.0.1", 0) as server:
        allowed = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        command = Command(("true",), hosts=(allowed,), on_connection=used.append)
        async with proxied(command, _listen) as network:
            proxy = network.environment["http_proxy"]
            assert (await _asked(proxy, f"http://{allowed}/")).endswith(b"hello")
            for _ in range(2):
                assert b"403 artoo: pypi.org:80 is not permitted" in await _asked(proxy, "http://pypi.org/")
    assert network.denied_hosts == ("pypi.org:80",)
    assert [one.refused is None for one in used] == [True, False, False]
    with pytest.raises(ConnectionRefusedError):  # it ends with its command
        await _asked(proxy, f"http://{allowed}/")


async def test_commands_at_the_same_time_have_a_proxy_each() -> None:
    """What one command was allowed, the proxy of another one denies."""
    one, other = Command(("true",), hosts=("one.test",)), Command(("true",), hosts=("other.test",))
    async with proxied(one, _listen) as first, proxied(other, _listen) as second:
        assert first.environment["https_proxy"] != second.environment["https_proxy"]
        await _asked(first.environment["http_proxy"], "http://other.test/")
    assert (first.denied_hosts, second.denied_hosts) == (("other.test:80",), ())


def test_without_hosts_the_proxy_is_a_name_that_says_what_to_do() -> None:
    """Programs show it in their own error messages; local servers are reached without it."""
    told = no_network_environment()
    assert told["HTTPS_PROXY"] == "http://commands-have-no-network.call-again-with-hosts.invalid:9"
    assert told["no_proxy"] == "localhost,127.0.0.1,::1"


async def test_a_network_that_cannot_be_set_up_is_an_error() -> None:
    """Nothing is run when a host cannot be read or there is no socket; other errors pass as they are."""
    for hosts, listen, message in (
        (("0x7f.1:80",), _never, r"'0x7f\.1:80' looks like an address"),
        (("pypi.org",), _fails, "nothing was run: no such network"),
    ):
        with pytest.raises(SandboxError, match=message):
            async with proxied(Command(("true",), hosts=hosts), listen):
                raise AssertionError("nothing must run")
    with pytest.raises(SandboxError, match="its own"):
        async with proxied(Command(("true",), hosts=("pypi.org",)), _listen):
            raise SandboxError("its own")
