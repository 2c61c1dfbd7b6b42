"""Make verdicts from k of N attempts, with the accountable role, failure class and correction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from artoo.contracts.criteria import AGREES_WITH_EVIDENCE, OF_THE_WORLD, CommandSucceeds, Criterion, Mode, in_a_line
from artoo.contracts.errors import BudgetExhausted
from artoo.contracts.execution import (
    EVIDENCE_KEPT,
    CorrectionSignal,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    GapPoint,
    ToolCall,
    identities_of,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import BLAMES_NOBODY, Found, Reason
from artoo.contracts.roles import Role
from artoo.contracts.text import shortened, without_middle
from artoo.evidence.facts import Fact
from artoo.ports.evidence import EvidenceSource
from artoo.verdicts.checks import CheckResult, lacks, run_check

# Limits of a correction: the characters of all its reasons together, the characters of the judge's advice, and the
# number of reasons. A single failed check has room for both ends of its output and of its error output.
_REASONS, _ADVICE, _NAMED = 1_200, 400, 2
# The reason of a criterion that stays open because no call shows anything about it.
OWN_WORDS = Reason(found=Found.OWN_WORDS)
# The criterion of Law 0 itself. A fact fails it if all other criteria of the result are decided.
LAW_0 = Criterion(text=AGREES_WITH_EVIDENCE, mode=Mode.VERIFIABLE)


@dataclass(frozen=True, slots=True)
class Judged:
    """The decisions about an attempt. `advice` is the judge's advice for the next attempt. If `final` is true, no
    correction can help. If `hopeless` is true, no other plan can help."""

    verdicts: tuple[CriterionVerdict, ...]
    advice: str = ""
    final: bool = False
    hopeless: bool = False

    @classmethod
    def open(cls, criteria: Sequence[Criterion], reason: str | Reason) -> Judged:
        """Return open verdicts on these criteria."""
        return cls(tuple(left_open(each, reason) for each in criteria))

    @property
    def failed(self) -> tuple[CriterionVerdict, ...]:
        """Return the failed verdicts."""
        return tuple(verdict for verdict in self.verdicts if verdict.verdict == "fail")


def counted(verdict: CriterionVerdict, attempt: int, before: Sequence[GapPoint]) -> CriterionVerdict:
    """Return the verdict with the k of N of the paper: the number of failed attempts (those in `before` and this
    one) and the number of all attempts."""
    failed = sum(verdict.criterion in point.unmet_criteria for point in before) + (verdict.verdict == "fail")
    return verdict.model_copy(update={"failed_attempts": failed, "attempts": attempt})


def accountable(failure_class: FailureClass) -> Role:
    """Return the role that is accountable for an unmet criterion of a subtask (paper, Appendix C).

    The executor is accountable if the subtask was feasible but done wrongly, and the planner if the world does not
    allow the subtask.
    """
    return Role.EXECUTOR if failure_class is FailureClass.LOGICAL else Role.PLANNER


def failing_identities(calls: Sequence[ToolCall]) -> tuple[str, ...]:
    """Return the identities of the calls that did not succeed. If all calls succeeded, return those of all
    calls."""
    bad = [call for call in calls if call.went_wrong]
    return tuple(identities_of(bad or calls))


def class_of_failure(result: ExecutionResult) -> FailureClass:
    """Return `environmental` if the infrastructure failed or if a tool met something that is missing or forbidden.
    Otherwise return `logical`."""
    met_the_world = any(call.met_the_world for call in result.attempt_calls)
    environmental = result.infrastructure is not None or met_the_world
    return FailureClass.ENVIRONMENTAL if environmental else FailureClass.LOGICAL


def failed_outright(criteria: Sequence[Criterion], result: ExecutionResult) -> tuple[CriterionVerdict, ...]:
    """Return a failed verdict on every criterion, because the executor gave up or ran out of time."""
    reason: str | Reason = result.output or "the executor reported failure"
    if result.infrastructure is not None:
        reason = Reason(found=Found.OUT_OF_TIME, said=result.infrastructure)
    fact = Fact(reason, class_of_failure(result), failing_identities(result.attempt_calls), contradicts=False)
    return against(criteria, fact)


def no_budget(error: BudgetExhausted) -> Reason:
    """Return the reason why nothing confirms a delivered result: the budget left no call of a model to judge it."""
    return Reason(found=Found.NO_BUDGET, subject=error.budget, said=str(error))


async def held_before(criteria: Sequence[Criterion], source: EvidenceSource) -> frozenset[str]:
    """Return the texts of those criteria of the planner (R2) whose check passes before the work, so that it proves
    nothing later.

    They include a check that passes because the work had already begun, for example after a crash."""
    found = set[str]()
    for each in criteria:
        if each.by != "person" and isinstance(each.check, OF_THE_WORLD):
            result = await run_check(each.check, output="", tool_calls=(), source=source)
            found.update((each.text,) if result.passed else ())
    return frozenset(found)


async def checked(
    criteria: Sequence[Criterion],
    output: str,
    calls: Sequence[ToolCall],
    source: EvidenceSource,
    asked: str,
    held: Collection[str] = (),
) -> dict[str, CriterionVerdict]:
    """Return the verdicts on those criteria that have a check. The key of each is the criterion's text. `asked`
    describes the work.

    A check that the user gave always decides. A check of the planner (R2) leaves its criterion open in three cases:
    it gave no verdict, it passed before the work (`held`), or it inspects files although no call could have changed
    any. A check that replaced a failed one can refute but not confirm. A command that passed before and after the
    work protects existing behaviour (for example that tests still pass). It decides only if another check shows
    that work was done. Commands run last, so that they know which required files the file checks found missing."""
    found, guards = dict[str, CriterionVerdict](), dict[str, CriterionVerdict]()
    worked = False
    idle = all(call.only_looked or call.never_ran for call in calls)
    for each in sorted(criteria, key=lambda each: isinstance(each.check, CommandSucceeds)):
        if each.check is None:
            continue
        result = await run_check(
            each.check,
            output=output,
            tool_calls=calls,
            source=source,
            asked="" if each.by == "person" else asked,
            never_made=_never_made(found.values()),
        )
        empty = each.text in held or (idle and isinstance(each.check, OF_THE_WORLD))
        if each.by != "person" and not result.decided:
            found[each.text] = left_open(each, result.evidence)
        elif each.by != "person" and result.passed and empty:
            found[each.text] = left_open(each, Reason(found=Found.HELD_BEFORE, subject=in_a_line(each.check)))
            if each.check_decides and not idle and isinstance(each.check, CommandSucceeds):
                guards[each.text] = from_check(each, result)
        elif each.check_decides or not result.passed:
            found[each.text] = _may_be_wrong(from_check(each, result), each, output, calls)
            worked = worked or (result.passed and each.by != "person" and isinstance(each.check, OF_THE_WORLD))
    found |= guards if worked else {}
    return {each.text: found[each.text] for each in criteria if each.text in found}


def _never_made(checked: Iterable[CriterionVerdict]) -> tuple[str, ...]:
    """Return the missing files that the checks require."""
    reasons = (verdict.reason for verdict in checked if verdict.reason is not None)
    return tuple(reason.subject for reason in reasons if reason.found is Found.MISSING)


def _may_be_wrong(
    verdict: CriterionVerdict, criterion: Criterion, output: str, calls: Sequence[ToolCall]
) -> CriterionVerdict:
    """Mark a failed check of the planner (R2) as blaming no tool if every call succeeded, because then the check
    may be wrong. If the answer is the output of a call, the verdict cites that call instead."""
    if verdict.verdict != "fail" or verdict.identities or criterion.by == "person":
        return verdict
    ran = [call for call in calls if not call.never_ran]
    of_answer = not isinstance(criterion.check, OF_THE_WORLD)
    refused = [call for call in ran if of_answer and call.output.strip() == output.strip()]
    if refused:
        return verdict.model_copy(update={"identities": tuple(identities_of(refused))})
    bad = any(call.went_wrong or call.dropped for call in ran)
    return verdict if bad else verdict.model_copy(update={"blameless": True})


def from_check(criterion: Criterion, check: CheckResult) -> CriterionVerdict:
    """Return the verdict on a criterion for which the check alone decides."""
    verdict = "pass" if check.passed else "fail"
    found = verdict_on(criterion, verdict, check.evidence, DecidedBy.CHECK, check.failure_class, check.identities)
    return found if criterion.check is None else found.model_copy(update={"check": in_a_line(criterion.check)})


def refuted(
    checked: Collection[CriterionVerdict], left: Sequence[Criterion], fact: Fact, calls: Sequence[ToolCall]
) -> tuple[CriterionVerdict, ...]:
    """Return the verdicts after a fact refuted a result: those of the checks, and a failure for each criterion in
    `left`.

    If the last call missed a file that the work itself had to make, the failure is logical and not
    environmental."""
    last = next((call for call in reversed(calls) if not call.never_ran), None)
    if last is not None and lacks(last.absences, _never_made(checked)):
        fact = replace(fact, failure_class=FailureClass.LOGICAL)
    return (*(missed_by(verdict, fact) for verdict in checked), *against(left, fact))


def missed_by(verdict: CriterionVerdict, fact: Fact) -> CriterionVerdict:
    """Change the class of a failed check to environmental if the fact against the result is environmental.

    A check sees that something is missing, but not why. By itself it would class every failure as logical."""
    if verdict.verdict != "fail" or fact.failure_class is not FailureClass.ENVIRONMENTAL:
        return verdict
    worldly = {"failure_class": fact.failure_class, "accountable": accountable(fact.failure_class)}
    cited = verdict.identities or fact.identities
    blameless = verdict.blameless and not cited
    return verdict.model_copy(update={**worldly, "identities": cited, "blameless": blameless})


def given_up(
    checked: Sequence[CriterionVerdict], left: Sequence[Criterion], fact: Fact
) -> tuple[CriterionVerdict, ...]:
    """Return the verdicts on work that was given up: those of the checks, and a failure because of `fact` for each
    other criterion.

    If no criteria are left, the reason is appended to the evidence of the first failed check."""
    failed = [verdict for verdict in checked if verdict.verdict == "fail"]
    if left or not failed:
        return (*checked, *against(left, fact))
    seen = shortened(failed[0].evidence, EVIDENCE_KEPT // 2)
    said = shortened(f"{seen}; {fact.message}", EVIDENCE_KEPT)
    return tuple(
        verdict.model_copy(update={"evidence": said}) if verdict is failed[0] else verdict for verdict in checked
    )


def against(criteria: Sequence[Criterion], fact: Fact) -> tuple[CriterionVerdict, ...]:
    """Return failures of all these criteria because of a fact. If there are no criteria, fail the criterion of Law
    0 itself."""
    return tuple(from_fact(each, fact) for each in criteria or (LAW_0,))


def from_fact(criterion: Criterion, fact: Fact) -> CriterionVerdict:
    """Return the verdict on a criterion that a fact fails."""
    verdict = verdict_on(criterion, "fail", fact.message, DecidedBy.FACT, fact.failure_class, fact.identities)
    return verdict.model_copy(update={"contradicted": fact.contradicts})


def of_nobody(reason: Reason | None) -> bool:
    """Return whether a finding blames no tool, whatever the calls were."""
    return reason is not None and reason.found in BLAMES_NOBODY


def held(verdict: CriterionVerdict) -> bool:
    """Return whether the check of a criterion passes now and also passed before the work."""
    return verdict.reason is not None and verdict.reason.found is Found.HELD_BEFORE


def left_open(criterion: Criterion, reason: str | Reason) -> CriterionVerdict:
    """Return the verdict on a criterion that nothing decided."""
    return verdict_on(criterion, "open", reason, DecidedBy.NOBODY)


def verdict_on(
    criterion: Criterion,
    verdict: Literal["pass", "fail", "open"],
    evidence: str | Reason,
    decided_by: DecidedBy,
    failure_class: FailureClass | None = None,
    identities: tuple[str, ...] = (),
) -> CriterionVerdict:
    """Return the verdict on a criterion, with its evidence as text. If code found the evidence, the verdict also
    has it as a typed reason."""
    failed_as = failure_class or FailureClass.LOGICAL
    reason = evidence if isinstance(evidence, Reason) else None
    blameless = verdict == "fail" and of_nobody(reason)
    return CriterionVerdict(
        criterion=criterion.text,
        mode=criterion.mode,
        verdict=verdict,
        failure_class=failed_as if verdict == "fail" else None,
        evidence=without_middle(evidence.text if isinstance(evidence, Reason) else evidence, EVIDENCE_KEPT),
        reason=reason,
        decided_by=decided_by,
        identities=identities if verdict == "fail" and not blameless else (),
        blameless=blameless,
        accountable=accountable(failed_as),
    )


def correction_for(
    result: ExecutionResult, failed: Sequence[CriterionVerdict], advice: str = ""
) -> CorrectionSignal:
    """Return one correction of a few lines for the failed verdicts. It contains each fact once, and the judge's
    `advice` if there is any.

    The correction does not repeat the calls, because their record stays in the executor's prompt."""
    logical = sum(verdict.failure_class is not FailureClass.ENVIRONMENTAL for verdict in failed)
    reasons = dict.fromkeys(reason_of(verdict, _REASONS // min(len(failed), _NAMED)) for verdict in failed)
    return CorrectionSignal(
        subtask_id=result.subtask_id,
        attempt=result.attempt,
        what_was_wrong="; ".join(list(reasons)[:_NAMED]),
        what_to_do=shortened(advice.strip(), _ADVICE),
        failed_criterion=failed[0].criterion,
        failure_class=FailureClass.LOGICAL if logical * 2 >= len(failed) else FailureClass.ENVIRONMENTAL,
    )


def reason_of(verdict: CriterionVerdict, most: int = EVIDENCE_KEPT) -> str:
    """Return the reason of a failure. If a check or a judge gave the reason, it begins with the criterion."""
    said = without_middle(verdict.evidence.strip(), most)  # The end is kept, because a test prints the cause there.
    return said if verdict.decided_by is DecidedBy.FACT else f"{verdict.criterion}: {said}"
