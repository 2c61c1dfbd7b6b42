"""From inside a command there is one way out, to what was permitted; everything else ends in its own network."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from network_world import ANSWER
from sandbox_world import World, require_tier

from artoo.contracts.errors import SandboxError
from artoo.contracts.network import NetworkUsed
from artoo.ports.sandbox import Limits, Sandbox, ViewRun, unheard
from artoo.world.choose import candidates
from artoo.world.readonly import ReadOnlyFirst, landlock

ATTEMPTS = Path(__file__).with_name("network_attempts.py")


@pytest.fixture(params=["bubblewrap", "bubblewrap in a user namespace", "namespaces"])
def networked(request: pytest.FixtureRequest, world: World) -> Sandbox:
    """Every way in which a command can have a network of its own; the second is how it is for who is not root."""
    tier, _, user_namespace = str(request.param).partition(" in ")
    require_tier(tier)
    world.artoo_home.mkdir(mode=0o700)
    found = [one for one in candidates(world.artoo_home) if one.tier == tier]
    chosen = next(one for one in found if not user_namespace or one.key.endswith(":True"))
    return chosen.build(chosen.stage_homes)


@pytest.fixture
def landlocked(world: World) -> Sandbox:
    require_tier("landlock")
    world.artoo_home.mkdir()
    return ReadOnlyFirst("landlock", landlock, world.artoo_home)


@dataclass
class Witness:
    """Servers on this machine's loopback; `seen` is what reached them."""

    tcp: int = 0
    udp: int = 0
    name: str = ""
    seen: list[bytes] = field(default_factory=list[bytes])


@contextmanager
def witness() -> Generator[Witness]:
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as tcp,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        udp.bind(("::", 0))
        name = f"artoo-witness-{udp.getsockname()[1]}"
        abstract.bind("\0" + name)
        abstract.listen()
        found = Witness(tcp.getsockname()[1], udp.getsockname()[1], name)
        yield found
        for one in (tcp, abstract):
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.accept()[0].close()
                found.seen.append(b"a connection")
        udp.setblocking(False)
        with suppress(BlockingIOError):
            found.seen.append(udp.recv(100))


@dataclass
class Host:
    """A host that commands may reach: an HTTP server on loopback that keeps what it was sent."""

    port: int = 0
    received: bytearray = field(default_factory=bytearray)
    heard: list[NetworkUsed] = field(default_factory=list[NetworkUsed])

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def host() -> AsyncGenerator[Host]:
    found = Host()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            found.received += data
            writer.write(ANSWER)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        found.port = server.sockets[0].getsockname()[1]
        yield found


async def run(sandbox: Sandbox, world: World, script: str, to: Host | None = None, *arguments: str) -> ViewRun:
    """A Python script in the sandbox, with a way out to one host."""
    request = replace(
        world.bash("", limits=Limits(wall_seconds=30)),
        argv=(sys.executable, "-I", "-S", "-c", script, *arguments),
        hosts=() if to is None else (to.name,),
        heard=unheard if to is None else to.heard.append,
    )
    return await sandbox.look(request)


@pytest.mark.parametrize("permitted", [True, False])
async def test_nothing_gets_past_the_edge(networked: Sandbox, world: World, permitted: bool) -> None:
    """Raw addresses, IPv6, datagrams, DNS, other families of sockets, netlink, namespaces, other processes and
    inherited descriptors lead nowhere, whether or not the command has an edge."""
    async with host() as allowed:
        with witness() as outside:
            ports = (str(outside.tcp), str(outside.udp), outside.name)
            ended = await run(networked, world, ATTEMPTS.read_text(), allowed if permitted else None, *ports)
    assert ended.status == "ok", ended.stderr.text
    assert json.loads(ended.stdout.text) == []
    assert (outside.seen, bytes(allowed.received), allowed.heard) == ([], b"", [])


GET = """
import os, urllib.request
print(urllib.request.urlopen('http://{host}/a').read())
"""


async def test_the_permitted_host_is_reached(networked: Sandbox, world: World) -> None:
    """What a command was permitted it reaches with an ordinary client, and it is counted."""
    async with host() as allowed:
        ended = await run(networked, world, GET.format(host=allowed.name), allowed)
    assert ended.stdout.text == "b'hello'\n", ended.stderr.text
    assert allowed.received.startswith(b"GET /a HTTP/1.1\r\n")
    (used,) = allowed.heard
    assert (used.host, used.port, used.refused) == ("127.0.0.1", allowed.port, None)
    assert (used.bytes_out, used.bytes_in) == (len(allowed.received), len(ANSWER))


