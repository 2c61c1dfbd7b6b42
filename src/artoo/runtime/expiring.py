"""How long what waits is kept, and what becomes of it then."""

from __future__ import annotations

import logging
import time

from artoo.runtime.config import Config
from artoo.world.pending import Keeping, PendingRecord, expire

logger = logging.getLogger(__name__)


def keeping_of(config: Config) -> Keeping:
    """How long and how much may wait."""
    return Keeping(days=config.pending.days, total_bytes=config.pending.megabytes << 20)


def drop_expired(config: Config, now: float | None = None) -> tuple[PendingRecord, ...]:
    """Drops what has waited too long and was warned of, with a line in the log; returns what expires soon.

    Blocking. Nothing is dropped within three days of the first warning: `artoo status` and every start show it.
    """
    found = expire(config.home, keeping_of(config), time.time() if now is None else now)
    for gone in found.dropped:
        logger.warning(
            "the changes of task %s (%d paths) waited too long and were dropped; views/settled.jsonl lists them",
            gone.task_id,
            gone.count,
        )
    for record in found.warned:
        day = time.strftime("%Y-%m-%d", time.localtime(record.due))
        logger.warning("the changes of task %s wait, and are dropped on %s: artoo status", record.task_id, day)
    return found.warned
