"""Setting a store up and upgrading it, on a real server."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from artoo.contracts.errors import ConfigurationError
from artoo.store import schema
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect, explanation
from artoo.store.schema import SchemaStep, check, migrate
from postgres_server import Server


def test_a_store_is_set_up_once_by_many_at_once(postgres: Server) -> None:
    """Six programs that set the same store up make every step once, and none fails."""
    address, made, failed = postgres.new_database("template0"), list[tuple[str, ...]](), list[Exception]()

    def set_up() -> None:
        try:
            made.append(migrate(address))
        except (psycopg.Error, ConfigurationError) as error:
            failed.append(error)

    threads = [threading.Thread(target=set_up) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(made) == [(), (), (), (), (), tuple(step.name for step in schema.steps())]
    with connect(address) as connection:
        check(connection, address)
    postgres.drop(address)


def test_a_store_that_is_not_set_up_says_how(postgres: Server) -> None:
    """A program that meets an empty database names the command that sets it up."""
    address = postgres.new_database("template0")
    with connect(address) as connection, pytest.raises(ConfigurationError, match="artoo store init"):
        check(connection, address)
    postgres.drop(address)


def test_an_older_program_refuses_a_newer_store(store: StoreAddress) -> None:
    """A store that a newer artoo has upgraded is left alone, with both numbers named."""
    with connect(store) as connection:
        connection.execute("INSERT INTO artoo_schema VALUES (9999, '9999_later', 'x')")
        with pytest.raises(ConfigurationError, match=r"newer artoo \(schema 9999"):
            check(connection, store)
    with pytest.raises(ConfigurationError, match="newer"):
        migrate(store)


def test_a_step_that_is_another_programs_is_named(store: StoreAddress) -> None:
    """A step of one number with another text means another program: refused, not guessed at."""
    with connect(store) as connection:
        connection.execute("UPDATE artoo_schema SET sha256 = 'another' WHERE version = 1")
        with pytest.raises(ConfigurationError, match="0001_base is not the one"):
            check(connection, store)


def test_an_upgrade_that_fails_changes_nothing(store: StoreAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails takes those before it back, and the store works as before."""
    later = (
        SchemaStep(9001, "9001_good", "CREATE TABLE good (x int)"),
        SchemaStep(9002, "9002_bad", "CREATE TABLE nonsense ("),
    )
    before = schema.steps()
    monkeypatch.setattr(schema, "steps", lambda: before + later)
    with pytest.raises(psycopg.Error):
        migrate(store)
    monkeypatch.setattr(schema, "steps", lambda: before)
    with connect(store) as connection:
        check(connection, store)
        assert connection.execute("SELECT to_regclass('artoo.good') AS there").fetchone() == {"there": None}


def test_an_older_store_is_upgraded_by_its_owner_only(store: StoreAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer program names what the store lacks, and `migrate` makes just that."""
    before = schema.steps()
    monkeypatch.setattr(
        schema, "steps", lambda: (*before, SchemaStep(9001, "9001_more", "CREATE TABLE more (x int)"))
    )
    with connect(store) as connection:
        with pytest.raises(ConfigurationError, match="9001_more"):
            check(connection, store)
        assert migrate(store) == ("9001_more",)
        check(connection, store)


def test_a_worker_may_work_and_no_more(store: StoreAddress) -> None:
    """The worker's role reads and writes rows; it makes no tables, drops none, and forges no schema's version."""
    with connect(store) as connection:
        connection.execute("SET ROLE artoo_worker")
        connection.execute(
            "INSERT INTO machines (id, name, program, first_seen_us, last_seen_us) VALUES ('m', 'm', '1', 1, 1)"
        )
        for forbidden in (
            "CREATE TABLE mine (x int)",
            "DROP TABLE machines",
            "UPDATE artoo_schema SET version = 0",
            "TRUNCATE machines",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden.encode())


def test_a_reader_changes_nothing(store: StoreAddress) -> None:
    """The reader's role sees rows and writes none."""
    with connect(store) as connection:
        connection.execute("SET ROLE artoo_reader")
        assert connection.execute("SELECT * FROM machines").fetchall() == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM machines")


def test_a_store_that_is_away_is_explained(tmp_path: Path) -> None:
    """No server behind the address: the message has the address and what to do."""
    from artoo.store.address import parse

    address = parse(f"postgresql:///artoo?host={tmp_path}")
    with pytest.raises(psycopg.OperationalError) as away:
        connect(address)
    assert str(tmp_path) in explanation(address, "reach", away.value)
    assert "Check that it runs" in explanation(address, "reach", away.value)


_BRIEF = """
import sys, time
sys.path[:0] = sys.argv[1:]
from postgres_server import Server
server = Server.start()
print(server.folder, server._process.pid, flush=True)
time.sleep(600)
"""
