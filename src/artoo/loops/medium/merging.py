"""Merge the results of several subtasks into one answer by a model call, with token limit and two tries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, ModelAnswerInvalid
from artoo.contracts.execution import CriterionVerdict, SubTaskOutcome
from artoo.contracts.text import set_off, without_middle
from artoo.evidence.grounding import named, seen_in, ungrounded
from artoo.evidence.tokens import Token
from artoo.loops.asking import Asker
from artoo.loops.medium.fan_in import of_the_whole
from artoo.prompts.segments import Segment
from artoo.verdicts.judging import left_open, no_budget
from artoo.verdicts.quotes import JudgedCriterion, numbered, usable_verdicts
from artoo.verdicts.shown import FACTS_SHOWN, facts_of_all, is_word_alone

# Number of bytes per token of half the window. The other half is left for the instructions and the answer.
_SHOWN_BYTES = 3
_LEAST_SHOWN = 1_000
# A result longer than this is not repeated if the output of a call in the prompt already contains it.
_LONG = 80
_TOKENS = 4_000
_TRIES = 2
_IN_PART = "what no call shows is a part of it"


class MergeReport(Contract):
    """The answer of the meta-validator's only model call. `answer` is written in a fenced block. `sources` are the
    numbers of the results that it uses."""

    body_is_words: ClassVar[bool] = True

    sources: tuple[int, ...] = Field(default=(), max_length=64)
    verdicts: tuple[JudgedCriterion, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged answer, and the writer's verdict on each requested criterion, by its text."""

    answer: str
    verdicts: dict[str, CriterionVerdict]


async def merge(
    asker: Asker,
    request: str,
    outcomes: Sequence[SubTaskOutcome],
    criteria: Sequence[Criterion],
    cause: Envelope,
    waits: str = "",
    difference: str = "",
) -> Merged:
    """Write the answer to `request` from these outcomes. If the answer contains something that is in no outcome,
    the model is asked once more.

    If both answers contain such content, the plain results are returned. They are true, although they may read
    badly. A small model is shown no evidence, because its judgement decides nothing. `waits`: text about changes
    that are not applied yet. `difference`: the changes of the task.
    """
    room = max(_LEAST_SHOWN, asker.known.window * _SHOWN_BYTES // 2)
    judges = bool(criteria) and not asker.known.small
    shown = facts_of_all(outcomes, difference, min(FACTS_SHOWN, room // 2)) if judges else ""
    share = (room // 2 if judges else room) // max(1, len(outcomes))
    calls = [call for outcome in outcomes for call in outcome.tool_calls]
    seen = seen_in(calls, (request, _results(outcomes, share), difference))
    told = f"Criteria:\n{numbered(criteria, request)}\n\n" if criteria else ""
    objection, unjudged = "", "nobody judged it"
    for variant in range(_TRIES):
        segments = {
            Segment.TASK: request,
            Segment.CONTEXT: f"{told}Results:\n{_results(outcomes, share, shown)}",
            Segment.EVIDENCE: shown,
            Segment.CLOSING: "\n".join(filter(None, (waits, objection))),
        }
        try:
            report = await asker.ask(
                "MergeReport",
                MergeReport,
                segments,
                cause=cause,
                max_tokens=_TOKENS,
                variant=variant,
                body_field="answer",
                form="" if criteria or asker.known.small else "unjudged",
            )
        except ModelAnswerInvalid:
            break
        except BudgetExhausted as error:
            unjudged = no_budget(error)
            break
        answer = report.answer.strip()
        floating = [number for number in report.sources if not 1 <= number <= len(outcomes)]
        missing = ungrounded(answer, seen)
        if answer and not floating and not missing:
            return Merged(answer, _verdicts(report, criteria, outcomes, shown, small=asker.known.small))
        objection = _objection(answer, floating, missing)
    plain = "\n\n".join(outcome.output.strip() for outcome in outcomes if outcome.output.strip())
    return Merged(plain, {each.text: of_the_whole(left_open(each, unjudged)) for each in criteria})


def _verdicts(
    report: MergeReport,
    criteria: Sequence[Criterion],
    outcomes: Sequence[SubTaskOutcome],
    shown: str,
    *,
    small: bool,
) -> dict[str, CriterionVerdict]:
    """Return the usable verdicts of the model that wrote the answer. If a part of the answer has no evidence, no
    criterion passes, because code cannot tell which criterion that part concerns."""
    if small:
        verdicts = tuple(left_open(each, "the judgement of a small model decides nothing") for each in criteria)
    else:
        verdicts = usable_verdicts(report.verdicts, criteria, shown)
    if any(map(is_word_alone, outcomes)):
        verdicts = tuple(
            left_open(each, _IN_PART) if verdict.verdict == "pass" else verdict
            for each, verdict in zip(criteria, verdicts, strict=True)
        )
    return {verdict.criterion: of_the_whole(verdict) for verdict in verdicts}


def _results(outcomes: Sequence[SubTaskOutcome], share: int, shown: str = "") -> str:
    """List the outputs of the outcomes for the prompt. A long output that `shown` contains completely is not
    repeated."""
    told = list[str]()
    for number, outcome in enumerate(outcomes, 1):
        claim = outcome.output.strip()
        calls = (place for place, call in enumerate(outcome.tool_calls, 1) if call.output.strip() == claim)
        place = next(calls, 0) if len(claim) > _LONG and set_off(claim) in shown else 0
        said = f"what call {number}.{place} put out" if place else without_middle(claim, share)
        told.append(f"[{number}] {outcome.intent}\n{said}")
    return "\n\n".join(told)


def _objection(answer: str, floating: Sequence[int], missing: Sequence[Token]) -> str:
    if not answer:
        return "Your last answer was empty."
    if floating:
        return f"There is no result {floating[0]}."
    return f"Your last answer says what is in no result: {named(missing)}"
