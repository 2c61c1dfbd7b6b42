"""Select the messages of a log that still hold at a resumption, and the endings that can be resumed.

The functions are pure.

If a role ended its work after an interruption, the work is still valid, because it does not follow from the
interruption.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.recording import Observed, Source, TaskResumed
from artoo.contracts.request import Interrupt
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import FinalResult, RoleFailure, StoppedBy
from artoo.contracts.steering import PlanAnswered, PlanProposed, QuestionAnswered, QuestionAsked

RESUMABLE = frozenset({StoppedBy.INTERRUPTED, StoppedBy.NO_MODEL, StoppedBy.INTERNAL})
"""Reasons to stop after which a task can be resumed, because they lie outside of the task itself."""


def standing(envelopes: Iterable[Envelope]) -> list[Envelope]:
    """Return the messages as they would be if the task had never been stopped. Each TaskResumed stays at its
    position."""
    kept: list[Envelope] = []
    for envelope in envelopes:
        if isinstance(envelope.payload, TaskResumed):
            dropped = set(envelope.payload.dropped)
            kept = [earlier for earlier in kept if earlier.id not in dropped]
        kept.append(envelope)
    return kept


def to_drop(stream: Sequence[Envelope]) -> tuple[str, ...]:
    """Return the ids of the messages that are no longer valid if the task is resumed now, in order.

    These are interruptions, plans that the user rejected, failures of roles and of models that could not be
    reached, questions without an answer, an Ending without a Settled, and all messages that followed from one of
    these. If an executor's last look at the files was followed by nothing, it is no longer valid either, because
    the user may have changed files meanwhile.
    """
    answers = (ConfirmationAnswer, Settled, QuestionAnswered, PlanAnswered)
    answered = {e.cause_id for e in stream if isinstance(e.payload, answers) and not _rejects(e)}
    dropped: dict[str, None] = {}
    for envelope in stream:
        if envelope.cause_id in dropped or _ends(envelope, answered):
            dropped[envelope.id] = None
    last = {e.subtask_id: e for e in stream if e.sender is Role.EXECUTOR and e.id not in dropped}
    stale = {e.id for e in last.values() if _shows_files(e)}
    return tuple(envelope.id for envelope in stream if envelope.id in dropped or envelope.id in stale)


def _shows_files(said: Envelope) -> bool:
    return isinstance(said.payload, Observed) and said.payload.source is Source.SURROUNDINGS


def _rejects(said: Envelope) -> bool:
    return isinstance(said.payload, PlanAnswered) and said.payload.decision == "reject"


def _ends(envelope: Envelope, answered: set[str | None]) -> bool:
    match envelope.payload:
        case Interrupt():
            return True
        case RoleFailure(stopped_by=why):
            return why in RESUMABLE
        case FinalResult(stopped_by=why):
            return why in RESUMABLE
        case ModelCalled(failure=failure) if failure is not None:
            return failure.nature in ("unreachable", "refused", "other")
        case ConfirmationRequest() | Ending() | QuestionAsked() | PlanProposed():
            return envelope.id not in answered
        case _:
            return False
