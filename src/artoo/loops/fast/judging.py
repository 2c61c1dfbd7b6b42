"""How one result is judged, in the order of SPEC section 3: infrastructure, checks, evidence, then a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.execution import (
    CallStatus,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    FailureClass,
    ToolCall,
)
from artoo.contracts.roles import Role
from artoo.loops.fast.checks import CheckResult
from artoo.loops.fast.evidence import Finding
from artoo.loops.fast.evidence.trouble import failure_class_of
from artoo.loops.fast.report import Judgement

AGREES_WITH_EVIDENCE = "The result agrees with what the tools did"
"""The criterion that every result has without saying: Law 0. Listed when it is not met."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often each criterion has failed so far, counting this attempt: the paper's k and N."""

    number: int
    failures: dict[str, int]

    def counted(self, verdict: CriterionVerdict) -> CriterionVerdict:
        """The verdict with its k of N."""
        failed = self.failures.get(verdict.criterion, 0) + (verdict.verdict == "fail")
        self.failures[verdict.criterion] = failed
        if (failed, self.number) == (verdict.failed_attempts, verdict.attempts):
            return verdict
        return verdict.model_copy(update={"failed_attempts": failed, "attempts": self.number})


def accountable(failure_class: FailureClass) -> Role:
    """Who answers for an unmet subtask criterion (paper, Appendix C).

    A feasible subtask done wrongly is the executor's; one that the world does not allow is the planner's.
    """
    return Role.EXECUTOR if failure_class is FailureClass.LOGICAL else Role.PLANNER


def failing_identities(calls: Sequence[ToolCall]) -> tuple[str, ...]:
    """Identities of the calls that did not end well; of all calls when every one did."""
    bad = [call for call in calls if call.status is not CallStatus.OK]
    return tuple(dict.fromkeys(identity for call in bad or calls for identity in call.identity))


def class_of_failure(result: ExecutionResult) -> FailureClass:
    """Environmental when infrastructure failed or a tool met something missing or forbidden, else logical."""
    bad = [call for call in result.tool_calls if call.status is not CallStatus.OK]
    met_the_world = any(failure_class_of(call) is FailureClass.ENVIRONMENTAL for call in bad)
    environmental = result.infrastructure is not None or met_the_world
    return FailureClass.ENVIRONMENTAL if environmental else FailureClass.LOGICAL


def failed_outright(criteria: Sequence[Criterion], result: ExecutionResult) -> list[CriterionVerdict]:
    """All criteria unmet, because the executor or the infrastructure gave up."""
    failure_class = class_of_failure(result)
    reason = result.infrastructure or result.output or "the executor reported failure"
    return [
        _verdict(criterion, False, reason, failure_class, DecidedBy.FACT, failing_identities(result.tool_calls))
        for criterion in criteria
    ]


def failed_act(result: ExecutionResult) -> Finding | None:
    """A call that was to be the result and did not end well: what a check finds then was there before."""
    last = result.tool_calls[-1] if result.tool_calls else None
    if result.status != "uncertain" or last is None or (last.status is CallStatus.OK and not last.dropped):
        return None
    message = f"the last call ended as {last.status}: {(last.reason or last.error_output or last.output)[:200]}"
    return Finding("failed_act", message, failure_class_of(last), last.identity, contradicts=bool(last.dropped))


def from_check(criterion: Criterion, check: CheckResult) -> CriterionVerdict:
    """A criterion that its check alone decides."""
    return _verdict(criterion, check.passed, check.evidence, check.failure_class, DecidedBy.CHECK, check.identities)


def from_findings(findings: Sequence[Finding], result: ExecutionResult) -> CriterionVerdict | None:
    """Law 0's own criterion, when the evidence does not support the claim; None when it does."""
    if not findings:
        return None
    first = findings[0]
    return CriterionVerdict(
        criterion=AGREES_WITH_EVIDENCE,
        mode=Mode.VERIFIABLE,
        verdict="fail",
        failure_class=first.failure_class,
        evidence="; ".join(each.message for each in findings[:3]),
        decided_by=DecidedBy.FACT,
        identities=first.identities or failing_identities(result.tool_calls),
        accountable=accountable(first.failure_class),
        contradicted=any(each.contradicts for each in findings),
    )


def from_judge(criterion: Criterion, judgement: Judgement) -> CriterionVerdict:
    """A criterion that only a model could decide."""
    return _verdict(
        criterion, judgement.passed, judgement.evidence, judgement.failure_class, DecidedBy.JUDGEMENT, ()
    )


def undecided(criterion: Criterion, reason: str) -> CriterionVerdict:
    """Not shown to be met, so not met."""
    return _verdict(criterion, False, reason, FailureClass.LOGICAL, DecidedBy.FACT, ())


def _verdict(
    criterion: Criterion,
    passed: bool,
    evidence: str,
    failure_class: FailureClass | None,
    decided_by: DecidedBy,
    identities: tuple[str, ...],
) -> CriterionVerdict:
    failed_as = failure_class or FailureClass.LOGICAL
    return CriterionVerdict(
        criterion=criterion.text,
        mode=criterion.mode,
        verdict="pass" if passed else "fail",
        failure_class=None if passed else failed_as,
        evidence=evidence[:1_000],
        decided_by=decided_by,
        identities=() if passed else identities,
        accountable=accountable(failed_as),
    )
