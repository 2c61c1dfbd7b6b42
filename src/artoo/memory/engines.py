"""Choose the engine of memory, `memory.db` in the home or the shared PostgreSQL store."""

from __future__ import annotations

from pathlib import Path

from artoo.memory.codec import failed
from artoo.memory.tables import SCHEMA
from artoo.store.address import StoreAddress
from artoo.store.query import Engine
from artoo.store.sqlite import SqliteEngine

FILE = "memory.db"
_EARLIER = "data.mdb"


def engine_at(place: Path | StoreAddress) -> Engine:
    """Return the engine of a directory (which is made if it does not exist) or of a database. No connection to the
    database is made.

    Raises MemoryStoreError if the store cannot be used, and ConfigurationError if the driver of the database is not
    installed.
    """
    if isinstance(place, StoreAddress):
        from artoo.store.connecting import check_installed

        check_installed()
        from artoo.store.postgres import PostgresEngine

        return PostgresEngine(place, failed)
    engine = SqliteEngine(place / FILE, SCHEMA, failed)
    try:
        # The file of an earlier version is imported once, when its home is opened for the first time.
        if (place / _EARLIER).exists():
            from artoo.memory.lmdb_home import take_over

            take_over(place, engine)
    except BaseException:
        engine.close()
        raise
    return engine


def has_memory(directory: Path) -> bool:
    """Return whether a home contains the memory file of this version or of an earlier one."""
    return (directory / FILE).exists() or (directory / _EARLIER).exists()
