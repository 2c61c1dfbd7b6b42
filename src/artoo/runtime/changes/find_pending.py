"""Find and list the pending change sets of all ended tasks, or of one task.

The module `pending_changes` applies or discards them.
"""

from __future__ import annotations

from collections.abc import Iterator

from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.contracts.settling import Settled
from artoo.runtime.changes.pending_changes import Pending, has_ended
from artoo.runtime.changes.request_lookup import asked_on_the_board
from artoo.runtime.config.model import Config
from artoo.tasklog.reader import summary_of
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.pending import DAY, PendingRecord, read_pending
from artoo.workspace.settlement.service import settled_already

ATTEMPT = " attempt"
"""An agent works on a board task in a workspace of its own until it submits the work. This suffix ends the id of
that workspace."""

_OUTDATED = "it was made by another version of artoo, and can only be discarded"
_NEVER = 253_370_764_800.0
"""A time in the year 9999 that means "never". Every interface can show this date, but not infinity."""


def pendings(config: Config) -> tuple[Pending, ...]:
    """Return all pending changes, oldest first. Tasks that were interrupted are included. Running tasks are not.

    Blocking.
    """
    found: list[Pending] = []
    for directory in _candidates(config):
        try:
            with directory.locked():
                found.append(_pending(directory, config))
        except SandboxError:
            # Another process uses the workspace, or the workspace is damaged. `find_pending` reports which.
            # `find_pending` reports which.
            continue
    found += _outdated(config)
    return tuple(sorted(found, key=lambda one: one.since))


def find_pending(config: Config, task_id: str) -> Pending:
    """Return the pending changes of the task whose id begins with `task_id`. Blocking.

    Raises ConfigurationError if there is no such task or more than one. Raises SandboxError if the task is running
    or its changes were just settled.
    """
    places: dict[str, WorkspaceDirectory | Pending] = {one.task_id: one for one in _outdated(config)}
    places |= {task_of(directory): directory for directory in _candidates(config)}
    found = [one for one in places if task_id and one.startswith(task_id)]
    exact = [task_id] if task_id in places else found
    if len(exact) > 1:
        listed = ", ".join(found[:5])
        raise ConfigurationError(f"{task_id!r} fits several tasks ({listed}): write more of it")
    if not exact:
        raise ConfigurationError(f"nothing of a task {task_id!r} is pending; `artoo status` lists what is")
    place = places[exact[0]]
    if isinstance(place, Pending):
        return place
    with place.locked():
        return _pending(place, config)


def task_of(directory: WorkspaceDirectory) -> str:
    """Return the id of the task whose changes a workspace holds. For an attempt, it is the id of the board task."""
    return directory.task_id.removesuffix(ATTEMPT)


def _candidates(config: Config) -> Iterator[WorkspaceDirectory]:
    """Yield the workspaces to list. Workspaces that were brought from another machine for a review are not listed.
    If a board task has submitted work, its attempt is not listed.
    """
    listed = {directory.task_id: directory for directory in Workspaces(config.home).listed()}
    for task_id, directory in listed.items():
        handed_in = task_id.endswith(ATTEMPT) and task_id.removesuffix(ATTEMPT) in listed
        if not handed_in and not directory.is_brought:
            yield directory


def _pending(directory: WorkspaceDirectory, config: Config) -> Pending:
    if not directory.exists:
        # taking the lock has made the directory again
        directory.remove()
        raise settled_already(task_of(directory))
    record = read_pending(directory)
    board = asked_on_the_board(config.home, task_of(directory))
    if record is None or record.cut_off:
        return _without_record(directory, config, record, board)
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
        _hooks=config.hooks,
    )


def _without_record(
    directory: WorkspaceDirectory, config: Config, warning: PendingRecord | None, board: str
) -> Pending:
    """Describe the pending changes of a task that was interrupted, or whose record could not be written. The task's
    log shows how the task ended."""
    task_id = task_of(directory)
    since = directory.record().created_at
    told = summary_of(config.home, task_id)
    changes = Settled() if told is None or told.result is None else told.result.changes
    changes = changes if changes.waits else Settled()
    expires_at = since + config.pending.days * DAY if changes.expires_at is None else changes.expires_at
    return Pending(
        task_id=task_id,
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
        workspace=directory.task_id,
        _home=config.home,
        _hooks=config.hooks,
    )


def _outdated(config: Config) -> list[Pending]:
    """Describe the workspaces that other versions of artoo made."""
    # They never expire, because this version cannot read them. Only the user can discard them.
    found: list[Pending] = []
    for one in Workspaces(config.home).outdated():
        try:
            since = one.base.stat().st_mtime
        except OSError:
            # the workspace was discarded after it was listed
            continue
        told = summary_of(config.home, one.task_id)
        request = "" if told is None else told.request
        found.append(
            Pending(
                task_id=one.task_id,
                since=since,
                expires_at=_NEVER,
                request=request,
                reason=_OUTDATED,
                outdated=True,
                _home=config.home,
                _hooks=config.hooks,
            )
        )
    return found
