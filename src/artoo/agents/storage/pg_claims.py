"""Claims by one statement, on connections of the event loop: no transaction of Python's has to run in a thread.

The trip to a thread and back costs as much as the statement, and on a busy machine far more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from artoo.agents.board.claim_sql import LOOK
from artoo.agents.storage.pg_errors import explained
from artoo.agents.storage.transaction import Row, Value
from artoo.store.address import StoreAddress
from artoo.store.connecting import async_pool
from artoo.store.dialect import for_psycopg

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    from artoo.store.pooled import AsyncPool

    AsyncConnection = psycopg.AsyncConnection[DictRow]

_LOOK = for_psycopg(LOOK)


class SharedClaims:
    """The connections, made when they are first needed. `most` at once."""

    def __init__(self, address: StoreAddress, most: int) -> None:
        self._address = address
        self._most = most
        self._pool: AsyncPool | None = None

    async def claim(self, sql: str, parameters: Mapping[str, Value], *, look: bool, seconds: float) -> Row | None:
        """What the statement gives. `seconds`: how long to wait for a connection. Raises as `explained`.

        `look`: it was sent before, and the answer did not come: what it claimed then is found first.
        """
        if self._pool is None:
            self._pool = async_pool(self._address, most=self._most, configure=_configure)
            await self._pool.open(wait=False)
        with explained(self._address, "write to"):
            async with self._pool.connection(timeout=seconds) as connection:
                found = await (await connection.execute(_LOOK, parameters)).fetchone() if look else None
                return (
                    found or await (await connection.execute(for_psycopg(sql), parameters, prepare=True)).fetchone()
                )

    async def close(self) -> None:
        """Idempotent."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()


async def _configure(connection: AsyncConnection) -> None:
    """One plan for all parameters. To plan the statement takes longer than to execute it, and left alone the server
    and the driver do it ten times on each connection before they keep a plan."""
    await connection.execute(b"SET plan_cache_mode = force_generic_plan")
