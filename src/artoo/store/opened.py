"""Open a PostgreSQL connection, and check that its schema matches this program."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.store.address import StoreAddress
from artoo.store.connecting import check_installed, connect, explanation
from artoo.store.schema import check

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]


@contextmanager
def opened(
    address: StoreAddress, doing: str, error: Callable[[str], ArtooError] = ConfigurationError
) -> Generator[Connection]:
    """Open a connection in autocommit mode and check the schema. `doing` names the purpose of the connection in an
    error message ("read", "write to").

    Raises ConfigurationError if the store is not set up or has another schema. `error` converts errors of
    PostgreSQL.
    """
    check_installed()
    import psycopg

    try:
        with connect(address) as connection:
            check(connection, address)
            yield connection
    except psycopg.Error as raised:
        raise error(explanation(address, doing, raised)) from raised
