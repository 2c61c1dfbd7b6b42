"""The query layer: the same statements on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from artoo.store.postgres import PostgresEngine
from artoo.store.query import Engine, Query, StoreFailure, typed
from artoo.store.sqlite import Schema, SqliteEngine

TABLE = "CREATE TABLE things (name TEXT PRIMARY KEY, raw BYTES, flag BOOLEAN, total EXACT, number BIGINT)"
SCHEMA = Schema("the test database", 0x54455354, (TABLE,))
PUT = "INSERT INTO things (name, raw, flag, total, number) VALUES (?, ?, ?, ?, ?)"


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Engine]:
    """An empty database."""
    if request.param == "sqlite":
        opened: Engine = SqliteEngine(tmp_path / "things.db", SCHEMA)
    else:
        address = request.getfixturevalue("store")
        assert isinstance(address, StoreAddress)
        with connect(address) as connection:
            connection.execute(typed(TABLE, "postgresql").encode())
        opened = PostgresEngine(address)
    yield opened
    opened.close()


def put(query: Query, *names: str, number: int = 0) -> None:
    """Stores things."""
    query.many(PUT, [(name, name.encode(), True, query.exact(0), number) for name in names])


def names(engine: Engine) -> list[str]:
    """What is stored, in order."""
    return [row["name"] for row in engine.read(lambda query: query.all("SELECT name FROM things ORDER BY name"))]


def test_values_come_back_as_they_went(engine: Engine) -> None:
    """Text, bytes with a zero, truth values and nothing, under both signs for parameters."""
    engine.write(lambda query: query.run(PUT, ("50 % é", b"\0\xff", False, None, 2**62)))
    row = engine.read(lambda query: query.one("SELECT * FROM things WHERE name = :name", {"name": "50 % é"}))
    assert row is not None
    assert (row["name"], bytes(row["raw"]), bool(row["flag"]), row["total"], row["number"]) == (
        *("50 % é", b"\0\xff", False),
        *(None, 2**62),
    )
    assert engine.read(lambda query: query.one("SELECT * FROM things WHERE name = ?", ("none",))) is None


def test_one_question_for_many(engine: Engine) -> None:
    """The rows of each set of parameters, in their order, with empty ones."""
    engine.write(lambda query: put(query, "a", "b"))
    asked = [("b",), ("x",), ("a",)]
    found = engine.read(lambda query: query.each("SELECT name FROM things WHERE name = ?", asked))
    assert [[row["name"] for row in rows] for rows in found] == [["b"], [], ["a"]]


def test_a_transaction_that_raises_changes_nothing(engine: Engine) -> None:
    """All of it, or nothing; the engine is usable afterwards."""

    def half(query: Query) -> None:
        put(query, "a")
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        engine.write(half)
    engine.write(lambda query: put(query, "b"))
    assert names(engine) == ["b"]


def test_a_reader_sees_one_moment(engine: Engine) -> None:
    """What another transaction commits meanwhile is not seen by a read that has begun."""

    def twice(query: Query) -> tuple[int, int]:
        before = len(query.all("SELECT name FROM things"))
        with ThreadPoolExecutor(1) as other:
            other.submit(engine.write, lambda query: put(query, "late")).result()
        return before, len(query.all("SELECT name FROM things"))

    assert engine.read(twice) == (0, 0)
    assert names(engine) == ["late"]


def test_exact_sums_depend_on_no_order(engine: Engine) -> None:
    """Numbers of 150 bits are added and taken away without a rest, whatever the order."""
    shares = [3**number * (-1) ** number for number in range(0, 96, 5)]

    def total(listed: Sequence[int]) -> int:
        def work(query: Query) -> int:
            query.run("DELETE FROM things")
            put(query, "sum")
            for share in listed:
                more = query.exact_sum("total", "?")
                query.run(f"UPDATE things SET total = {more} WHERE name = 'sum'", (query.exact(share),))
            row = query.one("SELECT total FROM things")
            assert row is not None
            return int(row["total"])

        return engine.write(work)

    assert total(shares) == total(shares[::-1]) == sum(shares)
    assert total([*shares, *(-share for share in shares)]) == 0


def test_no_update_is_lost(engine: Engine) -> None:
    """Rows that are read to be changed are held: forty increments by eight threads make forty."""
    engine.write(lambda query: put(query, "a"))

    def increment(_: int) -> None:
        def work(query: Query) -> None:
            row = query.one(query.holding("SELECT number FROM things WHERE name = 'a'", "wait"))
            assert row is not None
            query.run("UPDATE things SET number = ? WHERE name = 'a'", (row["number"] + 1,))

        engine.write(work)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(increment, range(40)))
    row = engine.read(lambda query: query.one("SELECT number FROM things"))
    assert row is not None and row["number"] == 40


def test_what_is_done_alone_is_not_done_together(engine: Engine) -> None:
    """Transactions that asked for the same thing follow each other."""
    inside, most = itertools.count(), [0]
    under_way = threading.Semaphore(1)

    def work(query: Query) -> None:
        query.alone("tidying")
        if not under_way.acquire(blocking=False):
            most[0] += 1
        next(inside)
        time.sleep(0.01)
        under_way.release()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(engine.write, [work] * 8))
    assert most == [0] and next(inside) == 8


def test_both_have_a_clock(engine: Engine) -> None:
    """Microseconds since 1970."""
    row = engine.read(lambda query: query.one("SELECT now_us() AS us"))
    assert row is not None and abs(row["us"] / 1e6 - time.time()) < 60


def test_what_contradicts_the_data_is_told_from_an_outage(engine: Engine) -> None:
    """A second row of one key is the change's own fault; a closed engine is away."""
    engine.write(lambda query: put(query, "a"))
    with pytest.raises(StoreFailure) as contradiction:
        engine.write(lambda query: put(query, "a"))
    engine.close()
    with pytest.raises(StoreFailure) as closed:
        names(engine)
    assert (contradiction.value.kind, closed.value.kind) == ("data", "away")


