"""Attach the task log to the bus of a process, and upload logs to the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.bus.inprocess import InProcessBus
from artoo.bus.spool import SpoolingTap
from artoo.contracts.routes import TRANSIENT
from artoo.redaction import Redactor
from artoo.runtime.config.model import Config
from artoo.runtime.task.auditor import Auditing
from artoo.store.address import parse
from artoo.tasklog.file import Grown
from artoo.tasklog.writer import TaskLog

if TYPE_CHECKING:
    from artoo.runtime.cluster.upload_logs import Sharing


@asynccontextmanager
async def recorded(
    bus: InProcessBus, home: Path, redactor: Redactor, grown: Grown | None = None
) -> AsyncGenerator[TaskLog]:
    """Write every message on `bus` into the task logs below `home` while the block runs. `redactor` removes the
    secrets before.

    `grown` is called after every write, with the new size of the file and its digest.
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


@asynccontextmanager
async def shared_logs(config: Config) -> AsyncGenerator[Sharing | None]:
    """Upload every log to the store while the block runs, and the last lines of the Auditor at its end.

    Yields None if no store is configured. Raises ConfigurationError if the store's driver is not installed.
    """
    if config.store is None:
        yield None
        return
    # The database driver is imported only if there is a store.
    from artoo.runtime.cluster.upload_logs import Sharing
    from artoo.store.connecting import check_installed

    check_installed()
    sharing = Sharing(config.home, parse(config.store))
    sharing.start()
    try:
        yield sharing
    finally:
        await asyncio.to_thread(sharing.close)


def told(auditing: Auditing, sharing: Sharing | None) -> Grown:
    """Return the function that the task log calls after each write."""
    if sharing is None:
        return auditing.note_log
    sharing.witness_through(auditing)

    def grown(task: str, file: str, size: int, digest: str) -> None:
        auditing.note_log(task, file, size, digest)
        sharing.note(task)

    return grown
