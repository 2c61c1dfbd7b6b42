"""Check a judge's quotes against the evidence, and number the criteria."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion, in_a_line
from artoo.contracts.execution import CriterionVerdict, DecidedBy
from artoo.contracts.failure import FailureClass
from artoo.contracts.text import set_off, without_middle
from artoo.verdicts.judging import left_open, verdict_on

# The reason that is recorded if a judge gave none.
UNSAID = "judged as not met"
_SHORTEST_QUOTE = 2
# Number of characters that a judge is shown of each part of a replaced check.
_OF_A_CHECK = 600


class JudgedCriterion(Contract):
    """One numbered criterion and the model's judgement of it."""

    number: int = Field(ge=1)
    quote: str = ""
    verdict: Literal["pass", "fail"]
    failure_class: FailureClass | None = None
    reason: str = ""


_REPLACED = (
    "Its check failed, and who planned the work replaced it. That the new one holds proves nothing: judge what the "
    "criterion says, and whether the old check was wrong to ask for more."
)

_REQUEST = "The request is done, in all its parts."


def numbered(criteria: Sequence[Criterion], request: str = "") -> str:
    """Return the criteria for the judge as text, numbered from 1. If the check of a criterion was replaced, the old
    check, the new one and the reason are shown. A criterion that repeats the request only refers to it, because the
    prompt shows the request."""
    texts = (_REQUEST if each.text.strip() == request.strip() else each.text for each in criteria)
    told = zip(texts, criteria, strict=True)
    return "\n".join(f"{number}. {text}{_replaced(each)}" for number, (text, each) in enumerate(told, 1))


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
    """Return one verdict for each criterion, in order, after the judge's quotes were checked.

    A pass needs a quote that is in the evidence. Without such a quote, the criterion is open. A fail needs no
    quote."""
    by_number = {judged.number: judged for judged in report}
    return tuple(_usable(each, by_number.get(number), evidence) for number, each in enumerate(criteria, 1))


def unquoted(report: Sequence[JudgedCriterion], criteria: Sequence[Criterion], evidence: str) -> list[int]:
    """Return the numbers of the criteria about which the judge is asked once more, because the verdict is missing,
    is a pass without a quote, or quotes text that is not in the evidence."""
    by_number = {judged.number: judged for judged in report}
    verdicts = ((number, by_number.get(number)) for number in range(1, len(criteria) + 1))
    return [
        number
        for number, judged in verdicts
        if judged is None
        or not (is_quoted(judged.quote, evidence) or (judged.verdict == "fail" and not judged.quote.strip()))
    ]


def _usable(criterion: Criterion, judged: JudgedCriterion | None, evidence: str) -> CriterionVerdict:
    if judged is None:
        return left_open(criterion, "the judge gave no verdict")
    if judged.verdict == "fail":
        why = judged.reason or judged.quote or UNSAID
        return verdict_on(criterion, "fail", why, DecidedBy.JUDGEMENT, judged.failure_class)
    if not is_quoted(judged.quote, evidence):
        return left_open(criterion, "the judge passed it without a quote from the evidence")
    return verdict_on(criterion, "pass", judged.quote, DecidedBy.JUDGEMENT)


def is_quoted(quote: str, evidence: str) -> bool:
    """Return whether the quote is in the evidence. A quote of one character must be a whole line of the
    evidence."""
    folded = _folded(quote)
    if len(folded) >= _SHORTEST_QUOTE:
        return folded in _folded(evidence)
    return bool(folded) and any(_folded(line) == folded for line in evidence.splitlines())


def _folded(text: str) -> str:
    return " ".join(text.split()).strip("\"'`").casefold()
