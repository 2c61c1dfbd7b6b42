"""The judge's answer, for R4a and R4b alike: verdicts with quotes, and only quotes that are really there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion
from artoo.contracts.execution import FailureClass

_SHORTEST_QUOTE = 2


class JudgedCriterion(Contract):
    """One numbered criterion as the model judged it."""

    number: int = Field(ge=1)
    quote: str = ""
    verdict: Literal["pass", "fail"]
    failure_class: FailureClass | None = None
    reason: str = ""


class ValidationReport(Contract):
    """R4a's single call for all criteria that code could not decide."""

    verdicts: tuple[JudgedCriterion, ...]
    what_to_do: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge's verdict is worth: one whose quote is not in the evidence leaves its criterion open."""

    verdict: Literal["pass", "fail", "open"]
    evidence: str
    failure_class: FailureClass = FailureClass.LOGICAL


def numbered(criteria: Sequence[Criterion]) -> str:
    """The criteria as the judge sees them, numbered from 1."""
    return "\n".join(f"{number}. {criterion.text}" for number, criterion in enumerate(criteria, 1))


def usable_judgements(
    verdicts: Sequence[JudgedCriterion], criteria: Sequence[Criterion], evidence: str
) -> tuple[Judgement, ...]:
    """One judgement a criterion, in their order.

    A pass needs a quote; a fail may be about what is missing, and needs none. A quote that the evidence does not
    contain is discarded, and the verdict with it.
    """
    text = _folded(evidence)
    by_number = {verdict.number: verdict for verdict in verdicts}
    return tuple(_judgement(by_number.get(number), text) for number in range(1, len(criteria) + 1))


def _judgement(verdict: JudgedCriterion | None, evidence: str) -> Judgement:
    if verdict is None:
        return Judgement("open", "the judge gave no verdict")
    quote = _folded(verdict.quote)
    if quote and (len(quote) < _SHORTEST_QUOTE or quote not in evidence):
        return Judgement("open", "the judge's quote is not in the evidence")
    if verdict.verdict == "fail":
        failure_class = verdict.failure_class or FailureClass.LOGICAL
        return Judgement("fail", verdict.reason or verdict.quote or "judged as not met", failure_class)
    return Judgement("pass", verdict.quote) if quote else Judgement("open", "the judge passed it without a quote")


def _folded(text: str) -> str:
    return " ".join(text.split()).strip("\"'`").casefold()
