"""The task log as a part of the runtime: attached before the first message, drained before the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from artoo.bus.inprocess import InProcessBus
from artoo.bus.spool import SpoolingTap
from artoo.contracts.routes import TRANSIENT
from artoo.redaction import Redactor
from artoo.tasklog.file import Grown
from artoo.tasklog.writer import TaskLog


@asynccontextmanager
async def recorded(
    bus: InProcessBus, home: Path, redactor: Redactor, grown: Grown | None = None
) -> AsyncGenerator[TaskLog]:
    """Everything that is said on `bus` meanwhile goes into the task logs below `home`, as `redactor` leaves it.

    `grown` hears how the files stand after every write.
    """
    with SpoolingTap(home / "spool", name="tasklog", without=TRANSIENT) as spool:
        log = TaskLog(home, spool, redactor=redactor, grown=grown)
        detach = bus.attach(spool)
        async with asyncio.TaskGroup() as group:
            group.create_task(log.run())
            try:
                yield log
            finally:
                detach()
                await log.flush()
                spool.finish()
