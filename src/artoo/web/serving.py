"""Start and stop the web server on its socket, with its connection limit, and lock one server per home."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.model import Config
from artoo.web.app import application
from artoo.web.entry import PORT, Entry
from artoo.web.site import Site
from artoo.web.starting import Open, Starter

HOST = "127.0.0.1"
CLOSING_SECONDS = 3
MOST_CONNECTIONS = 200
_LOOKS, _LOOK_PAUSE = 40, 0.05


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signal handling to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@dataclass(frozen=True, slots=True)
class Serving:
    """A running web server. `address` contains a token that can be used once."""

    address: str
    server: uvicorn.Server
    closing: asyncio.Event

    def stop(self) -> None:
        """Ask the server to end. Streams are closed first, because the server waits for its connections."""
        self.closing.set()
        self.server.should_exit = True


def bound(port: int | None) -> socket.socket:
    """Open a listening socket on loopback. `port` None means `PORT`, or another port if that is taken.

    Raises ConfigurationError if the given port cannot be used, or if no port is free.
    """
    for wanted in (PORT, 0) if port is None else (port,):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, wanted))
            # The socket listens already, because the browser may connect before the server accepts.
            listening.listen(MOST_CONNECTIONS)
        except OSError as error:
            listening.close()
            if wanted == port:
                raise ConfigurationError(
                    f"port {port} cannot be used ({error.strerror}); give another one"
                ) from error
        else:
            return listening
    raise ConfigurationError("no port is free on this machine")


@asynccontextmanager
async def served(
    config: Config, project: Path, open_runtime: Open, listening: socket.socket
) -> AsyncGenerator[Serving]:
    """Serve the web UI during the block. When the block ends, wait until the server is stopped (`Serving.stop`)."""
    starter = Starter(open_runtime)
    site = Site(config, project, starter)
    entry = Entry(config.home)
    server = _Server(
        uvicorn.Config(
            application(site, entry),
            # The access log would contain the token.
            access_log=False,
            log_level="warning",
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=CLOSING_SECONDS,
        )
    )
    port = int(listening.getsockname()[1])
    with listening, closing(site.indexes):
        async with asyncio.TaskGroup() as group:
            group.create_task(starter.run())
            serving = group.create_task(server.serve(sockets=[listening]))
            page = Serving(address_of(port, entry.token()), server, site.closing)
            try:
                yield page
                await asyncio.wait((serving,))
            finally:
                page.stop()
                starter.close()


def address_of(port: int, token: str) -> str:
    """Return the address that a browser opens first, with the token."""
    return f"http://{HOST}:{port}/enter?token={token}"


@contextmanager
def only_page(home: Path, port: int | None) -> Generator[socket.socket | int]:
    """Lock this home for one web server and yield its socket (see `bound`), or yield the port of the lock's owner.

    Raises ConfigurationError as `bound` does, and if the other server has not written its port yet.
    """
    place = home / "web" / "server.lock"
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield _port_in(descriptor)
            return
        # Other processes must not read the port of an earlier server before the new port is written.
        os.ftruncate(descriptor, 0)
        with bound(port) as listening:
            os.pwrite(descriptor, f"{listening.getsockname()[1]}\n".encode(), 0)
            yield listening
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _port_in(descriptor: int) -> int:
    """Read the port that another process wrote into the lock file. Blocks."""
    for _ in range(_LOOKS):
        text = os.pread(descriptor, 16, 0).decode("ascii", "replace")
        if text.endswith("\n") and text.strip().isdecimal():
            return int(text)
        time.sleep(_LOOK_PAUSE)
    raise ConfigurationError("another artoo begins or ends to serve this home just now; try again")
