"""The team's database on its way from a home into a store, and back: every row, in one transaction, compared.

Not moved: arrivals (counters of one database), clock jumps (the store has one clock), seats and machines, and which
foreign agents can be written to (the configuration says it at every start). Times by which things wait are of the
home's steady clock there, and of the store's here. Files of submissions stay where they are: the tasks are marked
with the machine that has them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager, nullcontext
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.agents.storage.database import database_path
from artoo.agents.storage.sqlite import engine_of
from artoo.cluster.pg_transaction import NUMBERS
from artoo.contracts.errors import ActivityStoreError, ConfigurationError
from artoo.memory.moving import Memory
from artoo.runtime.app.machine_name import machine_name
from artoo.runtime.config.model import Config
from artoo.store.address import StoreAddress
from artoo.store.opened import opened
from artoo.store.parts import Cell, Counted, Counting, Part, Record
from artoo.store.pooled import without_limits
from artoo.store.query import Query

if TYPE_CHECKING:
    from artoo.store.opened import Connection

TABLES = {
    "agents": "name", "tasks": "id", "transitions": "position", "task_changes": "position", "mails": "position",
    "waits": "mail", "pulses": "position", "activity": "position", "observations": "position",
    "patterns": "agent, id", "foreign_tasks": "board_task", "foreign_messages": "board_task, number",
    "foreign_pushes": "board_task, id", "foreign_letters": "mail", "dreams": "position", "patrols": "agent, item",
    "events": "sequence", "marks": "name",
}  # fmt: skip
"""Everything that moves, each after what it refers to, and the order in which both sides read it."""

_BATCH = 5_000
"""Rows that are in memory at a time."""
_STEADY = {"queued_us", "lease_us", "until_us", "since_us"}
"""Columns in the home's steady time."""
_NUMBERS = {"position", "sequence", "number"}
_ANYTHING = "SELECT 1 FROM tasks UNION ALL SELECT 1 FROM agents UNION ALL SELECT 1 FROM mails LIMIT 1"
_HIGHEST = (
    "SELECT coalesce(max(n), 0) AS n FROM (SELECT max(position) AS n FROM transitions UNION ALL"
    " SELECT max(position) FROM task_changes UNION ALL SELECT max(queue) FROM tasks) AS given"
)


def parts(config: Config) -> tuple[Part, ...]:
    """Return all that moves of this home, in the order in which it does. Blocks. Raises ConfigurationError."""
    home = config.home.resolve()
    path = database_path(config.runtime.memory.episodic.activity_db, home)
    return (Books(path, machine_name(home)), Memory(config.memory_path))


