"""The operator's moves, approvals and other actions on the board, for CLI and web UI."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from artoo.agents.board.board import MOST_TASKS
from artoo.agents.board.rules import TRANSITIONS
from artoo.agents.mail.rows import Kept
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask
from artoo.contracts.errors import ActivityStoreError, ConfigurationError, MoveRefused
from artoo.runtime.app.task_ids import named
from artoo.runtime.changes.pending_changes import Pending
from artoo.runtime.config.model import Config
from artoo.team.approval import Ruling
from artoo.team.office import Office, open_office
from artoo.workspace.settlement.pending import DAY

UNKNOWN = "unknown"
"""Shown as the state of a task that is not on the board, for example because the database is new or an old copy."""

_FORSAKEN = (None, BoardState.FAILED, BoardState.CANCELLED)


def moves_from(state: BoardState) -> tuple[BoardState, ...]:
    """Return the states to which the operator can move a task without a review."""
    on = {
        BoardState.FAILED: BoardState.PENDING,
        BoardState.REJECTED: BoardState.PENDING,
        BoardState.BLOCKED: BoardState.IN_PROGRESS,
    }
    wanted = (on.get(state), BoardState.CANCELLED, BoardState.ARCHIVED)
    return tuple(after for after in wanted if after is not None and after in TRANSITIONS[state])


async def move(office: Office, task_id: str, state: BoardState, why: str) -> None:
    """Move a task as the operator.

    Raises GovernanceRefused in the same cases as the board, and ConfigurationError for a state that no move can
    reach.
    """
    board = office.board
    match state:
        case BoardState.PENDING:
            await board.retry(task_id, OPERATOR, why)
        case BoardState.IN_PROGRESS:
            await board.release(task_id, OPERATOR, why)
        case BoardState.BLOCKED:
            await board.work.block(task_id, OPERATOR, why or "stopped by the operator")
        case BoardState.CANCELLED:
            await board.cancel(task_id, OPERATOR, why)
        case BoardState.ARCHIVED:
            await office.archive(task_id, OPERATOR)
        case _:
            raise ConfigurationError(_instead(state, task_id))


def _instead(state: BoardState, task_id: str) -> str:
    """Describe what to do instead of a move that the operator cannot make."""
    if state in (BoardState.COMPLETED, BoardState.REJECTED):
        verdict = "approve" if state is BoardState.COMPLETED else 'reject "why"'
        return f"a task becomes {state.value} by a review: artoo task review {task_id} {verdict}"
    return f"a task becomes {state.value} by whoever works on it, not by a move"


async def approve(office: Office, found: BoardTask, why: str, *, submission: int, digest: str | None) -> Ruling:
    """Approve a submission on behalf of the operator. This is also possible for a task that was rejected too often.

    Raises the errors of `Approvals.approve`.
    """
    if found.state is BoardState.REJECTED and found.submission == submission:
        await office.board.reconsider(found.id, OPERATOR, why or "approved after all")
    approving = office.approvals.approve
    return await approving(found.id, OPERATOR, why or "approved", submission=submission, digest=digest)


@asynccontextmanager
async def brought(config: Config, beginning: str, *, applying: bool) -> AsyncGenerator[Pending | None]:
    """Unpack the submission of another machine over the files here, and yield its pending changes.

    `beginning`: the beginning of the task's id. Yields None if no such submission is pending. `applying`: true if
    no other machine may apply it from now on. Raises ConfigurationError if several ids begin like this. Also raises
    the errors of `Approvals.by_hand`.
    """
    async with open_office(config) as office:
        exchange = office.exchange
        waiting = await office.board.list({BoardState.REVIEW}, limit=MOST_TASKS)
        others = {one.id: one for one in waiting if exchange is not None and exchange.is_elsewhere(one)}
        if not any(task_id.startswith(beginning) for task_id in others):
            yield None
            return
        task = others[named(beginning, list(others), "no pending changes of a task", "artoo task list shows them")]
        since = task.updated_at.timestamp()
        async with office.approvals.by_hand(task, applying=applying):
            yield Pending(
                task_id=task.id,
                since=since,
                expires_at=since + config.pending.days * DAY,
                request=task.text,
                on_board=True,
                _home=config.home,
            )


def standing(one: Pending, state: BoardState | None) -> Pending:
    """Add the state of the task to pending changes of the team. If `state` is None, the task is not on the
    board."""
    if not one.on_board:
        return one
    return replace(one, stands=UNKNOWN if state is None else state.value, forsaken=state in _FORSAKEN)


async def as_they_stand(config: Config, found: Sequence[Pending]) -> tuple[Pending, ...]:
    """Add the states of the tasks to pending changes of the team. If the board cannot be read, they are returned
    unchanged."""
    teams = [one.task_id for one in found if one.on_board]
    if not teams:
        return tuple(found)
    try:
        async with open_office(config) as office:
            states = await office.board.states(teams)
    except (ActivityStoreError, ConfigurationError):
        return tuple(found)
    return tuple(standing(one, states.get(one.task_id)) for one in found)


async def complete_applied(config: Config, task_id: str) -> BoardState | None:
    """Approve a submission that the operator has applied by hand. Returns the state of the task, or None if there
    is no such task.

    Raises GovernanceRefused, ActivityStoreError, SandboxError.
    """
    async with open_office(config) as office:
        try:
            task = await office.board.get(task_id)
        except MoveRefused:
            return None
        why = "applied by hand (artoo apply)"
        if task.state in (BoardState.FAILED, BoardState.REJECTED):
            task = await office.board.reconsider(task_id, OPERATOR, why)
        if task.state is not BoardState.REVIEW:
            return task.state
        ruling = await office.approvals.approve(task_id, OPERATOR, why, submission=task.submission)
        return ruling.task.state


async def check_droppable(config: Config, task_id: str) -> None:
    """Raise ConfigurationError if the board still needs the work of a task. The error names the command to use
    instead."""
    async with open_office(config) as office:
        try:
            state = (await office.board.get(task_id)).state
        except MoveRefused:
            return
    if state in (BoardState.CANCELLED, BoardState.ARCHIVED, BoardState.COMPLETED):
        return
    if state is BoardState.REVIEW:
        instead = f"to have it done otherwise: artoo task review {task_id} reject WHY"
    else:
        instead = f"to give it up, once nobody works on it: artoo task move {task_id} cancelled"
    raise ConfigurationError(f"task {task_id} is the team's ({state.value}); {instead}")


async def read_letter(office: Office, mail_id: str) -> Kept:
    """Return a letter. If it is in the operator's inbox, archive it. Raises MailRefused if it does not exist."""
    kept = await office.mailbox.get(mail_id)
    if kept.mail.recipient == OPERATOR and kept.partition == "inbox" and not kept.held:
        claim = await office.mailbox.take(OPERATOR, kept.mail.id)
        if claim is not None:
            await office.mailbox.archive(claim, "read")
    return kept


async def put_all_away(office: Office) -> int:
    """Archive all letters in the operator's inbox, including those that arrive meanwhile. Returns their number."""
    gone = 0
    while (claim := await office.mailbox.take(OPERATOR)) is not None:
        await office.mailbox.archive(claim, "read")
        gone += 1
    return gone
