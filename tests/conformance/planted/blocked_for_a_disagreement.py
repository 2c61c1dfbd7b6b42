"""A round in which nothing was shown to be wrong, only not confirmed, and its tools are blocked all the same."""

from __future__ import annotations

from planting import Stream, StreamFault, changed

from artoo.contracts.execution import CriterionVerdict, SubTaskOutcome


def _open(verdict: CriterionVerdict) -> CriterionVerdict:
    if verdict.verdict == "pass":
        return verdict
    return changed(verdict, criterion="Two ways agree", blameless=True, decided_by="fact", identities=())


def _unconfirmed(outcome: SubTaskOutcome) -> SubTaskOutcome:
    return changed(outcome, criteria_verdicts=tuple(map(_open, outcome.criteria_verdicts)))


def plant(stream: Stream) -> None:
    outcome = _unconfirmed(stream.payload("SubTaskOutcome"))
    stream.put("SubTaskOutcome", payload=outcome)
    stream.change("ReplanRequest", outcomes=(outcome,))
    stream.change("PlanDirective", failed=(outcome,), blocked_tools=("shell:sed",))


FAULT = StreamFault("a second plan", plant)
