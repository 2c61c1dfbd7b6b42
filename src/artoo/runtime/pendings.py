"""What of ended tasks waits for consent: all of it, or that of one task. What is done with it is in `pending`."""

from __future__ import annotations

from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.contracts.settling import Settled
from artoo.runtime.asked import asked_on_the_board
from artoo.runtime.config import Config
from artoo.runtime.pending import Pending, has_ended
from artoo.tasklog.reader import summary_of
from artoo.world.closing import require_waiting
from artoo.world.pending import DAY, PendingRecord, read_pending
from artoo.world.recover import recover
from artoo.world.unpacking import is_brought
from artoo.world.view_place import ViewPlace, Views


def pendings(config: Config) -> tuple[Pending, ...]:
    """All that waits, oldest first, tasks that were cut off among them; tasks at work are not. Blocking."""
    found: list[Pending] = []
    for place in Views(config.home).listed():
        if is_brought(place):  # another machine's, for a look
            continue
        try:
            with place.locked():
                found.append(_pending(place, config))
        except SandboxError:  # at work in another process, or damaged: `find_pending` says which
            continue
    return tuple(sorted(found, key=lambda one: one.since))


def find_pending(config: Config, task_id: str) -> Pending:
    """The one whose task id begins like this. Blocking.

    Raises ConfigurationError when there is none or several, SandboxError when it is at work, or settled just now.
    """
    found = [place for place in Views(config.home).listed() if task_id and place.task_id.startswith(task_id)]
    exact = [place for place in found if place.task_id == task_id]
    if len(exact or found) > 1:
        listed = ", ".join(place.task_id for place in found[:5])
        raise ConfigurationError(f"{task_id!r} fits several tasks ({listed}): write more of it")
    if not found:
        raise ConfigurationError(f"nothing of a task {task_id!r} waits; `artoo status` lists what does")
    place = (exact or found)[0]
    with place.locked():
        return _pending(place, config)


def _pending(place: ViewPlace, config: Config) -> Pending:
    require_waiting(place)
    record = read_pending(place)
    board = asked_on_the_board(config.home, place.task_id)
    if record is None or record.cut_off:
        return _without_record(place, config, record, board)
    return Pending(
        task_id=record.task_id,
        since=record.since,
        expires_at=record.due,
        request=record.request or board,
        language=record.language,
        reason=record.reason,
        counts=record.counts,
        conflicts=record.conflicts,
        went_out=record.went_out,
        warned=record.warned_at is not None,
        on_board=bool(board),
        _home=config.home,
    )


def _without_record(place: ViewPlace, config: Config, warning: PendingRecord | None, board: str) -> Pending:
    """A task that was cut off, or one for whose record there was no room: then its log knows how it ended."""
    since = place.record().created_at
    told = summary_of(config.home, place.task_id)
    changes = Settled() if told is None or told.result is None else told.result.changes
    changes = changes if changes.waits else Settled()
    expires_at = since + config.pending.days * DAY if changes.expires_at is None else changes.expires_at
    return Pending(
        task_id=place.task_id,
        since=since,
        expires_at=expires_at if warning is None else warning.due,
        request=board if told is None else told.request,
        reason=changes.reason,
        counts=changes.counts,
        conflicts=len(changes.conflicts),
        went_out=changes.went_out,
        warned=warning is not None and warning.warned_at is not None,
        cut_off=not changes.waits and not has_ended(told),
        on_board=bool(board),
        _home=config.home,
    )


def settle_cut_applies(config: Config) -> None:
    """What `artoo diff|apply|discard` do first: acts that a crash cut are finished or undone. Blocking.

    Raises SandboxError when one can be neither finished nor undone.
    """
    recover(config.home)
