"""Judgement: one call of a capable model for the criteria that are left, shown the facts and held to quote them.

What a quote is worth is decided here for R4a and R4b alike.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, ModelAnswerInvalid
from artoo.contracts.execution import CriterionVerdict, ExecutionResult, ToolCall
from artoo.contracts.plan import SubTask
from artoo.contracts.shortened import listed, set_off, without_middle
from artoo.loops.asking import Asker
from artoo.prompts.segments import Segment
from artoo.verdicts.judging import Judged, no_budget, reason_of
from artoo.verdicts.quotes import JudgedCriterion, numbered, usable_verdicts

FACTS_SHOWN = 24_000
"""Characters of calls and difference that the judge is shown."""
DIFFERENCE_SHOWN = 8_000
_SHORTEST_SHARE = 600
_INPUT_SHOWN = 1_000
"""Characters of a call's input; of one that the answer rests on a quarter of its share, if that is more."""
_BELOW = "(as it stands below, in what was changed)"
_CLAIM_SHOWN = 6_000
_REQUEST_SHOWN = 500
_REPORT_TOKENS = 800
_ABSENT = "Named in the task and in the claim, and no such file is there now: {absent}"
_DOUBT = (
    "Not found as it is written in outputs, changes or request: {}. It is true all the same if what is shown says "
    "it in other words or writing, or if it follows from that."
)

CANNOT = Criterion(text="What was tried shows that this cannot be done here")
"""What is asked about a result that says it cannot be done."""


class ValidationReport(Contract):
    """R4a's single call for all criteria that code could not decide."""

    verdicts: tuple[JudgedCriterion, ...]
    what_to_do: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """What a judge is told beside the calls: the line with the day that the executor was shown, the paths that the
    task had changed before this subtask, tokens of the claim that code finds nowhere, files that task and claim
    name and that are not there, and what checks found now.
    """

    today: str = ""
    earlier: str = ""
    doubt: str = ""
    absent: str = ""
    failed: Sequence[CriterionVerdict] = ()


async def judge(
    asker: Asker,
    subtask: SubTask,
    criteria: Sequence[Criterion],
    result: ExecutionResult,
    difference: str,
    cause: Envelope,
    beside: Beside,
) -> Judged:
    """The judge's verdicts on these criteria, as far as their quotes are in what it was shown."""
    facts = facts_of(result, difference, beside.earlier)
    gone = _ABSENT.format(absent=beside.absent) if beside.absent else ""
    seen = (
        beside.today,
        _seen_at_first(subtask, result, given_up=CANNOT in criteria),
        facts,
        gone,
        _checks(beside.failed),
    )
    shown = "\n\n".join(filter(None, seen))
    short = not subtask.begun and 0 < len(subtask.context) <= _REQUEST_SHOWN  # and nothing but the person's words
    claimed = f"Criteria:\n{numbered(criteria)}\n\nClaim: {claim_of(result, shown)}"
    segments = {
        Segment.PROJECT_GUIDE: subtask.guide,
        Segment.TASK: f"{subtask.context}\nPlanned as: {subtask.intent}" if short else subtask.intent,
        Segment.CONTEXT: f"{claimed}\n\n{_DOUBT.format(beside.doubt)}" if beside.doubt else claimed,
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
    if result.put_out_by is not None and len(claim) > _SHORTEST_SHARE and set_off(claim) in shown:
        return f"what call {result.put_out_by} put out, word for word and all of it."
    return without_middle(result.output, _CLAIM_SHOWN)


def _seen_at_first(subtask: SubTask, result: ExecutionResult, *, given_up: bool) -> str:
    """What the executor may have used: files if no call has read any, the listing for a word that it cannot be."""
    read = any(call.tool == "read_file" for call in result.tool_calls)
    told = subtask.surroundings if given_up else "" if read else subtask.heads
    return f"Shown before the first call:\n{set_off(told)}" if told else ""


def _checks(failed: Sequence[CriterionVerdict]) -> str:
    """What does not hold, as a check told it: it may be the check that is wrong."""
    return "\n".join(("Checks that fail:", *(set_off(reason_of(each)) for each in failed))) if failed else ""


def facts_of(result: ExecutionResult, difference: str, earlier: str = "") -> str:
    """Calls with their numbers and ends, those that the answer rests on most fully, then what the task changed:
    before this subtask (`earlier`) by its paths, in it line by line.

    Of an output that is the answer nobody has said which earlier calls it rests on: all are shown alike.
    """
    calls = list(enumerate(result.tool_calls, 1))
    named = result.sources if result.put_out_by is None else ()
    cited = [each for each in calls if each[0] in named] or calls
    share = max(_SHORTEST_SHARE, FACTS_SHOWN // max(1, len(cited)))
    seen = without_middle(difference, DIFFERENCE_SHOWN)
    parts = [
        _call(number, call, share if (number, call) in cited else _SHORTEST_SHARE, seen)
        for number, call in calls[-FACTS_SHOWN // _SHORTEST_SHARE :]
    ]
    parts += [f"Changed by this task before this subtask:\n{earlier}"] if earlier else []
    here = f"Changed by this {'subtask' if earlier else 'task'}:"
    parts.append(f"{here}\n{seen}" if seen else f"{here} nothing")
    return "\n\n".join(parts)


def _call(number: int, call: ToolCall, share: int, difference: str) -> str:
    code = "" if call.exit_code is None else f", exit {call.exit_code}"
    ended = code[2:] if call.says_no else f"{call.status}{code}"
    given = without_middle(_given(call, difference), max(_INPUT_SHOWN, share // 4))
    lines = [set_off(f"call {number}: {call.tool} {given} [{ended}]")[1:]]
    why = "" if call.reason is None or call.reason in call.error_output else call.reason
    parts = (call.output, call.error_output, why)
    lines += [set_off(without_middle(part, share)) for part in parts if part.strip()]
    lines += [f"changed: {listed(call.changes)}"] if call.changes else []
    lines += [f"withheld: {listed(call.dropped)}"] if call.dropped else []
    return "\n".join(lines)


def _given(call: ToolCall, difference: str) -> str:
    """A call's input. A longer text in it that the difference shows line by line is not shown twice."""
    if not call.changes:
        return call.input
    try:
        arguments: object = json.loads(call.input)
    except (ValueError, RecursionError):  # one text alone, or cut
        return call.input
    if not isinstance(arguments, dict):
        return call.input
    given = cast("dict[str, object]", arguments)
    short = {name: _BELOW if _is_added(value, difference) else value for name, value in given.items()}
    return call.input if short == given else json.dumps(short, ensure_ascii=False)


def _is_added(value: object, difference: str) -> bool:
    if not isinstance(value, str) or len(value) <= _SHORTEST_SHARE:
        return False
    added = "".join(f"+{line}\n" for line in value.removesuffix("\n").split("\n"))
    return f"\n{added}" in f"\n{difference}\n"
