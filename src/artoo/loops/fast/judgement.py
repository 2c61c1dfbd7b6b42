"""Judgement: one call of a capable model for the criteria that are left, shown the facts and held to quote them.

What a quote is worth is decided here for R4a and R4b alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, ModelAnswerInvalid
from artoo.contracts.execution import CriterionVerdict, DecidedBy, ExecutionResult, FailureClass, ToolCall
from artoo.contracts.plan import SubTask
from artoo.contracts.shortened import without_middle
from artoo.loops.asking import Asker
from artoo.loops.fast.judging import Judged, left_open, no_budget, verdict_on
from artoo.prompts.segments import Segment

FACTS_SHOWN = 24_000
"""Characters of calls and difference that the judge is shown."""
DIFFERENCE_SHOWN = 8_000
_SHORTEST_SHARE = 600
_INPUT_SHOWN = 1_000
"""Characters of a call's input; of one that the answer rests on a quarter of its share, if that is more."""
_CLAIM_SHOWN = 6_000
_REPORT_TOKENS = 800
_SHORTEST_QUOTE = 2

CANNOT = Criterion(text="What was tried shows that this cannot be done here")
"""What is asked about a result that says it cannot be done."""


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


async def judge(
    asker: Asker,
    subtask: SubTask,
    criteria: Sequence[Criterion],
    result: ExecutionResult,
    difference: str,
    cause: Envelope,
) -> Judged:
    """The judge's verdicts on these criteria, as far as their quotes are in what it was shown."""
    shown = facts_of(result, difference)
    segments = {
        Segment.PROJECT_GUIDE: subtask.guide,
        Segment.TASK: subtask.intent,
        Segment.CONTEXT: f"Criteria:\n{numbered(criteria)}\n\nClaim: {claim_of(result, shown)}",
        Segment.EVIDENCE: shown,
    }
    try:
        report = await asker.ask(
            "ValidationReport",
            ValidationReport,
            segments,
            cause=cause,
            max_tokens=_REPORT_TOKENS,
            images=subtask.images,
        )
    except ModelAnswerInvalid as error:
        return Judged.open(criteria, f"no usable verdict: {error}")
    except BudgetExhausted as error:
        return Judged.open(criteria, no_budget(error))
    return Judged(usable_verdicts(report.verdicts, criteria, shown), report.what_to_do)


def claim_of(result: ExecutionResult, shown: str) -> str:
    """What is claimed; a longer output that stands in the evidence as a whole is not shown twice."""
    claim = result.output.strip()
    if result.put_out_by is not None and len(claim) > _SHORTEST_SHARE and claim in shown:
        return f"what call {result.put_out_by} put out, word for word and all of it."
    return without_middle(result.output, _CLAIM_SHOWN)


def facts_of(result: ExecutionResult, difference: str) -> str:
    """Calls with their numbers and ends, those that the answer rests on most fully, then what the task changed."""
    calls = list(enumerate(result.tool_calls, 1))
    cited = [each for each in calls if each[0] in result.sources] or calls
    share = max(_SHORTEST_SHARE, FACTS_SHOWN // max(1, len(cited)))
    parts = [
        _call(number, call, share if (number, call) in cited else _SHORTEST_SHARE)
        for number, call in calls[-FACTS_SHOWN // _SHORTEST_SHARE :]
    ]
    changed = f"\n{without_middle(difference, DIFFERENCE_SHOWN)}" if difference else " nothing"
    parts.append(f"Changed by this task:{changed}")
    return "\n\n".join(parts)


def _call(number: int, call: ToolCall, share: int) -> str:
    code = "" if call.exit_code is None else f", exit {call.exit_code}"
    given = without_middle(call.input, max(_INPUT_SHOWN, share // 4))
    lines = [f"call {number}: {call.tool} {given} [{call.status}{code}]"]
    why = "" if call.reason is None or call.reason in call.error_output else call.reason
    lines += [without_middle(part, share) for part in (call.output, call.error_output, why) if part.strip()]
    lines += [f"changed: {', '.join(call.changes)}"] if call.changes else []
    lines += [f"withheld: {', '.join(call.dropped)}"] if call.dropped else []
    return "\n".join(lines)


def numbered(criteria: Sequence[Criterion]) -> str:
    """The criteria as the judge sees them, numbered from 1."""
    return "\n".join(f"{number}. {criterion.text}" for number, criterion in enumerate(criteria, 1))


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
        why = judged.reason or judged.quote or "judged as not met"
        return verdict_on(criterion, "fail", why, DecidedBy.JUDGEMENT, judged.failure_class)
    if not quote:
        return left_open(criterion, "the judge passed it without a quote")
    return verdict_on(criterion, "pass", judged.quote, DecidedBy.JUDGEMENT)


def _folded(text: str) -> str:
    return " ".join(text.split()).strip("\"'`").casefold()