async def test_another_host_is_refused_with_a_reason(networked: Sandbox, world: World) -> None:
    """A client that asks the edge for something else hears why not, and nothing is sent."""
    async with host() as allowed, host() as other:
        ended = await run(networked, world, GET.format(host=other.name), allowed)
    assert ended.status == "error"
    assert f"403: artoo: {other.name} is not permitted" in ended.stderr.text
    assert (bytes(other.received), [one.host for one in allowed.heard]) == (b"", ["127.0.0.1"])


LATE = """
import os, socket, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        edge = socket.create_connection(('127.0.0.1', 3128))
        edge.send(b'CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n')
        edge.recv(100)
        open('ready', 'w').close()
        time.sleep(0.5)
        edge.send(b'GET /late HTTP/1.1\\r\\n\\r\\n')
        time.sleep(60)
    os._exit(0)
while not os.path.exists('ready'):
    time.sleep(0.01)
print('done')
"""


async def test_a_late_fork_sends_nothing(networked: Sandbox, world: World) -> None:
    """A process that means to outlive its command ends with it, and so does its connection."""
    async with host() as allowed:
        ended = await run(networked, world, LATE.format(host=allowed.name), allowed)
        assert ended.stdout.text == "done\n", ended.stderr.text
        await asyncio.sleep(0.7)
    assert bytes(allowed.received) == b""
    assert [(one.port, one.bytes_out) for one in allowed.heard] == [(allowed.port, 0)]


async def test_the_next_command_has_no_edge(networked: Sandbox, world: World) -> None:
    """A permission ends with its command: the next one finds nobody at the port."""
    script = "import socket; socket.create_connection(('127.0.0.1', 3128))"
    async with host() as allowed:
        assert (await run(networked, world, script, allowed)).status == "ok"
        ended = await run(networked, world, script)
    assert "ConnectionRefusedError" in ended.stderr.text


async def test_a_server_of_the_command_is_its_own(networked: Sandbox, world: World) -> None:
    """A command's own local server is reached as ever, without the edge and without a permission."""
    script = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(('127.0.0.1', 8000), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen('http://localhost:8000/').status)
"""
    assert (await run(networked, world, script)).stdout.text == "200\n"


async def test_without_a_network_the_error_says_so(networked: Sandbox, world: World) -> None:
    """A client without a network names what to do in its own error message."""
    ended = await networked.look(world.bash("curl -sS https://example.org; git ls-remote https://example.org/x"))
    assert ended.stderr.text.count("commands-have-no-network.call-again-with-hosts.invalid") == 2


async def test_many_at_once(networked: Sandbox, world: World) -> None:
    """Commands that run at the same time have an edge each."""
    async with host() as one, host() as other:
        both = await asyncio.gather(
            *(run(networked, world, GET.format(host=each.name), each) for each in (one, other, one, other))
        )
        crossed = await asyncio.gather(
            run(networked, world, GET.format(host=other.name), one),
            run(networked, world, GET.format(host=one.name), other),
        )
    assert [each.status for each in both] == ["ok"] * 4
    assert [each.status for each in crossed] == ["error"] * 2


async def test_what_is_no_host_is_no_network(networked: Sandbox, world: World) -> None:
    """A permission that cannot be read runs nothing."""
    request = replace(world.bash("true"), hosts=("0x7f.1:80",))
    with pytest.raises(SandboxError, match=r"'0x7f\.1:80' looks like an address"):
        await networked.look(request)


async def test_a_tier_without_networks_says_so(landlocked: Sandbox, world: World) -> None:
    """Where a command cannot have a network of its own, none is offered."""
    with pytest.raises(SandboxError, match=r"not offered in this sandbox \(landlock\)"):
        await landlocked.look(replace(world.bash("true"), hosts=("pypi.org",)))


async def test_who_is_not_root_has_an_edge_too(tmp_path: Path) -> None:
    """Every way in which a network is made works for a plain user, who has rights in it only by ownership."""
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        pytest.skip("these tests run as a plain user already, or there is no unshare to become one")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    process = await asyncio.create_subprocess_exec(
        *(unshare, "--user", "--map-user=1000", "--map-group=1000", sys.executable, "-m", "pytest", "-q"),
        *("-p", "no:cacheprovider", "--basetemp", str(tmp_path / "plain"), "-k", "gets_past or permitted_host"),
        __file__,
        env=kept | {"HOME": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
