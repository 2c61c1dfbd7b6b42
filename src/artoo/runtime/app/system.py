"""The real clock, and the real source of ids (UUIDv7)."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

import uuid_utils


class SystemClock:
    """The system time. Implements `artoo.ports.clock.Clock`."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    monotonic = staticmethod(time.monotonic)
    """See Clock."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class UuidIds:
    """Generates UUIDv7 ids. They are ordered by creation within this process, and by time between processes.
    Implements `Ids`."""

    def new(self) -> str:
        return str(uuid_utils.uuid7())
