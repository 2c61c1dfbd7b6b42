"""One connection to a store that is as new as this program, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.store.address import StoreAddress
from artoo.store.connecting import check_installed, connect, explanation
from artoo.store.schema import check
from artoo.store.tls import refusal

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]


def why_no_tls(address: StoreAddress, error: psycopg.Error) -> str:
    """When there was no connection: what TLS has to do with it. Blocks."""
    import psycopg

    return refusal(address) if isinstance(error, psycopg.OperationalError) and error.sqlstate is None else ""


@contextmanager
def opened(
    address: StoreAddress, doing: str, error: Callable[[str], ArtooError] = ConfigurationError
) -> Generator[Connection]:
    """A checked connection in autocommit mode; `doing` says what for, in an error ("read", "write to").

    Raises ConfigurationError (not set up, another schema), and what `error` makes of all that PostgreSQL raises.
    """
    check_installed()
    import psycopg

    try:
        with connect(address) as connection:
            check(connection, address)
            yield connection
    except psycopg.Error as raised:
        raise error(f"{explanation(address, doing, raised)} {why_no_tls(address, raised)}".strip()) from raised
