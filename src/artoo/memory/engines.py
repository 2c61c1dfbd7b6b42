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
    """Return the engine of a directory (created if absent), or of a database, without connecting to the database.

    Raises MemoryStoreError if the store is unusable, ConfigurationError if the database's driver is not installed.
    """
    if isinstance(place, StoreAddress):
        from artoo.store.connecting import check_installed

        check_installed()
        from artoo.store.postgres import PostgresEngine

        return PostgresEngine(place, failed)
    engine = SqliteEngine(place / FILE, SCHEMA, failed)
    try:
        # The file of an earlier version is imported once, when its home is first opened.
        if (place / _EARLIER).exists():
            from artoo.memory.lmdb_home import take_over

            take_over(place, engine)
    except BaseException:
        engine.close()
        raise
    return engine


def has_memory(directory: Path) -> bool:
    """Check whether a home has a memory file of this version or of an earlier one."""
    return (directory / FILE).exists() or (directory / _EARLIER).exists()
