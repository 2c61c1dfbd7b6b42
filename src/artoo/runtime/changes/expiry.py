"""How long pending changes are retained, and when they are dropped."""

from __future__ import annotations

import logging
import time

from artoo.runtime.config.model import Config
from artoo.workspace.settlement.expiry import expire
from artoo.workspace.settlement.pending import Keeping, PendingRecord

logger = logging.getLogger(__name__)


def keeping_of(config: Config) -> Keeping:
    """Return how long and how much may be pending."""
    return Keeping(days=config.pending.days, total_bytes=config.pending.megabytes << 20)


def drop_expired(config: Config, now: float | None = None) -> tuple[PendingRecord, ...]:
    """Drop what was pending too long and was warned of, with a line in the log; return what expires soon.

    Blocking. Nothing is dropped within three days of the first warning: `artoo status` and every start show it.
    """
    found = expire(config.home, keeping_of(config), time.time() if now is None else now)
    for gone in found.dropped:
        logger.warning(
            "the changes of task %s (%d paths) were pending too long; workspaces/settled.jsonl has them",
            gone.task_id,
            gone.count,
        )
    for record in found.warned:
        day = time.strftime("%Y-%m-%d", time.localtime(record.due))
        logger.warning("the changes of task %s are dropped on %s: artoo status", record.task_id, day)
    return found.warned
