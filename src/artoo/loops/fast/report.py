"""The judge's answer, for R4a and R4b alike: verdicts with quotes, and only quotes that are really there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion
from artoo.contracts.execution import FailureClass

_SPACE = re.compile(r"\s+")
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


class MergeReport(Contract):
    """R4b's single call for all task criteria that code could not decide."""

    verdicts: tuple[JudgedCriterion, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict that may be used: a pass always stands on a quote found in the evidence."""

    passed: bool
    evidence: str
    failure_class: FailureClass


def numbered(criteria: Sequence[Criterion]) -> str:
    """The criteria as the judge sees them, numbered from 1."""
    return "\n".join(f"{number}. {criterion.text}" for number, criterion in enumerate(criteria, 1))


def usable_judgements(
    verdicts: Sequence[JudgedCriterion], criteria: Sequence[Criterion], evidence: str
) -> tuple[Judgement, ...]:
    """One judgement a criterion, in their order.

    A quote that the evidence does not contain is discarded and the verdict with it; what is left without a
    verdict did not pass.
    """
    text = _folded(evidence)
    by_number = {verdict.number: verdict for verdict in verdicts}
    return tuple(_judgement(by_number.get(number), text) for number in range(1, len(criteria) + 1))


def _judgement(verdict: JudgedCriterion | None, evidence: str) -> Judgement:
    if verdict is None:
        return Judgement(False, "the judge gave no verdict", FailureClass.LOGICAL)
    quote = _folded(verdict.quote)
    quoted = len(quote) >= _SHORTEST_QUOTE and quote in evidence
    failure_class = verdict.failure_class or FailureClass.LOGICAL
    if verdict.verdict == "fail":
        return Judgement(False, verdict.reason or verdict.quote or "judged as not met", failure_class)
    if not quoted:
        return Judgement(False, "the judge's quote is not in the evidence", FailureClass.LOGICAL)
    return Judgement(True, verdict.quote, failure_class)


def _folded(text: str) -> str:
    return _SPACE.sub(" ", text).strip().strip("\"'`").casefold()
