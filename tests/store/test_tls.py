"""A store beyond this machine is reached by TLS with a verified certificate, by default: with a real server."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from certificates import Authority
from click.testing import CliRunner

from artoo.agents.board import Board
from artoo.agents.shared import SharedDatabase
from artoo.cli.store_command import store
from artoo.contracts.agents import OPERATOR
from artoo.runtime.system import UuidIds
from artoo.store.address import parse
from fetch_postgres import PROGRAMS
from postgres_server import Programs, Server

HOST = "db.example.org"
PLACE = f"127.{os.getpid() >> 16 & 255}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
"""On the loopback, one for each process of pytest; the address names HOST, which is not the loopback's."""


class Team:
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


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Generator[Team]:
    """A server of its own, in the place of this process."""
    if not PROGRAMS.exists():
        pytest.skip("there is no PostgreSQL that speaks TLS here: make postgres")
    server = Server.start(Programs(PROGRAMS), listen_addresses=PLACE)
    try:
        yield Team(server, tmp_path_factory.mktemp("authorities"))
    finally:
        server.stop()


def said(command: str, url: str, home: Path) -> tuple[int, str]:
    """What `artoo store COMMAND URL` says, in a home of its own."""
    environ = {"ARTOO_HOME": str(home), "HOME": str(home), "PGSSLROOTCERT": None}
    ended = CliRunner().invoke(store, [command, url], env=environ)
    return ended.exit_code, f"{ended.output} {ended.exception or ''}"


@pytest.mark.parametrize("command", ["init", "check"])
def test_what_is_not_the_stores_certificate_is_refused(team: Team, tmp_path: Path, command: str) -> None:
    """Another name's, a stranger's, one that has ended, none at all, and no authority to go by: each is named, with
    what to do, and nothing is sent to that server."""
    refused = {
        "subjectAltName": team.ours.server("other.example.org"),
        "put that authority's certificate into": team.strangers.server(HOST),
        "has expired": team.ours.server(HOST, days=-1),
        "does not speak TLS": None,
    }
    for why, certificate in refused.items():
        team.present(certificate)
        code, told = said(command, team.url(), tmp_path)
        assert code != 0
        assert why in told and HOST in told
    team.present(team.ours.server(HOST))
    assert "put that authority's certificate into" in said(command, team.url(trusting=False), tmp_path)[1]
    assert "cannot be read" in said(command, team.url("sslrootcert=/nowhere.pem", trusting=False), tmp_path)[1]


async def test_with_the_right_authority_everything_goes_over_it(team: Team, tmp_path: Path) -> None:
    """`store init` and `check`, and the books with claims and notifications, each connection by TLS."""
    team.present(team.ours.server(HOST))
    for command in ("init", "check"):
        code, told = said(command, team.url(), tmp_path)
        assert code == 0, told
    async with await SharedDatabase.open(parse(team.url()), holder="m0/1/2/3/4") as database:
        database.on_written(lambda: None)
        board = Board(database, UuidIds())
        await board.work.take((await board.add("by TLS", OPERATOR)).id, OPERATOR)
        ways = await database.read(
            lambda reading: reading.all(
                "SELECT ssl, version FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                " WHERE application_name = 'artoo'"
            )
        )
        assert ways and all(way["ssl"] and way["version"] == "TLSv1.3" for way in ways)


def test_its_own_place_for_authorities_is_libpqs(team: Team, tmp_path: Path) -> None:
    """What lies in ~/.postgresql/root.crt is trusted without a word in the address."""
    team.present(team.ours.server(HOST))
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql/root.crt").write_bytes(team.ours.certificate)
    code, told = said("init", team.url(trusting=False), tmp_path)
    assert code == 0, told
