"""The books on their way from a home into a store, and back: every row, in one transaction, compared by hash.

Not moved: arrivals (counters of one database), clock jumps (the store has one clock), seats and machines, and which
foreign agents can be written to (the configuration says it at every start). Times by which things wait are of the
home's steady clock there, and of the store's here. Files of submissions stay where they are: the tasks are marked
with the machine that has them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.agents.storage.pg_transaction import NUMBERS
from artoo.agents.storage.sqlite_open import connect as connect_file
from artoo.agents.storage.sqlite_open import explained
from artoo.contracts.errors import ActivityStoreError, ConfigurationError
from artoo.store.address import StoreAddress
from artoo.store.opened import opened
from artoo.store.parts import Cell, Counted, Counting, Record
from artoo.store.pooled import without_limits

if TYPE_CHECKING:
    from artoo.store.opened import Connection

_BATCH = 1_000
_BUSY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Table:
    """`order` makes both sides read alike; `steady` names columns in the home's steady time."""

    name: str
    columns: tuple[str, ...]
    order: str
    steady: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()
    where: str = ""

    @property
    def select(self) -> str:
        """All rows in their order."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name} {self.where} ORDER BY {self.order}"


def _table(name: str, columns: str, order: str, *, steady: str = "", truths: str = "", where: str = "") -> _Table:
    return _Table(name, tuple(columns.split()), order, tuple(steady.split()), tuple(truths.split()), where)


TABLES = (
    _table(
        "agents", "name trust paused stopped retired identity_sha256 created_at_us updated_at_us", "name",
        truths="paused retired",
    ),
    _table(
        "tasks",
        "id state priority complexity assignee reviewer creator open_to_all project run submission resumable queue"
        " queued_us interruptions epoch made_on claim claimant holder lease_us created_at_us updated_at_us text"
        " notes summary",
        "id",
        steady="queued_us lease_us",
        truths="open_to_all resumable",
    ),
    _table(
        "transitions", "position event board_task before after actor reason by_policy at_us epoch", "position",
        truths="by_policy",
    ),
    _table("task_changes", "position event board_task change actor detail at_us", "position"),
    _table(
        "mails",
        "position id sender recipient priority requires_reply in_reply_to sent_at_us partition queued_us"
        " archived_at_us note attempts epoch claim holder lease_us text",
        "position",
        steady="queued_us lease_us",
        truths="requires_reply",
    ),
    _table("waits", "mail waiting recipient holder until_us reply", "mail", steady="until_us"),
    _table(
        "pulses", "position agent number due_at_us last_due_at_us at_us outcome why count llm_calls", "position"
    ),
    _table(
        "activity", "position id agent kind board_task mail run summary detail consolidated at_us", "position",
        truths="consolidated",
    ),
    _table("observations", "position id agent text pattern activity counted at_us", "position", truths="counted"),
    _table(
        "patterns", "agent id pattern text wording seen promoted first_at_us last_at_us", "agent, id",
        truths="promoted",
    ),
    _table(
        "foreign_tasks",
        "board_task peer agent message context trust calls tokens seconds money heard at_us",
        "board_task",
    ),
    _table("foreign_messages", "peer agent message board_task number at_us text", "board_task, number"),
    _table("foreign_pushes", "board_task id told target", "board_task, id"),
    _table("foreign_letters", "mail task at_us", "mail"),
    _table("dreams", "position agent report pending at_us", "position"),
    _table("patrols", "agent item last_at_us seen open_key", "agent, item"),
    _table("events", "sequence role subject kind payload holder since_us", "sequence", steady="since_us"),
    _table("marks", "name value", "name", where="WHERE name NOT IN ('store', 'number')"),
)  # fmt: skip
"""Everything that moves, each after what it refers to."""

_COUNTED_ON = {"mails", "pulses", "activity", "observations", "dreams"}
"""Tables whose `position` the engine gives."""


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
        with explained(self._path, "read"), closing(connect_file(self._path, _BUSY_SECONDS)) as file:
            file.execute("BEGIN")
            return tuple(_counted(table, _read_file(file, table, self._to_store(file, table))) for table in TABLES)

    def in_store(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        with _store(address) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return tuple(_counted(table, _read_store(connection, table)) for table in TABLES)

    def move_in(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        if not self._path.exists():
            return ()
        with (
            explained(self._path, "read"),
            closing(connect_file(self._path, _BUSY_SECONDS)) as file,
            _store(address) as connection,
            connection.transaction(),
            without_limits(connection),
        ):
            file.execute("BEGIN IMMEDIATE")  # nothing is written in the home meanwhile
            connection.execute("LOCK TABLE tasks, agents, mails IN EXCLUSIVE MODE")
            _require_empty(connection.execute(_ANYTHING).fetchone() is None, f"the store {address}")
            moved = tuple(self._move_in(file, connection, table) for table in TABLES)
            _count_on(connection)
            file.execute("ROLLBACK")
            return moved

    def move_out(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        new = self._path.with_name(f"{self._path.name}.new")
        if self._path.exists():
            with explained(self._path, "read"), closing(connect_file(self._path, _BUSY_SECONDS)) as file:
                _require_empty(file.execute(_ANYTHING).fetchone() is None, f"the home's file {self._path}")
        new.unlink(missing_ok=True)
        with (
            explained(new, "write to"),
            closing(connect_file(new, _BUSY_SECONDS)) as file,
            _store(address) as connection,
            connection.transaction(),
        ):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            file.execute("BEGIN IMMEDIATE")
            moved = tuple(self._move_out(connection, file, table) for table in TABLES)
            highest = file.execute(
                "SELECT max(n) FROM (SELECT max(position) AS n FROM transitions UNION ALL"
                " SELECT max(position) FROM task_changes UNION ALL SELECT max(queue) FROM tasks)"
            ).fetchone()[0]
            file.execute("UPDATE marks SET value = ? WHERE name = 'number'", (str(highest or 0),))
            file.execute("COMMIT")
        new.replace(self._path)
        return moved

    def _move_in(self, file: sqlite3.Connection, connection: Connection, table: _Table) -> Counted:
        counting, change = Counting(table.name), self._to_store(file, table)
        marks = ", ".join(["%s"] * len(table.columns))
        insert = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})".encode()
        truths = [table.columns.index(name) for name in table.truths]
        with connection.cursor() as cursor:
            for batch in _read_file(file, table, change):
                counting.add(batch)
                cursor.executemany(insert, [_with_truths(record, truths) for record in batch])
        return _same(counting.counted(), _counted(table, _read_store(connection, table)))

    def _move_out(self, connection: Connection, file: sqlite3.Connection, table: _Table) -> Counted:
        counting, marks = Counting(table.name), ", ".join("?" * len(table.columns))
        insert = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})"
        for batch in _read_store(connection, table):
            counting.add(batch)
            file.executemany(insert, batch)
        same = _same(counting.counted(), _counted(table, _read_file(file, table, lambda record: record)))
        if table.name == "tasks":  # what this machine made is at home again
            file.execute("UPDATE tasks SET made_on = '' WHERE made_on = ?", (self._machine,))
        return same

    def _to_store(self, file: sqlite3.Connection, table: _Table) -> Callable[[Record], Record]:
        """What changes in a row of the home: the clock that things wait by, and whose files a submission has."""
        ahead = int(file.execute("SELECT ahead_us FROM steady").fetchone()[0])
        shifted = {table.columns.index(name) for name in table.steady}
        made = table.columns.index("made_on") if table.name == "tasks" else None
        submitted = table.columns.index("submission") if table.name == "tasks" else None

        def change(record: Record) -> Record:
            cells: list[Cell] = [
                cell - ahead if place in shifted and isinstance(cell, int) else cell
                for place, cell in enumerate(record)
            ]
            if made is not None and submitted is not None and record[submitted] and not record[made]:
                cells[made] = self._machine
            return tuple(cells)

        return change


_ANYTHING = "SELECT 1 FROM tasks UNION ALL SELECT 1 FROM agents UNION ALL SELECT 1 FROM mails LIMIT 1"


@contextmanager
def _store(address: StoreAddress) -> Generator[Connection]:
    """A role that is shown some of the rows only is refused, instead of moving those."""
    with opened(address, "use", ActivityStoreError) as connection:
        connection.execute("SET row_security = off")
        yield connection


def _read_file(
    file: sqlite3.Connection, table: _Table, change: Callable[[Record], Record]
) -> Generator[list[Record]]:
    cursor = file.execute(table.select)
    while rows := cursor.fetchmany(_BATCH):
        yield [change(tuple(row)) for row in rows]


def _read_store(connection: Connection, table: _Table) -> Generator[list[Record]]:
    query = f"SELECT {', '.join(table.columns)} FROM {table.name} {table.where} ORDER BY {_collated(table)}"
    with connection.cursor(f"read_{table.name}") as cursor:  # the server keeps what was not fetched yet
        cursor.execute(query.encode())
        while rows := cursor.fetchmany(_BATCH):
            yield [tuple(map(_plain, row.values())) for row in rows]


def _collated(table: _Table) -> str:
    """SQLite orders texts by their bytes."""
    numbers = {"position", "sequence", "number"}
    return ", ".join(name if name in numbers else f'{name} COLLATE "C"' for name in table.order.split(", "))


def _plain(cell: object) -> Cell:
    if isinstance(cell, bool):
        return int(cell)
    if cell is None or isinstance(cell, str | int | float | bytes):
        return cell
    raise AssertionError(f"no column has {type(cell)}")


def _with_truths(record: Record, places: Sequence[int]) -> tuple[Cell | bool, ...]:
    return tuple(bool(cell) if place in places else cell for place, cell in enumerate(record))


def _counted(table: _Table, batches: Generator[list[Record]]) -> Counted:
    counting = Counting(table.name)
    for batch in batches:
        counting.add(batch)
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
    connection.execute(
        f"SELECT setval('numbers', greatest((SELECT last_value FROM numbers), 1 + (SELECT max(n) FROM ("
        "SELECT coalesce(max(position), 0) AS n FROM transitions UNION ALL SELECT coalesce(max(position), 0)"
        f" FROM task_changes UNION ALL SELECT coalesce(max(queue), 0) FROM tasks) AS given) / {NUMBERS}))".encode()
    )
    for table in sorted(_COUNTED_ON):
        connection.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'position'), max(position)) FROM {table}"
            " HAVING max(position) IS NOT NULL".encode()
        )
    connection.execute(
        "SELECT setval(pg_get_serial_sequence('events', 'sequence'), max(sequence)) FROM events"
        " HAVING max(sequence) IS NOT NULL"
    )
