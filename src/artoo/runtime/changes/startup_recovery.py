"""Recover at startup, roll back interrupted applies, and delete expired undo data, logs and spools."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from artoo.contracts.changes import RecoveryReport
from artoo.contracts.confirmation import PERSON
from artoo.contracts.errors import SandboxError
from artoo.runtime.config.model import Config
from artoo.tasklog.retention import KeepLogs, forget_logs
from artoo.workspace.commit import Keep, prune, recover
from artoo.workspace.settlement.history import SettledRecord, note_settled
from artoo.workspace.settlement.pending import Keeping, PendingRecord, expire
from artoo.workspace.settlement.service import recover_settlements

logger = logging.getLogger(__name__)

_OWNER = re.compile(r"-(\d+)-[^-]+\.jsonl$")
"""The process id in the name of a spool file (bus.spool)."""


def keep_of(config: Config) -> Keep:
    """Return for how long, and up to which size, the data for `artoo undo` are kept."""
    return Keep(days=config.undo.days, total_bytes=config.undo.megabytes << 20)


async def settle_earlier(config: Config) -> None:
    """Finish or roll back interrupted operations, then delete old undo data and expired changes."""
    # An error is logged, and the next start tries again.
    try:
        _tell(await asyncio.to_thread(recover_earlier, config))
        await asyncio.to_thread(prune, config.home, keep_of(config))
        await asyncio.to_thread(drop_expired, config)
    except (SandboxError, OSError) as error:
        logger.warning("an earlier act is not settled yet: %s", error)


def recover_earlier(config: Config) -> RecoveryReport:
    """Roll back interrupted applies, complete interrupted undos, and repair workspaces. Blocking.

    Raises SandboxError.
    """
    report = recover(config.home)
    for record in report.finished:
        _note_undone(config.home, unquote(record.partition("/")[0]))
    recover_settlements(config.home)
    return report


def _note_undone(home: Path, task_id: str) -> None:
    """Record that the recovery has completed an undo which a crash had interrupted."""
    try:
        note_settled(home, SettledRecord(at=time.time(), task_id=task_id, what="undone", by=PERSON))
    except OSError as error:
        logger.warning("task %s is undone; no room to record it: %s", task_id, error)


async def forget_old_logs(config: Config, forgotten_logs: Callable[[Sequence[str]], None] | None = None) -> None:
    """Delete the old task logs that the configuration no longer keeps.

    `forgotten_logs` is called with their names, because the Auditor would otherwise report them as missing.
    """
    # An error is logged, and the next start tries again.
    keep = KeepLogs(days=config.log.keep_days, total_bytes=config.log.keep_megabytes << 20)
    try:
        await asyncio.to_thread(remove_left_spools, config.home)
        forgotten = await asyncio.to_thread(forget_logs, config.home, keep)
    except OSError as error:
        logger.warning("old task logs could not be forgotten: %s", error)
        return
    if forgotten.logs and forgotten_logs is not None:
        forgotten_logs(forgotten.names)
    if forgotten.logs:
        logger.info("%d old task logs were forgotten (%d bytes)", forgotten.logs, forgotten.bytes)


def remove_left_spools(home: Path) -> int:
    """Remove the spool files of processes that were killed, because no process reads these files any more. Return
    how many."""
    removed = 0
    for path in (home / "spool").glob("spool-*.jsonl"):
        owner = _OWNER.search(path.name)
        if owner is not None and not _alive(int(owner[1])):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _tell(report: RecoveryReport) -> None:
    for name in report.finished:
        logger.warning("an act that a crash had cut was finished: %s", name)
    for name in report.undone:
        logger.warning("an act that a crash had cut was undone: %s", name)
    for conflict in report.conflicts:
        logger.warning("left as it is after a crash: %s (%s)", conflict.path, conflict.reason)


def keeping_of(config: Config) -> Keeping:
    """Return for how long, and up to which size, changes may be pending."""
    return Keeping(days=config.pending.days, total_bytes=config.pending.megabytes << 20)


def drop_expired(config: Config, now: float | None = None) -> tuple[PendingRecord, ...]:
    """Delete changes that have expired after a warning, and log each deletion. Return the changes that expire soon.

    Blocking.
    """
    # Changes are kept for at least three days after the first warning. `artoo status` and every start show the
    # warning.
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
