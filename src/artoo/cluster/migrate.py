"""`artoo store import` and `export`, which copy all tables in one transaction and compare the hashes.

Some tables are not copied: arrivals (which are counters of one database), clock jumps (the store has only one
clock), seats and machines, and the foreign agents to which letters can be written (the configuration names them at
every start). Queue times and leases are converted. In a home they use the steady clock of the home, and in a store
the clock of the store. The files of submissions are not moved. The tasks are therefore marked with the machine that
has these files.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from artoo.agents.storage.database import database_path, engine_of, failed, schema
from artoo.agents.storage.transaction import NUMBERS
from artoo.contracts.errors import ActivityStoreError, ConfigurationError
from artoo.memory.engines import engine_at, has_memory
from artoo.memory.tables import SCHEMA as MEMORY_SCHEMA
from artoo.runtime.app.machine_name import machine_name
from artoo.runtime.config.model import Config
from artoo.store.address import StoreAddress
from artoo.store.postgres import PostgresEngine
from artoo.store.query import Engine, Query, Row, Value

TEAM = {
    "agents": "name", "tasks": "id", "transitions": "position", "task_changes": "position", "mails": "position",
    "waits": "mail", "pulses": "position", "activity": "position", "observations": "position",
    "patterns": "agent, id", "foreign_tasks": "board_task", "foreign_messages": "board_task, number",
    "foreign_pushes": "board_task, id", "foreign_letters": "mail", "dreams": "position", "patrols": "agent, item",
    "events": "sequence", "marks": "name",
}  # fmt: skip
"""The tables of the team, and the columns by which their rows are sorted for reading. A table comes after the
tables to which it refers."""
MEMORY = {
    "memory_megrams": "id", "memory_sums": "space, entity, k, epoch, kind", "memory_recalled": "id",
    "memory_worked": "intent, space, entity", "memory_marks": "name", "memory_reports": "id",
    "memory_proposals": "id",
}  # fmt: skip

_BATCH = 5_000
"""Maximum number of rows that are in memory at the same time."""
_STEADY = {"queued_us", "lease_us", "until_us", "since_us"}
"""Columns with times of the home's steady clock."""
_TRUTHS = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = current_schema AND table_name = ? AND data_type = 'boolean'"
)
_HIGHEST = (
    "SELECT coalesce(max(n), 0) AS n FROM (SELECT max(position) AS n FROM transitions UNION ALL"
    " SELECT max(position) FROM task_changes UNION ALL SELECT max(queue) FROM tasks) AS given"
)

Record = tuple[Value, ...]
Change = Callable[[dict[str, Value]], dict[str, Value]]


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of rows of one table, and the hash of all its rows in their order."""

    table: str
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Part:
    """One group of the home's tables. Its methods block, and raise ArtooError.

    `machine`: the name of this home in the store.
    """

    name: str
    tables: Mapping[str, str]
    open: Callable[[], Engine]
    exists: Callable[[], bool]
    machine: str = ""

    def in_home(self) -> tuple[Counted, ...]:
        """Count and hash the rows in the home. Returns an empty tuple if the home does not have these tables."""
        if not self.exists():
            return ()
        with closing(self.open()) as home:
            return home.read(lambda query: self._counted(query, self._to_store(query)))

    def in_store(self, address: StoreAddress) -> tuple[Counted, ...]:
        """Count and hash the rows in the store. Returns an empty tuple if these tables of the store have no
        rows."""
        with closing(_engine(address)) as store:
            found = store.read(lambda query: self._counted(_whole(query)))
        return found if any(one.rows for one in found) else ()

    def move_in(self, address: StoreAddress) -> tuple[Counted, ...]:
        """Copy the rows of the home into the store, in one transaction. The tables of the store must be empty."""
        if not self.exists():
            return ()
        with closing(self.open()) as home, closing(_engine(address)) as store:

            def copied(source: Query, target: Query) -> tuple[Counted, ...]:
                target.keep_out(", ".join(self.tables))
                moved = self._copied(source, _whole(target), f"the store {address}", self._to_store(source))
                self._count_on(target)
                return moved

            # A write transaction on the home keeps other processes from writing during the copy.
            return home.write(lambda source: store.write(lambda target: copied(source, target)))

    def move_out(self, address: StoreAddress) -> tuple[Counted, ...]:
        """Copy the rows of the store into the home, in one transaction. The tables of the home must be empty."""
        if not self.in_store(address):
            return ()
        with closing(self.open()) as home, closing(_engine(address)) as store:

            def copied(source: Query, target: Query) -> tuple[Counted, ...]:
                moved = self._copied(_whole(source), target, "this home")
                # In a home, an empty `made_on` means that the files of the submission are here.
                if self.tables is TEAM:
                    target.run("UPDATE tasks SET made_on = '' WHERE made_on = ?", (self.machine,))
                    highest = target.all(_HIGHEST)[0]["n"]
                    target.run("UPDATE marks SET value = ? WHERE name = 'number'", (str(highest),))
                return moved

            return store.read(lambda source: home.write(lambda target: copied(source, target)))

    def _copied(
        self, source: Query, target: Query, where: str, change: Change | None = None
    ) -> tuple[Counted, ...]:
        if any(one.rows for one in self._counted(target)):
            raise ConfigurationError(
                f"{where} has {self.name} already; nothing was changed. They can only move to where none are."
            )
        for table, order in self.tables.items():
            for rows in _batches(source, table, order, change):
                names, truths = list(rows[0]), _truths(target, table)
                insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
                target.many(insert, [_with_truths(row, truths) for row in rows])
        sent, arrived = self._counted(source, change), self._counted(target)
        for one, other in zip(sent, arrived, strict=True):
            if one != other:
                raise ActivityStoreError(
                    f"{one.table}: {one.rows} rows were read, {other.rows} written, or they differ; nothing was"
                    " moved. Please report this."
                )
        return arrived

    def _counted(self, query: Query, change: Change | None = None) -> tuple[Counted, ...]:
        return tuple(_count(query, table, order, change) for table, order in self.tables.items())

    def _to_store(self, home: Query) -> Change | None:
        """Return the function that converts the rows of a home for the store. It converts steady times, and adds
        the machine that has the files."""
        if self.tables is not TEAM:
            return None
        ahead = int(home.all("SELECT ahead_us FROM steady")[0]["ahead_us"])

        def change(row: dict[str, Value]) -> dict[str, Value]:
            for steady in _STEADY.intersection(row):
                waiting = row[steady]
                row[steady] = waiting - ahead if isinstance(waiting, int) else waiting
            if row.get("submission") and not row["made_on"]:
                row["made_on"] = self.machine
            return row

        return change

    def _count_on(self, store: Query) -> None:
        """Advance the sequences of the store past the rows that were copied."""
        if self.tables is not TEAM:
            return
        given = f"1 + ({_HIGHEST}) / {NUMBERS}"
        store.all(f"SELECT setval('numbers', greatest((SELECT last_value FROM numbers), {given}))")
        for name, order in TEAM.items():
            if order in ("position", "sequence") and name not in ("transitions", "task_changes"):
                store.all(
                    f"SELECT setval(pg_get_serial_sequence('{name}', '{order}'), max({order})) FROM {name}"
                    f" HAVING max({order}) IS NOT NULL"
                )


def parts(config: Config) -> tuple[Part, ...]:
    """Return the groups of tables of this home, in the order in which they are copied. Blocks. Raises
    ConfigurationError."""
    home = config.home.resolve()
    path = database_path(config.runtime.memory.episodic.activity_db, home)
    return (team(path, machine_name(home)), memory(config.memory_path))


def team(path: Path, machine: str) -> Part:
    """Return the tables of the team's database."""
    return Part("books", TEAM, lambda: engine_of(path), path.exists, machine)


