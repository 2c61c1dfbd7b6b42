"""A PlanDirective in the planner's prompt: what must change, how strongly, what stands already."""

from __future__ import annotations

from artoo.contracts.solution import Directive, PlanDirective

_WHAT_TO_DO = {
    Directive.BREAK_SYMMETRY: "Nothing has moved and the approach is wrong. Use a kind of tool not used so far.",
    Directive.CHANGE_APPROACH: "The approach is wrong. Use another method.",
    Directive.CHANGE_PATH: "The approach is right but its target is blocked. Use another file, place or source.",
    Directive.REFINE: "The approach is right and nearly there. Tighten its details.",
}
_UNCONFIRMED = "No two ways gave the same figure, so none stands. Compute it in another way, from the files."
_SIGNAL = 0.1
_EXCERPT = 300


def directive_text(directive: PlanDirective) -> str:
    """The text of the DIRECTIVE segment."""
    lines = [_UNCONFIRMED if _only_unconfirmed(directive) else _WHAT_TO_DO[directive.directive]]
    lines.append(_urgency(directive.grad_l))
    if directive.failed_criterion:
        lines.append(f"Not met: {directive.failed_criterion}")
    lines += [
        f"Failed: {outcome.intent}: {(outcome.failure_reason or '')[:_EXCERPT]}" for outcome in directive.failed[:4]
    ]
    lines += [f"Try instead: {each}" for each in directive.suggested_alternatives[:3]]
    if directive.standing:
        lines.append("Done already, plan only what is missing:")
        lines += [f"- {outcome.intent}: {outcome.output[:_EXCERPT]}" for outcome in directive.standing[:6]]
    return "\n".join(line for line in lines if line)


def _only_unconfirmed(directive: PlanDirective) -> bool:
    """Nothing was shown to be wrong: what is missing is a second way that agrees."""
    failing = [v for outcome in directive.failed for v in outcome.criteria_verdicts if v.verdict == "fail"]
    return bool(failing) and all(verdict.blameless for verdict in failing)


def _urgency(gradient: float) -> str:
    """The sign of ∇L says how strongly to apply a directive (paper, section 5.2)."""
    if gradient >= _SIGNAL:
        return "It is getting worse: apply this at full strength."
    if gradient <= -_SIGNAL:
        return "It is getting better: keep what works of the plan."
    return ""
