"""Write the planner prompt's directive, with the required change, its strength, and the finished parts.

The control law knows the distance to the goal, the change of that distance, and the class of the failures. It does
not know the cause of a failure, so this text names failures only from the records of calls.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from artoo.contracts.execution import CriterionVerdict, DecidedBy, SubTaskOutcome
from artoo.contracts.findings import Found
from artoo.contracts.solution import Directive, PlanDirective
from artoo.contracts.text import shortened, without_middle

WHAT_TO_DO = {
    Directive.BREAK_SYMMETRY: "Plan a different approach.",
    Directive.CHANGE_APPROACH: "Use another method.",
    Directive.CHANGE_PATH: "Keep the method and change what it works on.",
    Directive.REFINE: "Keep the method and fix what is not met.",
}
# Used if all calls that failed had been refused, because then nothing is known about the approach.
_NO_EVIDENCE = "Plan what is still missing."
# Precedes the instruction on a plateau, except in the first round, which has no earlier round to be compared with.
_STILL = "Nothing has moved. "
_PLATEAUS = (Directive.BREAK_SYMMETRY, Directive.CHANGE_PATH)
_WORSE = {
    Directive.CHANGE_APPROACH: "It is further away than in the round before: keep nothing of this method.",
    Directive.REFINE: "It is further away than in the round before: take back what was changed last.",
}
_BETTER = {
    Directive.CHANGE_APPROACH: "It is nearer than in the round before: keep the parts that were right.",
    Directive.REFINE: "It is nearer than in the round before: keep the plan and change only what failed.",
}
_UNCONFIRMED = "No two ways gave the same answer, so none stands. Work it out in another way, from the files."
_LOOK = "Let a worker look at the files, or reply again without what is named below."
_CANNOT = "If it cannot be done here, say that as the reply, with what was tried and what is missing: it ends so."
_OWN_CHECK = (
    "Your own check, which may be what is wrong (then plan a look for its judge, and replace it with "
    '"amend": [{"criterion": its text, "check": CHECK, "reason": why}]): '
)
_EXCERPT, _UNMET = 300, 1_200
_MOST_NAMED = 6
# At most this many calls that failed because of the environment are named.
_MOST_FAILED = 3


def directive_text(directive: PlanDirective, amendable: Collection[str] = ()) -> str:
    """Write the DIRECTIVE segment. `amendable`: criteria whose check the planner wrote and may replace."""
    unmet = _unmet(directive)
    lines = [_what_to_do(directive, unmet)]
    # The sign of the gradient gives the strength of a directive (paper, section 5.2); a plateau has no sign.
    strength = {"worsening": _WORSE, "improving": _BETTER}.get(directive.urgency, {})
    lines.append(strength.get(directive.directive, "") if _has_evidence(directive) else "")
    if directive.directive is Directive.CHANGE_PATH:
        lines += _refused_by_the_world(directive)
    lines += [
        f"Not met: {each.criterion}: {without_middle(each.evidence, _UNMET // len(unmet[:4]))}"
        for each in unmet[:4]
    ]
    lines += [_CANNOT] if any(verdict.of_world for verdict in unmet) else []
    lines += _about_checks(directive, amendable)
    if not unmet and directive.rationale:
        lines.append(f"What is missing: {directive.rationale[:_EXCERPT]}")
    lines += [f"What worked for this request before: {each}" for each in directive.suggested_alternatives[:3]]
    told = (each for each in directive.failed if each.status == "matched")
    lines += (f"{_how(each)}: {each.intent}: {each.output[:_EXCERPT]}" for each in islice(told, _MOST_NAMED))
    if directive.standing:
        lines.append("Done already, plan only what is missing:")
        lines += [
            f"- {outcome.intent}: {outcome.output[:_EXCERPT]}" for outcome in directive.standing[:_MOST_NAMED]
        ]
    return "\n".join(line for line in lines if line)


def _how(outcome: SubTaskOutcome) -> str:
    """Describe a part that is not finished. Either it failed, or its executor reported it as done although no call
    shows it."""
    return "Claimed, no call shows it; plan it again if it is needed" if outcome.done else "Not done"


def _what_to_do(directive: PlanDirective, unmet: Sequence[CriterionVerdict]) -> str:
    """Return the control law's instruction, or a more precise one if code knows what is missing."""
    found = {verdict.reason.found if verdict.reason is not None else None for verdict in unmet}
    if found in ({Found.WAYS_DIFFER}, {Found.NOT_LOOKED_UP}):
        return _UNCONFIRMED if Found.WAYS_DIFFER in found else _LOOK
    if not _has_evidence(directive):
        return _NO_EVIDENCE
    still = directive.prev_directive is not Directive.INIT and directive.directive in _PLATEAUS
    return (_STILL if still else "") + WHAT_TO_DO[directive.directive]


def _has_evidence(directive: PlanDirective) -> bool:
    """Return whether the failures give a value for P. Without any failure, P would be 0 / 0, which says nothing
    about the approach."""
    return directive.failure_class != "mixed" or directive.loss.P > 0


def _refused_by_the_world(directive: PlanDirective) -> list[str]:
    """List the last calls that failed because something was missing, forbidden or disconnected, as their records
    describe them."""
    calls = [call for outcome in directive.failed for call in outcome.tool_calls]
    failed = dict.fromkeys(call.line() for call in reversed(calls) if call.met_the_world)
    return [f"Failed: {line}" for line in islice(failed, _MOST_FAILED)]


def _about_checks(directive: PlanDirective, amendable: Collection[str]) -> list[str]:
    """List the planner's own checks that failed, with the executors' comments on them, because an executor may know
    that a check is wrong. A comment that the verdict already contains is omitted.
    """
    own = may_amend(directive, amendable)
    held = [each for each in directive.failed if any(one.criterion in own for one in each.criteria_verdicts)]
    known = " ".join(verdict.evidence for verdict in _unmet(directive))
    said = (each.output.strip() for each in held)
    lines = [f"Said by the worker: {shortened(each, _EXCERPT)}" for each in said if each and each not in known]
    return [_OWN_CHECK + "; ".join(own[:_MOST_NAMED]), *lines[:_MOST_FAILED]] if own else []


def may_amend(directive: PlanDirective, amendable: Collection[str]) -> list[str]:
    """Return the criteria whose check the planner wrote and may replace, because it failed in the last round."""
    return [criterion for criterion in failed_checks(directive) if criterion in amendable]


def failed_checks(directive: PlanDirective) -> dict[str, str]:
    """Return the findings of failed checks in the last round, by the text of their criterion."""
    return {each.criterion: each.evidence for each in _unmet(directive) if each.decided_by is DecidedBy.CHECK}


def _unmet(directive: PlanDirective) -> list[CriterionVerdict]:
    """Return the failing verdicts of the last round, each criterion once."""
    verdicts = [verdict for outcome in directive.failed for verdict in outcome.criteria_verdicts]
    failed = (verdict for verdict in (*verdicts, *directive.unmet) if verdict.verdict == "fail")
    return list({verdict.criterion: verdict for verdict in failed}.values())
