"""A real PostgreSQL that speaks TLS, reached by a name that is not this machine's."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from certificates import Authority
from fetch_postgres import PROGRAMS
from postgres_server import Programs, Server

HOST = "db.example.org"
PLACE = f"127.{os.getpid() >> 16 & 255}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
"""On the loopback, one for each process of pytest; the address names HOST, which is not the loopback's."""


class TlsServer:
    """A server whose certificate changes, and what the team trusts."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.ours, self.strangers = Authority("ours"), Authority("a stranger")
        self._server = server
        self._root = folder / "ours.pem"
        self._root.write_bytes(self.ours.certificate)

    def present(self, certificate: tuple[bytes, bytes] | None) -> None:
        """The server has this certificate from now on; None: it speaks no TLS."""
        self._server.end(signal.SIGINT)
        self._server.configure(ssl="off" if certificate is None else "on")
        if certificate is not None:
            shown, key = (self._server.own(f"{n}.pem", part) for n, part in enumerate(certificate))
            self._server.configure(ssl_cert_file=shown, ssl_key_file=key)
        self._server.run()

    def url(self, *more: str, trusting: bool = True) -> str:
        """Of a database, by a name that is not this machine's, and nothing said about TLS but whom to trust."""
        root = (f"sslrootcert={self._root}",) if trusting else ()
        return f"postgresql://postgres@{HOST}/postgres?{'&'.join((f'hostaddr={PLACE}', *root, *more))}"


@contextmanager
def tls_server(folder: Path) -> Generator[TlsServer]:
    """While it lasts. `folder`: for the authority that the team trusts."""
    if not PROGRAMS.exists():
        pytest.skip("there is no PostgreSQL that speaks TLS here: make postgres")
    server = Server.start(Programs(PROGRAMS), listen_addresses=PLACE)
    try:
        yield TlsServer(server, folder)
    finally:
        server.stop()
