"""From inside a sandbox there is one way out, to what a command was allowed; the rest ends in its own network."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import subprocess
import sys
import zipfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from living import Commands, World
from proxy_world import ANSWER

from artoo.contracts.errors import SandboxError
from artoo.contracts.events import NetworkUsed
from artoo.ports.workspace import Ended, Process
from plain_user import as_plain_user

ATTEMPTS = Path(__file__).with_name("network_attempts.py")


@pytest.fixture
async def commands(world: World) -> AsyncGenerator[Commands]:
    async with world.sandbox() as found:
        yield found


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
    """A host that commands may reach: a server on loopback that keeps what it was sent."""

    port: int = 0
    received: bytearray = field(default_factory=bytearray)
    used: list[NetworkUsed] = field(default_factory=list[NetworkUsed])

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.received += data
            writer.write(ANSWER)
        writer.close()


@asynccontextmanager
async def host() -> AsyncGenerator[Host]:
    found = Host()
    async with await asyncio.start_server(found.serve, "127.0.0.1", 0) as server:
        found.port = server.sockets[0].getsockname()[1]
        yield found


def _python(script: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", script, *arguments)


async def start(commands: Commands, script: str, to: Host | None, *arguments: str) -> Process:
    """Start a Python script, with a way out to one host."""
    if to is None:
        return await commands.start(*_python(script, *arguments))
    return await commands.start(*_python(script, *arguments), hosts=(to.name,), on_connection=to.used.append)


async def run(commands: Commands, script: str, to: Host | None = None, *arguments: str) -> Ended:
    ended = await (await start(commands, script, to, *arguments)).wait(30)
    assert ended is not None
    return ended


@pytest.mark.parametrize("permitted", [True, False])
async def test_nothing_gets_past_the_proxy(commands: Commands, permitted: bool) -> None:
    """Raw addresses, IPv6, datagrams, DNS, other families of sockets, netlink, namespaces, other processes and
    inherited descriptors lead nowhere, whether or not the command has a proxy."""
    async with host() as allowed:
        with witness() as outside:
            ports = (str(outside.tcp), str(outside.udp), outside.name)
            ended = await run(commands, ATTEMPTS.read_text(), allowed if permitted else None, *ports)
    assert ended.status == "ok", ended.stderr.text
    assert json.loads(ended.stdout.text) == []
    assert (outside.seen, bytes(allowed.received), allowed.used) == ([], b"", [])


GET = "import urllib.request\nprint(urllib.request.urlopen('http://{host}/a').read())"


async def test_the_permitted_host_is_reached(commands: Commands) -> None:
    """What a command was permitted it reaches with an ordinary client, and it is counted."""
    async with host() as allowed:
        ended = await run(commands, GET.format(host=allowed.name), allowed)
    assert (ended.stdout.text, ended.denied_hosts) == ("b'hello'\n", ()), ended.stderr.text
    assert allowed.received.startswith(b"GET /a HTTP/1.1\r\n")
    (used,) = allowed.used
    assert (used.host, used.port, used.refused) == ("127.0.0.1", allowed.port, None)
    assert (used.bytes_out, used.bytes_in) == (len(allowed.received), len(ANSWER))


async def test_another_host_is_denied_whatever_the_exit_code(commands: Commands) -> None:
    """The client gets the reason, nothing is sent, and the record names the host, also when the script hides it."""
    script = GET.format(host="{host}").replace("\n", "\ntry: ") + "\nexcept OSError as error: print(error)"
    async with host() as allowed, host() as other:
        ended = await run(commands, script.format(host=other.name), allowed)
    assert (ended.status, ended.denied_hosts) == ("ok", (other.name,))
    assert f"403: artoo: {other.name} is not permitted" in ended.stdout.text
    assert (bytes(other.received), [one.host for one in allowed.used]) == (b"", ["127.0.0.1"])


LATE = """
import os, socket, time, urllib.parse
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        proxy = urllib.parse.urlsplit(os.environ['http_proxy'])
        through = socket.create_connection((proxy.hostname, proxy.port))
        through.send(b'CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n')
        through.recv(100)
        open('ready', 'w').close()
        through.recv(100)
        try:
            through.send(b'GET /late HTTP/1.1\\r\\n\\r\\n')
            socket.create_connection((proxy.hostname, proxy.port))
        except OSError as error:
            open('ended', 'w').write(str(error))
        time.sleep(60)
    os._exit(0)
while not os.path.exists('ready'):
    time.sleep(0.01)
