"""A correction although every criterion has passed."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.execution import CorrectionSignal
from artoo.contracts.failure import FailureClass
from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    result = stream.get("ExecutionResult")
    signal = CorrectionSignal(
        subtask_id=str(result.subtask_id),
        attempt=1,
        what_was_wrong="nothing",
        what_to_do="again",
        failed_criterion="none",
        failure_class=FailureClass.LOGICAL,
    )
    stream.say(
        signal,
        sender=Role.AGENT_VALIDATOR,
        cause=result,
        subtask=result.subtask_id,
        after=stream.get("CriterionJudged"),
    )


FAULT = StreamFault("two at once", plant)
