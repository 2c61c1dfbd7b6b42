"""What a start does about earlier acts: cut ones are finished or undone, old ones are forgotten."""

from __future__ import annotations

import asyncio
import logging

from artoo.contracts.changes import RecoveryReport
from artoo.contracts.errors import SandboxError
from artoo.runtime.config import Config
from artoo.tools.sandbox.recover import recover
from artoo.tools.sandbox.undo import Keep, prune

logger = logging.getLogger(__name__)


def keep_of(config: Config) -> Keep:
    """How long and how much is kept for `artoo undo`."""
    return Keep(days=config.undo.days, total_bytes=config.undo.megabytes << 20)


async def settle_earlier(config: Config) -> None:
    """Recovers and prunes. What cannot be settled now is logged and tried again at the next start."""
    try:
        report = await asyncio.to_thread(recover, config.home)
        _tell(report)
        await asyncio.to_thread(prune, config.home, keep_of(config))
    except (SandboxError, OSError) as error:
        logger.warning("an earlier act is not settled yet: %s", error)


def _tell(report: RecoveryReport) -> None:
    for name in report.finished:
        logger.warning("an act that a crash had cut was finished: %s", name)
    for name in report.undone:
        logger.warning("an act that a crash had cut was undone: %s", name)
    for conflict in report.conflicts:
        logger.warning("left as it is after a crash: %s (%s)", conflict.path, conflict.reason)
