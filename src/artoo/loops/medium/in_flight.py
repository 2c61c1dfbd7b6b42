"""Apply the control law to samples of one long attempt, while the executor works.

This module is pure. Reference: SPEC section 3.5.

    sample ──► D (checked criteria), P (calls since the last sample), Ω ──► ∇L ──► a directive, the end, or nothing

The first sample only sets the baseline, because there is nothing yet to compare it with. The sample after a
directive is measured but causes no further directive, so that the executor has time to react.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artoo.contracts.execution import CriterionVerdict, DecidedBy
from artoo.contracts.solution import Directive, Loss
from artoo.contracts.steering import Sampled
from artoo.contracts.text import without_middle
from artoo.control.decision import way_on
from artoo.control.hyperparameters import Hyperparameters
from artoo.control.loss import LossTerms, deciding_gradient, distance, implausibility, loss
from artoo.loops.medium.directive_text import WHAT_TO_DO
from artoo.loops.medium.trajectory import gap_of

_WHAT_TO_DO = {**WHAT_TO_DO, Directive.BREAK_SYMMETRY: "Try a different approach."}
# Used if no call has failed, because then nothing is known about the approach.
_NO_EVIDENCE = "Find out why before you go on."
_MOST_NAMED, _EVIDENCE = 4, 1_600


@dataclass(frozen=True, slots=True)
class Course:
    """The decision about one sample. If `directive` is None, the attempt goes on without a message to the executor.
    `text` is the message that the executor reads."""

    loss: Loss
    gradient: float
    reason: str
    directive: Directive | None = None
    ends: bool = False
    text: str = ""


@dataclass(slots=True)
class Flight:
    """The samples of one attempt so far. `_worsening` counts how many samples in a row were worse, after the first
    directive."""

    attempt: int
    _previous: LossTerms | None = None
    _directed: bool = False
    _grace: bool = False
    _worsening: int = 0

    def take(self, sample: Sampled, cost: float, h: Hyperparameters) -> Course:
        """Measure a sample at the cost Ω = `cost`, and decide whether the executor gets a directive."""
        terms = LossTerms(
            distance(map(gap_of, sample.verdicts)), implausibility(sample.logical, sample.environmental), cost
        )
        gradient, first = deciding_gradient(terms, self._previous, h), self._previous is None
        self._previous = terms
        worse = gradient > h.epsilon
        self._worsening = self._worsening + 1 if worse and self._directed else 0
        measured = Loss(D=terms.distance, P=terms.implausibility, Omega=cost, L=loss(terms, h))
        grace, self._grace = self._grace, False
        if not any(verdict.decided_by is DecidedBy.CHECK for verdict in sample.verdicts):
            return Course(measured, gradient, "no check decides a criterion")
        if terms.distance <= h.delta:
            return Course(measured, gradient, f"D {terms.distance:.2f} ≤ δ {h.delta:.2f}")
        directive = Directive(way_on(terms, gradient, h).value)
        if self._worsening >= h.kill_after:
            reason = f"worsening for {self._worsening} samples after a directive (Law 2)"
            return Course(measured, gradient, reason, directive, True, f"Stop here: {reason}.")
        if first or grace:
            return Course(measured, gradient, "the first sample" if first else "given time after a directive")
        if gradient <= -h.epsilon:
            return Course(measured, gradient, "improving")
        self._directed = self._grace = True
        return Course(
            measured,
            gradient,
            "worsening" if worse else "plateau",
            directive,
            False,
            _text(sample, directive, worse),
        )


def _text(sample: Sampled, directive: Directive, worse: bool) -> str:
    """Write the directive as text for the executor, with the findings of the failed checks and an instruction."""
    unmet = [each for each in sample.verdicts if each.verdict == "fail"]
    moved = "The result is further from the goal" if worse else "Nothing has come closer to the goal"
    known = bool(sample.logical + sample.environmental)
    return "\n".join(
        (
            f"artoo has run the checks again (turn {sample.turn}). Not met:",
            *_listed(unmet),
            f"{moved} since the last time. {_WHAT_TO_DO[directive] if known else _NO_EVIDENCE}",
        )
    )


def _listed(unmet: Sequence[CriterionVerdict]) -> list[str]:
    named = unmet[:_MOST_NAMED]
    return [f"- {each.criterion}: {without_middle(each.evidence, _EVIDENCE // len(named))}" for each in named]
