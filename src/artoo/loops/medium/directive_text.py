"""The directive in the planner's prompt: what must change, how strongly, what stands already."""

from __future__ import annotations

from artoo.contracts.execution import CriterionVerdict, DecidedBy
from artoo.contracts.solution import Directive, PlanDirective

_WHAT_TO_DO = {
    Directive.BREAK_SYMMETRY: "Nothing has moved: the approach itself is wrong. Plan a different one.",
    Directive.CHANGE_APPROACH: "The approach is wrong. Use another method.",
    Directive.CHANGE_PATH: "The approach is right, what it works on will not do. Use another file or source.",
    Directive.REFINE: "The approach is right and only details are missing. Mend these.",
}
_WORSE = {
    Directive.CHANGE_APPROACH: "It is further away than in the round before: keep nothing of this method.",
    Directive.REFINE: "It is further away than in the round before: take back what was changed last.",
}
_BETTER = {
    Directive.CHANGE_APPROACH: "It is nearer than in the round before: keep the parts that were right.",
    Directive.REFINE: "It is nearer than in the round before: keep the plan and change only what failed.",
}
_UNCONFIRMED = "No two ways gave the same answer, so none stands. Work it out in another way, from the files."
_EXCERPT = 300


def directive_text(directive: PlanDirective) -> str:
    """The text of the DIRECTIVE segment."""
    unmet = _unmet(directive)
    # Where nothing was shown to be wrong, what is missing is a second way that agrees.
    unconfirmed = bool(unmet) and all(verdict.blameless for verdict in unmet)
    lines = [_UNCONFIRMED if unconfirmed else _WHAT_TO_DO[directive.directive]]
    # The sign of the gradient says how strongly to apply a directive (paper, section 5.2); a plateau has none.
    lines.append(
        {"worsening": _WORSE, "improving": _BETTER}.get(directive.urgency, {}).get(directive.directive, "")
    )
    lines += [f"Not met: {verdict.criterion}: {verdict.evidence[:_EXCERPT]}" for verdict in unmet[:4]]
    if not unmet and directive.rationale:
        lines.append(f"What is missing: {directive.rationale[:_EXCERPT]}")
    lines += [f"What worked for this request before: {each}" for each in directive.suggested_alternatives[:3]]
    if directive.standing:
        lines.append("Done already, plan only what is missing:")
        lines += [f"- {outcome.intent}: {outcome.output[:_EXCERPT]}" for outcome in directive.standing[:6]]
    return "\n".join(line for line in lines if line)


def failed_checks(directive: PlanDirective) -> tuple[str, ...]:
    """The texts of criteria that a check decided against in the last round."""
    return tuple(verdict.criterion for verdict in _unmet(directive) if verdict.decided_by is DecidedBy.CHECK)


def _unmet(directive: PlanDirective) -> list[CriterionVerdict]:
    """What failed in the last round, each text once."""
    verdicts = [verdict for outcome in directive.failed for verdict in outcome.criteria_verdicts]
    failed = (verdict for verdict in (*verdicts, *directive.unmet) if verdict.verdict == "fail")
    return list({verdict.criterion: verdict for verdict in failed}.values())
