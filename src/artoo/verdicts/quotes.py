"""What a model's verdict is worth: the quote that it gives, looked up in what it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion, in_a_line
from artoo.contracts.execution import CriterionVerdict, DecidedBy
from artoo.contracts.failure import FailureClass
from artoo.contracts.shortened import set_off, without_middle
from artoo.verdicts.judging import left_open, verdict_on

UNSAID = "judged as not met"
"""Why, of a judge that gave no reason."""
_SHORTEST_QUOTE = 2
_OF_A_CHECK = 600
"""Characters of each thing that a judge is told of a check that was replaced."""


class JudgedCriterion(Contract):
    """One numbered criterion as the model judged it."""

    number: int = Field(ge=1)
    quote: str = ""
    verdict: Literal["pass", "fail"]
    failure_class: FailureClass | None = None
    reason: str = ""


_REPLACED = (
    "Its check failed, and who planned the work replaced it. That the new one holds proves nothing: judge what the "
    "criterion says, and whether the old check was wrong to ask for more."
)


def numbered(criteria: Sequence[Criterion]) -> str:
    """The criteria as the judge sees them, numbered from 1; of a check that was replaced both, and why."""
    return "\n".join(f"{number}. {each.text}{_replaced(each)}" for number, each in enumerate(criteria, 1))


def _replaced(criterion: Criterion) -> str:
    known = criterion.amended
    if known is None:
        return ""
    was, found = f"It was: {in_a_line(known.before)}", f"It found: {known.failed}"
    told = (_REPLACED, was, found, f"It is: {in_a_line(known.after)}", f"Reason given: {known.reason}")
    return "\n" + set_off("\n".join(without_middle(each, _OF_A_CHECK) for each in told))


def usable_verdicts(
    report: Sequence[JudgedCriterion], criteria: Sequence[Criterion], evidence: str
) -> tuple[CriterionVerdict, ...]:
    """One verdict a criterion, in their order: what the judge's is worth.

    A pass needs a quote; a fail may be about what is missing, and needs none. A quote that the evidence does not
    contain is discarded, and the verdict with it: its criterion is open.
    """
    text = _folded(evidence)
    by_number = {judged.number: judged for judged in report}
    return tuple(_usable(each, by_number.get(number), text) for number, each in enumerate(criteria, 1))


def _usable(criterion: Criterion, judged: JudgedCriterion | None, evidence: str) -> CriterionVerdict:
    if judged is None:
        return left_open(criterion, "the judge gave no verdict")
    quote = _folded(judged.quote)
    if quote and (len(quote) < _SHORTEST_QUOTE or quote not in evidence):
        return left_open(criterion, "the judge's quote is not in the evidence")
    if judged.verdict == "fail":
        why = judged.reason or judged.quote or UNSAID
        return verdict_on(criterion, "fail", why, DecidedBy.JUDGEMENT, judged.failure_class)
    if not quote:
        return left_open(criterion, "the judge passed it without a quote")
    return verdict_on(criterion, "pass", judged.quote, DecidedBy.JUDGEMENT)


def _folded(text: str) -> str:
    return " ".join(text.split()).strip("\"'`").casefold()