print('done')
"""


async def test_a_permission_ends_with_its_command(commands: Commands) -> None:
    """What the command left in the background lives on, and finds neither its connection nor the proxy."""
    async with host() as allowed:
        ended = await run(commands, LATE.format(host=allowed.name), allowed)
        assert ended.stdout.text == "done\n", ended.stderr.text
        assert "refused" in await commands.says("until [ -s ended ]; do sleep 0.05; done; cat ended")
    assert bytes(allowed.received) == b""
    assert [(one.port, one.bytes_out) for one in allowed.used] == [(allowed.port, 0)]


SERVER = """
import http.server
class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'from the task')
http.server.HTTPServer(('127.0.0.1', 8000), Quiet).serve_forever()
"""


ASK = """
import time, urllib.request
for _ in range(200):
    try:
        print(urllib.request.urlopen('http://localhost:8000').read())
        break
    except OSError:
        time.sleep(0.05)
"""


async def test_a_server_of_the_task_is_reached_without_permission(commands: Commands) -> None:
    """By later commands, with or without a network of their own, and never through the proxy."""
    server = await commands.start(*_python(SERVER))
    async with host() as allowed:
        for to in (None, allowed):
            assert (await run(commands, ASK, to)).stdout.text == "b'from the task'\n"
    assert allowed.used == []
    await server.stop()


async def test_a_command_without_hosts_has_its_attempts_in_its_record(commands: Commands) -> None:
    """Also if it hides its failure behind a pipe, and ends with 0."""
    ended = await commands.bash(
        "curl -sS https://example.org 2>/dev/null | tail -1; git ls-remote https://a.org/x | tail -3"
    )
    assert (ended.status, ended.denied_hosts) == ("ok", ("example.org:443", "a.org:443"))


async def test_what_is_no_host_is_no_network(commands: Commands) -> None:
    """A permission that cannot be read runs nothing."""
    with pytest.raises(SandboxError, match=r"'0x7f\.1:80' looks like an address"):
        await commands.start("true", hosts=("0x7f.1:80",))
    assert await commands.says("echo on") == "on\n"


# --- A package index over TLS ------------------------------------------------------------------------------------


@asynccontextmanager
async def index(place: Path) -> AsyncGenerator[tuple[int, Path]]:
    """A package index on localhost that holds one package; its port and its certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = place / "key.pem", place / "cert.pem"
    request = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost")
    names = ("-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate))
    await asyncio.to_thread(subprocess.run, ("openssl", *request, *names), check=True, capture_output=True)
    wheel = place / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("demo.py", "x = 1\n")
        file.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        file.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("demo-1.0.dist-info/RECORD", "")
    pages = {
        "/simple/demo/": f'<a href="/{wheel.name}">{wheel.name}</a>'.encode(),
        f"/{wheel.name}": wheel.read_bytes(),
    }

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            body = pages.get(head.split()[1].decode(), b"")
            kind = b"text/html" if head.split()[1].endswith(b"/") else b"application/octet-stream"
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: %b\r\n" % kind)
            writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            await writer.drain()
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1], certificate


async def test_a_package_is_downloaded(commands: Commands, tmp_path: Path) -> None:
    """pip and curl find the proxy by themselves and check the certificate of the host itself; another name in TLS
    than the one that was permitted is refused before a byte goes out."""
    project = commands.world.project
    async with index(tmp_path) as (port, certificate):
        shutil.copy(certificate, project / "cert.pem")
        permit = (f"localhost:{port}",)
        script = (
            f"curl -sS --cacert cert.pem -o got.whl https://localhost:{port}/demo-1.0-py3-none-any.whl && ls *.whl"
        )
        assert await commands.says(script, hosts=permit) == "got.whl\n"
        python = "/usr/bin/python3"
        if (await commands.bash(f"{python} -m pip --version")).status == "ok":
            url = f"https://localhost:{port}/simple/"
            ended = await commands.bash(
                f"{python} -m pip install -q --no-deps --target lib --index-url {url} demo && ls lib/demo.py",
                env={"REQUESTS_CA_BUNDLE": "cert.pem", "PIP_CERT": "cert.pem"},
                hosts=permit,
            )
            assert ended.stdout.text == "lib/demo.py\n", ended.stderr.text
        other = (
            f"curl -sS --cacert cert.pem --connect-to evil.test:{port}:localhost:{port} https://evil.test:{port}/"
        )
        ended = await commands.bash(other, hosts=permit)
        assert ended.status == "error" and ended.denied_hosts


@pytest.mark.timeout(180)
def test_all_of_this_holds_for_a_plain_user() -> None:
    """Some of these tests again, as a user without any rights."""
    as_plain_user(Path(__file__), only="past_the_proxy or permitted_host")
