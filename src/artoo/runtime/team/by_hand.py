"""What the operator does with the board and their own letters, in a terminal or in the page."""

from __future__ import annotations

from artoo.agents.governance import TRANSITIONS
from artoo.agents.mail_rows import Kept
from artoo.contracts.agents import OPERATOR, BoardState
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.team.office import Office


def moves_from(state: BoardState) -> tuple[BoardState, ...]:
    """Where a task that stands so can be moved by hand and without a review: on, away, or out of sight."""
    on = {
        BoardState.FAILED: BoardState.PENDING,
        BoardState.REJECTED: BoardState.PENDING,
        BoardState.BLOCKED: BoardState.IN_PROGRESS,
    }
    wanted = (on.get(state), BoardState.CANCELLED, BoardState.ARCHIVED)
    return tuple(after for after in wanted if after is not None and after in TRANSITIONS[state])


async def move(office: Office, task_id: str, state: BoardState, why: str) -> None:
    """Moves a task as the operator.

    Raises GovernanceRefused as the board does, ConfigurationError for a state that no move leads to.
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
    """What to do instead of a move that is not the operator's to make."""
    if state in (BoardState.COMPLETED, BoardState.REJECTED):
        verdict = "approve" if state is BoardState.COMPLETED else 'reject "why"'
        return f"a task becomes {state.value} by a review: artoo task review {task_id} {verdict}"
    return f"a task becomes {state.value} by whoever works on it, not by a move"


async def read_letter(office: Office, mail_id: str) -> Kept:
    """A letter. One of the operator's inbox is dealt with then. Raises MailRefused when there is none."""
    kept = await office.mailbox.get(mail_id)
    if kept.mail.recipient == OPERATOR and kept.partition == "inbox" and not kept.held:
        claim = await office.mailbox.take(OPERATOR, kept.mail.id)
        if claim is not None:
            await office.mailbox.archive(claim, "read")
    return kept
