"""A store beyond this machine is reached by TLS with a verified certificate, by default: with a real server."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner

from artoo.agents.board.board import Board
from artoo.cli.commands.team.store_command import store
from artoo.cluster.cluster import open_store
from artoo.contracts.agents import OPERATOR
from artoo.runtime.app.system import UuidIds
from artoo.store.address import parse
from board_work import take
from tls_server import HOST, TlsServer, tls_server


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Generator[TlsServer]:
    """A server of its own, in the place of this process."""
    with tls_server(tmp_path_factory.mktemp("authorities")) as server:
        yield server


def said(command: str, url: str, home: Path) -> tuple[int, str]:
    """What `artoo store COMMAND URL` says, in a home of its own."""
    environ = {"ARTOO_HOME": str(home), "HOME": str(home), "PGSSLROOTCERT": None}
    ended = CliRunner().invoke(store, [command, url], env=environ)
    return ended.exit_code, f"{ended.output} {ended.exception or ''}"


@pytest.mark.parametrize("command", ["init", "check"])
def test_what_is_not_the_stores_certificate_is_refused(
    team: TlsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Another name's, a stranger's, one that has ended, none at all, and no authority to go by: nothing is sent."""
    monkeypatch.setattr("artoo.store.postgres.WAITING_SECONDS", 0.5)
    failed = "certificate verify failed"
    refused = [
        ("does not match host name", team.ours.server("other.example.org")),
        (failed, team.strangers.server(HOST)),
        (failed, team.ours.server(HOST, days=-1)),
        ("does not support SSL", None),
    ]
    for why, certificate in refused:
        team.present(certificate)
        code, told = said(command, team.url(), tmp_path)
        assert code != 0
        assert why in told and HOST in told
    team.present(team.ours.server(HOST))
    assert failed in said(command, team.url(trusting=False), tmp_path)[1]
    assert "does not exist" in said(command, team.url("sslrootcert=/nowhere.pem", trusting=False), tmp_path)[1]


async def test_with_the_right_authority_everything_goes_over_it(team: TlsServer, tmp_path: Path) -> None:
    """`store init` and `check`, and the books with claims and notifications, each connection by TLS."""
    team.present(team.ours.server(HOST))
    for command in ("init", "check"):
        code, told = said(command, team.url(), tmp_path)
        assert code == 0, told
    async with await open_store(parse(team.url()), holder="m0/1/2/3/4") as database:
        database.on_written(lambda: None)
        board = Board(database, UuidIds())
        await take(database, (await board.add("by TLS", OPERATOR)).id, OPERATOR)
        ways = await database.read(
            lambda reading: reading.all(
                "SELECT ssl, version FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                " WHERE application_name = 'artoo'"
            )
        )
        assert ways and all(way["ssl"] and way["version"] == "TLSv1.3" for way in ways)


def test_its_own_place_for_authorities_is_libpqs(team: TlsServer, tmp_path: Path) -> None:
    """What lies in ~/.postgresql/root.crt is trusted without a word in the address."""
    team.present(team.ours.server(HOST))
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql/root.crt").write_bytes(team.ours.certificate)
    code, told = said("init", team.url(trusting=False), tmp_path)
    assert code == 0, told