class Books:
    """Implements `store.parts.Part`. `path`: the home's file; `machine`: this home's name in the store."""

    name = "books"

    def __init__(self, path: Path, machine: str) -> None:
        self._path = path
        self._machine = machine

    def in_home(self) -> tuple[Counted, ...]:
        """See Part."""
        if not self._path.exists():
            return ()
        with closing(engine_of(self._path)) as home:
            return home.read(lambda query: tuple(_counted(name, self._to_store(query, name)) for name in TABLES))

    def in_store(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        with _store(address) as connection:
            return tuple(_counted(name, _rows(connection, name, columns)) for name, columns in _known().items())

    def move_in(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        if not self._path.exists():
            return ()
        with closing(engine_of(self._path)) as home, _store(address, to_write=True) as connection:
            # Nothing is written in the home meanwhile.
            return home.write(lambda query: self._move_in(query, connection, address))

    def move_out(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        if self._path.exists():
            with closing(engine_of(self._path)) as home:
                _require_empty(not home.read(lambda query: query.all(_ANYTHING)), f"the home's file {self._path}")
        new = self._path.with_name(f"{self._path.name}.new")
        new.unlink(missing_ok=True)
        with closing(engine_of(new)) as home, _store(address) as connection:
            moved = home.write(lambda query: self._move_out(query, connection))
        new.replace(self._path)
        return moved

    def _move_in(self, home: Query, connection: Connection, address: StoreAddress) -> tuple[Counted, ...]:
        connection.execute("LOCK TABLE tasks, agents, mails IN EXCLUSIVE MODE")
        _require_empty(connection.execute(_ANYTHING).fetchone() is None, f"the store {address}")
        moved: list[Counted] = []
        for name in TABLES:
            columns, truths = _names(home, name), _truths(connection, name)
            marks = ", ".join(["%s"] * len(columns))
            insert = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})".encode()
            counting, records = Counting(name), self._to_store(home, name)
            with connection.cursor() as cursor:
                while batch := list(islice(records, _BATCH)):
                    counting.add(batch)
                    cursor.executemany(insert, [_with_truths(columns, record, truths) for record in batch])
            moved.append(_same(counting.counted(), _counted(name, _rows(connection, name, columns))))
        _count_on(connection)
        return tuple(moved)

    def _move_out(self, home: Query, connection: Connection) -> tuple[Counted, ...]:
        moved: list[Counted] = []
        for name in TABLES:
            columns = _names(home, name)
            insert = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            counting, records = Counting(name), _rows(connection, name, columns)
            while batch := list(islice(records, _BATCH)):
                counting.add(batch)
                home.many(insert, batch)
            moved.append(_same(counting.counted(), _counted(name, _own(home, name))))
        home.run("UPDATE tasks SET made_on = '' WHERE made_on = ?", (self._machine,))  # it is at home again
        highest = home.all(_HIGHEST)[0]["n"]
        home.run("UPDATE marks SET value = ? WHERE name = 'number'", (str(highest),))
        return tuple(moved)

    def _to_store(self, home: Query, name: str) -> Generator[Record]:
        """The home's rows with what changes: the clock that things wait by, and whose files a submission has."""
        ahead = int(home.all("SELECT ahead_us FROM steady")[0]["ahead_us"])
        columns = _names(home, name)
        for record in _own(home, name):
            row = dict(zip(columns, record, strict=True))
            for steady in _STEADY.intersection(row):
                waiting = row[steady]
                row[steady] = waiting - ahead if isinstance(waiting, int) else waiting
            if row.get("submission") and not row["made_on"]:
                row["made_on"] = self._machine
            yield tuple(row.values())


@contextmanager
def _store(address: StoreAddress, *, to_write: bool = False) -> Generator[Connection]:
    """One transaction. A role that is shown some of the rows only is refused, instead of moving those.

    Only what is written takes as long as it takes: who reads gives up on a server that says nothing.
    """
    with opened(address, "use", ActivityStoreError) as connection:
        connection.execute("SET row_security = off")
        with connection.transaction(), without_limits(connection) if to_write else nullcontext():
            if not to_write:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection


def _where(name: str) -> str:
    return "WHERE name NOT IN ('store', 'number')" if name == "marks" else ""


def _names(home: Query, name: str) -> list[str]:
    return [str(row["name"]) for row in home.all("SELECT name FROM pragma_table_info(?)", (name,))]


def _own(home: Query, name: str) -> Generator[Record]:
    columns, query = _names(home, name), f"SELECT * FROM {name} {_where(name)} ORDER BY {TABLES[name]}"
    for offset in count(0, _BATCH):  # quadratic: each batch walks over all before it
        rows = home.all(f"{query} LIMIT ? OFFSET ?", (_BATCH, offset))
        yield from (tuple(row[column] for column in columns) for row in rows)
        if len(rows) < _BATCH:
            return


def _truths(connection: Connection, name: str) -> set[str]:
    query = (
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema AND table_name = %s AND data_type = 'boolean'"
    )
    return {str(row["column_name"]) for row in connection.execute(query, (name,))}


def _with_truths(columns: list[str], record: Record, truths: set[str]) -> tuple[Cell | bool, ...]:
    return tuple(bool(cell) if name in truths else cell for name, cell in zip(columns, record, strict=True))


def _known() -> dict[str, list[str]]:
    """The columns of every table, as a new file has them: what else a store has is its own."""
    with tempfile.TemporaryDirectory() as folder, closing(engine_of(Path(folder) / "new.db")) as new:
        return new.read(lambda query: {name: _names(query, name) for name in TABLES})


def _rows(connection: Connection, name: str, columns: Iterable[str]) -> Generator[Record]:
    """The store's rows, in the order of SQLite, which compares texts by their bytes."""
    order = ", ".join(at if at in _NUMBERS else f'{at} COLLATE "C"' for at in TABLES[name].split(", "))
    query = f"SELECT {', '.join(columns)} FROM {name} {_where(name)} ORDER BY {order}"
    with connection.cursor(f"read_{name}") as cursor:  # the server keeps what was not fetched yet
        cursor.itersize = _BATCH
        for row in cursor.execute(query.encode()):
            yield tuple(_plain(cell) for cell in row.values())


def _plain(cell: object) -> Cell:
    if isinstance(cell, bool):
        return int(cell)
    if cell is None or isinstance(cell, str | int | float | bytes):
        return cell
    raise AssertionError(f"no column has {type(cell)}")


def _counted(name: str, records: Iterable[Record]) -> Counted:
    counting = Counting(name)
    counting.add(records)
    return counting.counted()


def _same(sent: Counted, found: Counted) -> Counted:
    if sent != found:
        raise ActivityStoreError(
            f"{sent.table}: {sent.rows} rows ({sent.sha256[:12]}) were sent, {found.rows} ({found.sha256[:12]}) are"
            " there; nothing was changed. Please report this."
        )
    return sent


def _require_empty(empty: bool, what: str) -> None:
    if not empty:
        raise ConfigurationError(
            f"{what} has books already; nothing was changed. They can only move to where none are."
        )


def _count_on(connection: Connection) -> None:
    """New rows come after those that were moved."""
    given = f"1 + ({_HIGHEST}) / {NUMBERS}"
    connection.execute(f"SELECT setval('numbers', greatest((SELECT last_value FROM numbers), {given}))".encode())
    for name, order in TABLES.items():
        if order in ("position", "sequence") and name not in ("transitions", "task_changes"):
            connection.execute(
                f"SELECT setval(pg_get_serial_sequence('{name}', '{order}'), max({order})) FROM {name}"
                f" HAVING max({order}) IS NOT NULL".encode()
            )
