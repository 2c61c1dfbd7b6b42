"""Connect to PostgreSQL, with connect, statement, lock and idle timeouts, and the most connections.

Connections are synchronous, because transactions run in threads, as on SQLite.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from artoo.contracts.errors import ConfigurationError
from artoo.store.address import StoreAddress

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow


SCHEMA = "artoo"
"""The database schema that contains all tables of artoo."""

CONNECT_SECONDS = 10
STATEMENT_SECONDS, LOCK_SECONDS, IDLE_SECONDS = 60, 15, 30
"""Timeouts for a statement, a wait for a lock, and an idle period within a transaction, in seconds.

If a process is frozen within a transaction, it loses its session, so that its locks are released.
"""

MOST_CONNECTIONS = 8
"""Maximum number of connections of one process, which are in one pool."""


def check_installed() -> None:
    """Raise ConfigurationError if the database driver is not installed."""
    if importlib.util.find_spec("psycopg") is None or importlib.util.find_spec("psycopg_pool") is None:
        raise ConfigurationError("A shared store needs the PostgreSQL driver: pip install 'artoo[postgres]'")


def settings(address: StoreAddress, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the keyword arguments of `psycopg.connect`, with the address as `conninfo`. The values are texts as
    libpq expects them.

    Raises ConfigurationError for an address that libpq cannot parse.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.rows import dict_row

    try:
        own = conninfo_to_dict(address.url)
    except ProgrammingError as error:
        raise ConfigurationError(f"The store's address {address} cannot be read: {str(error).strip()}") from error
    limits = {
        "search_path": SCHEMA,
        "statement_timeout": f"{STATEMENT_SECONDS}s",
        "lock_timeout": f"{LOCK_SECONDS}s",
        "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
        "timezone": "UTC",
    }
    options = " ".join(f"-c {name}={value}" for name, value in limits.items())
    return {
        "conninfo": address.url,
        "row_factory": dict_row,
        "autocommit": True,
        "options": f"{options} {own.get('options', '')}".strip(),
        "application_name": own.get("application_name", "artoo"),
        "client_encoding": "UTF8",
        "connect_timeout": own.get("connect_timeout", CONNECT_SECONDS),
        # Reads use the primary too, because a replica may be behind.
        "target_session_attrs": own.get("target_session_attrs", "read-write"),
        "keepalives_idle": own.get("keepalives_idle", 10),
        "keepalives_interval": own.get("keepalives_interval", 5),
        "keepalives_count": own.get("keepalives_count", 3),
        "tcp_user_timeout": own.get("tcp_user_timeout", 20_000),
        **address.settings(environ),
    }


def connect(address: StoreAddress) -> psycopg.Connection[DictRow]:
    """Open a connection in autocommit mode. Its rows are dictionaries. Raises psycopg.Error, ConfigurationError."""
    check_installed()
    from artoo.store.pooled import Connection

    given = settings(address)
    return Connection.connect(given.pop("conninfo"), row_factory=given.pop("row_factory"), **given)


def explanation(address: StoreAddress, doing: str, error: Exception) -> str:
    """Return an error message for the user: the cause, the store, and what to do."""
    said = " ".join(str(error).split()) or type(error).__name__
    return f"Cannot {doing} the store {address}: {said}. {_advice(error, address)}"


def _advice(error: Exception, address: StoreAddress) -> str:
    import psycopg
    from psycopg import errors

    match error:
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return "Check its user, and the password in ARTOO_STORE_PASSWORD or ~/.pgpass."
        case errors.InsufficientPrivilege():
            return (
                "The role lacks the right; docs/many-machines.md says which roles there are, and who gives rights."
            )
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            return "It has no tables of artoo yet: artoo store init"
        case errors.DiskFull() | errors.OutOfMemory():
            return "The server has no room; what was being written is not there."
        case errors.QueryCanceled() | errors.LockNotAvailable():
            return "It took too long; look at what else the server does, and try again."
        case psycopg.OperationalError():
            return (
                "Check that it runs, can be reached, lets this user in and has a certificate of its name from an"
                " authority that is known here; what is under way goes on, and is written when it is back."
            )
        case _:
            return "Nothing was changed; please report this."