WRITING = """
import sys
from pathlib import Path
from artoo.store.sqlite import Schema, SqliteEngine
engine = SqliteEngine(Path(sys.argv[1]), Schema("the test database", 0x54455354, (sys.argv[2],)))
for number in range(1_000_000):
    engine.write(lambda query: query.many(
        "INSERT INTO things (name, number) VALUES (?, 1)", [(f"{sys.argv[3]} {number} {half}",) for half in "ab"]
    ))
    print(number, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_it_was_told_is_there(tmp_path: Path) -> None:
    """Two processes write and are killed: what returned is there, whole transactions only, and others go on."""
    file = tmp_path / "things.db"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITING, str(file), TABLE, name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    told = list[int]()
    for writer in writers:
        assert writer.stdout is not None
        told.append(int([writer.stdout.readline() for _ in range(20)][-1]))
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
    engine = SqliteEngine(file, SCHEMA)
    engine.write(lambda query: put(query, "three"))
    found = set(names(engine))
    for name, last in zip(("one", "two"), told, strict=True):
        assert {f"{name} {number} {half}" for number in range(last + 1) for half in "ab"} <= found
    assert len(found) % 2 == 1  # pairs, and the third
    engine.close()


def test_a_file_is_upgraded_and_a_newer_one_refused(tmp_path: Path) -> None:
    """A step that is missing is made; a file that knows more steps is left alone."""
    file = tmp_path / "things.db"
    SqliteEngine(file, SCHEMA).close()
    newer = Schema(SCHEMA.name, SCHEMA.application, (TABLE, "ALTER TABLE things ADD COLUMN more TEXT"))
    upgraded = SqliteEngine(file, newer)
    assert upgraded.read(lambda query: query.all("SELECT more FROM things")) == []
    upgraded.close()
    with pytest.raises(StoreFailure, match="newer artoo"):
        SqliteEngine(file, SCHEMA)


@pytest.mark.parametrize("content", [b"not a database" * 1_000, None])
def test_what_is_no_file_of_ours_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """Rubbish, and another program's database, are named and left as they are."""
    file = tmp_path / "things.db"
    if content is None:
        SqliteEngine(file, Schema("other", 1, ("CREATE TABLE other (x)",))).close()
    else:
        file.write_bytes(content)
    before = file.read_bytes()
    with pytest.raises(StoreFailure, match=r"no database|other program"):
        SqliteEngine(file, SCHEMA)
    assert file.read_bytes() == before
