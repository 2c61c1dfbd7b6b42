"""Connections of the shared store: why there is none, and a server that says nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
import pytest

from artoo.agents.storage.transaction import Writing
from artoo.cluster.cluster import open_store
from artoo.contracts.errors import ConfigurationError, MemoryStoreError, StoreAway, StoreRefused
from artoo.memory.engines import engine_at
from artoo.store import pooled
from artoo.store.address import StoreAddress, parse
from artoo.store.connecting import connect
from artoo.store.pooled import without_limits
from artoo.store.schema import migrate
from postgres_server import Server

PATIENCE = 1.5


async def open_and_close(address: StoreAddress) -> None:
    async with await open_store(address, holder="here", patience=PATIENCE):
        pass


async def test_why_there_is_no_connection_is_said(store: StoreAddress, caplog: pytest.LogCaptureFixture) -> None:
    """A database that is not there is named, for the books and for memory, and not by the driver for each try."""
    missing = parse(store.url.replace("/test_", "/missing_"))
    with pytest.raises(StoreAway, match=r'database "missing_\d+" does not exist'):
        await open_and_close(missing)
    database = engine_at(missing)
    with pytest.raises(MemoryStoreError, match=r'database "missing_\d+" does not exist'):
        await asyncio.to_thread(database.read, lambda query: query.all("SELECT 1"))
    database.close()
    assert {record.name for record in caplog.records} == {"artoo.agents.storage.database"}


async def test_a_role_without_the_schema_is_told_that(postgres: Server, store: StoreAddress) -> None:
    """Who may not use the schema is not sent to make the tables, which are there."""
    with connect(store) as connection:
        connection.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(StoreRefused, match="lacks the right"):
        await open_and_close(parse(store.url.replace("postgres@", "stranger@")))


async def test_an_address_that_the_driver_cannot_read_is_an_error_of_settings(store: StoreAddress) -> None:
    """A parameter that libpq does not know is named."""
    with pytest.raises(ConfigurationError, match="nonsense"):
        await open_and_close(parse(f"{store.url}&nonsense=1"))


def test_a_store_is_made_in_utf8_only(postgres: Server, encoding: str = "SQL_ASCII") -> None:
    """Another encoding is refused before anything is made, with the statement that makes the right database."""
    name = f"in_{encoding.lower()}"
    with connect(postgres.address("postgres")) as connection:
        connection.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'".encode()
        )
    address = postgres.address(name)
    with pytest.raises(ConfigurationError, match=f"{encoding}.*ENCODING 'UTF8'"):
        migrate(address)
    with connect(address) as connection:
        assert connection.execute("SELECT FROM pg_namespace WHERE nspname = 'artoo'").fetchone() is None
    postgres.drop(address)


@contextmanager
def stopped_backends(store: StoreAddress) -> Generator[None]:
    """The server's processes that serve this store now stand still, as a paused container's do."""
    with connect(store) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    found = [int(row["pid"]) for row in rows]
    for each in found:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in found:
            os.kill(each, signal.SIGCONT)


async def test_a_server_that_says_nothing_is_left(store: StoreAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write whose server stands still goes on over another connection, and is done once."""
    monkeypatch.setattr(pooled.Connection, "silence_seconds", 1.0)

    def work(writing: Writing) -> None:
        writing.run("INSERT INTO marks (name, value) VALUES ('once', 'v')")

    async with await open_store(store, holder="here") as database:
        with stopped_backends(store):
            await asyncio.wait_for(database.write(work), 30)
        counted = "SELECT count(*) FROM marks WHERE name = 'once'"
        assert await database.read(lambda reading: reading.count(counted)) == 1


async def test_what_may_take_long_is_waited_for(store: StoreAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within `without_limits` a statement may be silent, and after it no more."""
    monkeypatch.setattr(pooled, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr(pooled.Connection, "silence_seconds", 0.3)

    def work() -> None:
        with connect(store) as connection, connection.transaction(), without_limits(connection):
            assert connection.execute("SHOW statement_timeout").fetchone() == {"statement_timeout": "0"}
            connection.execute("SELECT pg_sleep(1)")
        with connect(store) as connection, pytest.raises(psycopg.OperationalError, match="nothing"):
            connection.execute("SELECT pg_sleep(1)")

    await asyncio.to_thread(work)
