"""From failed verdicts to one correction of a few lines: the fact, and what its judge suggests. Each thing once."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.execution import (
    CorrectionSignal,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    FailureClass,
)

_REASON = 400
_NAMED = 2


def correction_for(
    result: ExecutionResult, failed: Sequence[CriterionVerdict], advice: str = ""
) -> CorrectionSignal:
    """The signal for these failed verdicts. `advice` is the judge's, when there was one.

    The record of the calls stays in the executor's prompt, so none of them is repeated here.
    """
    logical = sum(verdict.failure_class is not FailureClass.ENVIRONMENTAL for verdict in failed)
    reasons = dict.fromkeys(map(_reason, failed))
    return CorrectionSignal(
        subtask_id=result.subtask_id,
        attempt=result.attempt,
        what_was_wrong="; ".join(list(reasons)[:_NAMED]),
        what_to_do=advice.strip()[:_REASON],
        failed_criterion=failed[0].criterion,
        failure_class=FailureClass.LOGICAL if logical * 2 >= len(failed) else FailureClass.ENVIRONMENTAL,
    )


def _reason(verdict: CriterionVerdict) -> str:
    """A fact speaks for itself; a check or a judge speaks about a criterion."""
    said = verdict.evidence.strip()[:_REASON]
    return said if verdict.decided_by is DecidedBy.FACT else f"{verdict.criterion}: {said}"
