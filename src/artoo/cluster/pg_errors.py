"""What goes wrong with a shared store: what trying again later may mend, and what it does not."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from artoo.contracts.errors import ActivityStoreError, StoreRefused
from artoo.store.address import StoreAddress
from artoo.store.connecting import explanation


class Away(Exception):
    """The store cannot be reached; nothing of this was done, or, of a single statement, that is not known."""


@contextmanager
def explained(address: StoreAddress, doing: str) -> Generator[None]:
    """Raises Away, or ActivityStoreError for what trying again does not mend. Those who were in each other's way
    (SerializationFailure, DeadlockDetected) are told so."""
    try:
        yield
    except (errors.SerializationFailure, errors.DeadlockDetected):
        raise
    except psycopg.Error as error:
        said = explanation(address, doing, error)
        if is_away(error):
            raise Away(said) from error
        if isinstance(error, errors.InsufficientPrivilege):
            raise StoreRefused(said) from error
        raise ActivityStoreError(said) from error


def is_away(error: psycopg.Error) -> bool:
    """Whether trying again later may help: no connection, a lost one, a server that stops, starts or is full."""
    if isinstance(error, PoolTimeout | errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow):
        return True
    if isinstance(error, errors.TooManyConnections | errors.IdleInTransactionSessionTimeout):
        return True
    # Without a code from the server, it was the connection. A read-only server is one that was a primary.
    return isinstance(error, errors.ReadOnlySqlTransaction) or (
        isinstance(error, psycopg.OperationalError) and error.sqlstate in (None, "08000", "08003", "08006", "08001")
    )
