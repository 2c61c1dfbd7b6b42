"""Create, upgrade and check PostgreSQL tables by numbered SQL files in `migrations/`.

A released step is never edited. Each change of the tables is a new step. The table `artoo_schema` records the
hashes of the applied steps. So it is noticed if a store was made by a different version of the program that has the
same step numbers.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from artoo.contracts.errors import ConfigurationError
from artoo.store.address import StoreAddress
from artoo.store.connecting import SCHEMA, connect

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_LOCK = 0x4152544F4F
"""This is `ARTOO` in ASCII. It is the number of the advisory lock that is held while a store is upgraded."""

_TABLE = f"""
CREATE TABLE {SCHEMA}.artoo_schema (
    version integer PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """One SQL file of `migrations/`. `version` is the number at the beginning of its name."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Return the hash of the file's text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def steps() -> tuple[SchemaStep, ...]:
    """Return all steps of this program, in order."""
    found = [
        SchemaStep(int(match[1]), match[0].removesuffix(".sql"), file.read_text("utf-8"))
        for file in files("artoo.store").joinpath("migrations").iterdir()
        if (match := _NAME.fullmatch(file.name))
    ]
    ordered = tuple(sorted(found, key=lambda step: step.version))
    numbers = [step.version for step in ordered]
    if len(set(numbers)) != len(numbers):
        raise AssertionError(f"two migrations have one number: {numbers}")
    return ordered


def version() -> int:
    """Return the newest step number of this program."""
    return steps()[-1].version


def migrate(address: StoreAddress) -> tuple[str, ...]:
    """Create or upgrade the store in one transaction, and grant the roles their rights. Return the names of the
    applied steps.

    Only one program can do this at a time. This function blocks. Raises psycopg.Error, ConfigurationError.
    """
    from artoo.store.pooled import without_limits

    with connect(address) as connection, connection.transaction(), without_limits(connection):
        connection.execute("SET LOCAL lock_timeout = 0")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        # The owner of the database may have created the schema for a role that lacks this right.
        if not _there(connection, "SELECT FROM pg_namespace WHERE nspname = %s", SCHEMA):
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        if not _has_table(connection):
            _require_utf8(connection, address)
            connection.execute(_TABLE)
        missing = _missing(connection, address)
        for step in missing:
            connection.execute(step.sql.encode())
            connection.execute(
                "INSERT INTO artoo_schema (version, name, sha256) VALUES (%s, %s, %s)",
                (step.version, step.name, step.sha256),
            )
        connection.execute(files("artoo.store").joinpath("roles.sql").read_bytes())
    return tuple(step.name for step in missing)


def check(connection: Connection, address: StoreAddress) -> None:
    """Raise ConfigurationError unless the store has exactly the schema version of this program."""
    if not _has_table(connection):
        raise ConfigurationError(f"The store {address} is not set up yet: artoo store init {address}")
    if missing := _missing(connection, address):
        raise ConfigurationError(
            f"The store {address} is older than this artoo (it lacks {', '.join(step.name for step in missing)});"
            f" bring it up to date: artoo store init {address}"
        )


def _require_utf8(connection: Connection, address: StoreAddress) -> None:
    """Raise ConfigurationError unless the database uses UTF-8, because other encodings lack most characters."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"The database of {address} is in {encoding}, which cannot hold every text; nothing was changed. Make"
            " one in UTF-8: CREATE DATABASE artoo ENCODING 'UTF8' TEMPLATE template0"
        )


def _missing(connection: Connection, address: StoreAddress) -> tuple[SchemaStep, ...]:
    """Return the steps to apply. Raises ConfigurationError if a newer or a different artoo made the store."""
    # The schema's name is included, so that a role without access gets a permission error, and not an error about a
    # missing table.
    query = f"SELECT version, name, sha256 FROM {SCHEMA}.artoo_schema ORDER BY version"
    rows = connection.execute(query.encode()).fetchall()
    known = {step.version: step for step in steps()}
    newest = max((int(row["version"]) for row in rows), default=0)
    if newest > version():
        raise ConfigurationError(
            f"The store {address} was upgraded by a newer artoo (schema {newest}, this one knows {version()});"
            " nothing was changed. Update artoo on this machine."
        )
    for row in rows:
        step = known.get(int(row["version"]))
        if step is None or step.sha256 != row["sha256"]:
            raise ConfigurationError(
                f"The store {address} was made by another artoo: its step {row['name']} is not the one that this"
                " program has; nothing was changed. Use one version of artoo on all machines."
            )
    made = {int(row["version"]) for row in rows}
    return tuple(step for step in steps() if step.version not in made)


def _has_table(connection: Connection) -> bool:
    return _there(connection, "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = 'artoo_schema'", SCHEMA)


def _there(connection: Connection, query: str, value: str) -> bool:
    return connection.execute(query.encode(), (value,)).fetchone() is not None