def memory(directory: Path) -> Part:
    """Return the tables of shared memory."""
    return Part("memory", MEMORY, lambda: engine_at(directory), lambda: has_memory(directory))


def _engine(address: StoreAddress) -> Engine:
    return PostgresEngine(address, failed)


def _whole(query: Query) -> Query:
    """Make the query fail if the database role may see only some of the rows, so that no incomplete copy is
    made."""
    query.run("SET LOCAL row_security = off")
    return query


def _count(query: Query, table: str, order: str, change: Change | None) -> Counted:
    rows, total = 0, hashlib.sha256()
    for batch in _batches(query, table, order, change):
        rows += len(batch)
        for row in batch:
            total.update(orjson.dumps([row[name] for name in sorted(row)], default=bytes.hex) + b"\n")
    return Counted(table.removeprefix("memory_"), rows, total.hexdigest())


def _batches(query: Query, table: str, order: str, change: Change | None) -> Generator[list[dict[str, Value]]]:
    """Yield the rows in batches. They are in the order of SQLite, which compares texts by their bytes."""
    columns = _columns()[table]
    texts = {name for name, kind in columns.items() if kind == "TEXT" and query.dialect == "postgresql"}
    by = ", ".join(f'{name} COLLATE "C"' if name in texts else name for name in order.split(", "))
    where = "WHERE name NOT IN ('store', 'number')" if table == "marks" else ""
    sql = f"SELECT {', '.join(columns)} FROM {table} {where} ORDER BY {by} LIMIT ? OFFSET ?"
    # The total time grows with the square of the number of rows, because OFFSET skips all earlier rows in each
    # batch.
    for offset in count(0, _BATCH):
        rows = [_plain(row) for row in query.all(sql, (_BATCH, offset))]
        if rows:
            yield rows if change is None else list(map(change, rows))
        if len(rows) < _BATCH:
            return


@cache
def _columns() -> dict[str, dict[str, str]]:
    """Return the columns of each table and their types, as they are in a new home. Columns that only a store has
    are not copied."""
    with closing(sqlite3.connect(":memory:")) as new:
        for step in (*schema().steps, *MEMORY_SCHEMA.steps):
            new.executescript(step)
        described = {table: new.execute(f"PRAGMA table_info({table})").fetchall() for table in (*TEAM, *MEMORY)}
    return {table: {row[1]: row[2] for row in rows} for table, rows in described.items()}


def _truths(query: Query, table: str) -> set[str]:
    """Return the boolean columns of a table. Return none for SQLite."""
    if query.dialect == "sqlite":
        return set()
    return {str(row["column_name"]) for row in query.all(_TRUTHS, (table,))}


def _with_truths(row: dict[str, Value], truths: set[str]) -> Record:
    return tuple(bool(cell) if name in truths else cell for name, cell in row.items())


def _plain(row: Row) -> dict[str, Value]:
    """Convert a row so that rows of both databases can be compared. Booleans become 0 and 1, and decimals become
    text."""
    found: dict[str, Any] = {name: row[name] for name in row.keys()}  # noqa: SIM118 - SQLite's rows give values
    for name, cell in found.items():
        if isinstance(cell, bool):
            found[name] = int(cell)
        elif isinstance(cell, Decimal):
            found[name] = str(int(cell))
    return found
