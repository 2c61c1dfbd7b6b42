"""Judge the remaining criteria by one model call with quotes, with limits on claim, report and tries.

A capable model is the judge. For each verdict it must quote the evidence that it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, ModelAnswerInvalid
from artoo.contracts.execution import CriterionVerdict, ExecutionResult
from artoo.contracts.plan import SubTask
from artoo.contracts.text import set_off, without_middle
from artoo.evidence.shown_files import by_file
from artoo.loops.asking import Asker
from artoo.prompts.segments import Segment
from artoo.verdicts.judging import Judged, no_budget, reason_of
from artoo.verdicts.quotes import JudgedCriterion, numbered, unquoted, usable_verdicts
from artoo.verdicts.shown import SHORTEST_SHARE, at_first, facts_of

_CLAIM_SHOWN = 6_000
_REPORT_TOKENS = 800
_TRIES = 2
_ABSENT = "Named in the task and in the claim, and no such file is there now: {absent}"
_DOUBT = (
    "Code found against the claim: {}. The claim agrees with what the tools did all the same if it tells of this "
    "as it was, or if what is shown says the same in other words or writing, or if it follows from that."
)
_QUOTE = (
    "Of verdict {} the quote was missing or is not in the evidence. Give all verdicts again, with exact quotes."
)

# The criterion that is judged if a result reports that the subtask cannot be done.
CANNOT = Criterion(text="What was tried shows that this cannot be done here")


class ValidationReport(Contract):
    """The answer of the model that judges all criteria that code could not decide, in a single call."""

    verdicts: tuple[JudgedCriterion, ...]
    what_to_do: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """The facts that a judge is shown in addition to the calls. These are the date line that the executor saw, the
    paths that the task changed before this subtask, the doubts that code has about the claim, the files that the
    task and the claim name although they do not exist, and the current findings of failed checks.
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
    """Return the judge's verdicts on these criteria. If a quote is not in the evidence, the judge is asked once
    more."""
    judged: Judged | None = None
    gone = _ABSENT.format(absent=beside.absent) if beside.absent else ""
    doubt = _DOUBT.format(beside.doubt) if beside.doubt else ""
    used = subtask.surroundings if CANNOT in criteria else heads_used(subtask, result)
    facts = facts_of(result, difference, beside.earlier)
    evidence = "\n\n".join(filter(None, (at_first(used), facts, gone, _checks(beside.failed))))
    shown = f"{beside.today}\n\n{evidence}"
    claimed = (
        f"Criteria:\n{numbered(criteria, subtask.request or subtask.intent)}\n\nClaim: {claim_of(result, shown)}"
    )
    segments = {
        Segment.PROJECT_GUIDE: subtask.guide,
        Segment.ENVIRONMENT: beside.today,
        Segment.TASK: subtask.request or subtask.intent,
        Segment.CONTEXT: "\n\n".join(filter(None, (_planned(subtask), claimed, doubt))),
        Segment.EVIDENCE: evidence,
    }
    for variant in range(_TRIES):
        try:
            report = await asker.ask(
                "ValidationReport",
                ValidationReport,
                segments,
                cause=cause,
                max_tokens=_REPORT_TOKENS,
                variant=variant,
                images=subtask.images,
            )
        except ModelAnswerInvalid as error:
            judged = judged or Judged.open(criteria, f"no usable verdict: {error}")
        except BudgetExhausted as error:
            judged = judged or Judged.open(criteria, no_budget(error))
        else:
            judged = Judged(usable_verdicts(report.verdicts, criteria, shown), report.what_to_do)
            if numbers := unquoted(report.verdicts, criteria, shown):
                segments[Segment.CLOSING] = _QUOTE.format(", ".join(map(str, numbers)))
                continue
        break
    return judged or Judged(())


def _planned(subtask: SubTask) -> str:
    """Name the part of the request that is judged, if the plan's wording differs from the request."""
    if subtask.request in ("", subtask.intent):
        return ""
    return f"{'Only this part of the request is judged' if subtask.part else 'Planned as'}: {subtask.intent}"


def claim_of(result: ExecutionResult, shown: str) -> str:
    """Return the executor's claim for the judge's prompt. If the evidence contains a long output completely, the
    claim refers to the call instead of repeating the output."""
    claim = result.output.strip()
    if result.put_out_by is not None and len(claim) > SHORTEST_SHARE and set_off(claim) in shown:
        return f"what call {result.put_out_by} put out, word for word and all of it."
    return without_middle(result.output, _CLAIM_SHOWN)


def heads_used(subtask: SubTask, result: ExecutionResult) -> str:
    """Return those parts of files in the executor's prompt that no call has read again."""
    read = tuple(call.target for call in result.tool_calls if call.tool == "read_file")
    shown = by_file(subtask.heads)
    return "\n".join(
        part for name, part in shown.items() if not (name and any(path.endswith(name) for path in read))
    )


def _checks(failed: Sequence[CriterionVerdict]) -> str:
    """List the failing checks with their findings. The judge is shown them because a check may be wrong."""
    return "\n".join(("Checks that fail:", *(set_off(reason_of(each)) for each in failed))) if failed else ""
