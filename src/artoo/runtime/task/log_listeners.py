"""Who hears that a task's log has grown: the Auditor, and what carries it to the store of many machines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from artoo.runtime.config.model import Config
from artoo.runtime.task.auditor import Auditing
from artoo.store.address import parse
from artoo.tasklog.file import Grown

if TYPE_CHECKING:
    from artoo.runtime.cluster.upload_logs import Sharing


@asynccontextmanager
async def shared_logs(config: Config) -> AsyncGenerator[Sharing | None]:
    """Everything that is logged meanwhile, and before its end what the Auditor says last, reaches the store.

    None where no store is configured. Raises ConfigurationError when its driver is not there.
    """
    if config.store is None:
        yield None
        return
    from artoo.runtime.cluster.upload_logs import Sharing  # the driver only where there is a store
    from artoo.store.connecting import check_installed

    check_installed()
    sharing = Sharing(config.home, parse(config.store))
    sharing.start()
    try:
        yield sharing
    finally:
        await asyncio.to_thread(sharing.close)


def told(auditing: Auditing, sharing: Sharing | None) -> Grown:
    """What the task log is to call."""
    if sharing is None:
        return auditing.note_log
    sharing.witness_through(auditing)

    def grown(task: str, file: str, size: int, digest: str) -> None:
        auditing.note_log(task, file, size, digest)
        sharing.note(task)

    return grown
