"""Review a submission by an agent's model, with token limits and room for evidence.

Checks by code come first. They are followed by one question to the agent's model.

The verdict of the model has the same effect as that of the operator. The request, the result and the changes are
shown to the model completely or not at all, because an approval applies all changes. The evidence gets the space
that is left. The input and the output of a call have separate limits, so that a long script does not take the space
of its output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artoo.agents.board.rows import TaskClaim
from artoo.contracts.agents import ReviewReport, SubmittedWork
from artoo.contracts.changes import ChangeKind
from artoo.contracts.errors import ArtooError
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.roles import Role
from artoo.contracts.settling import ClassifiedChange
from artoo.contracts.text import set_off, without_middle
from artoo.llm.budget import Budget, BudgetedModel
from artoo.loops.asking import Asker
from artoo.ports.model import Known, Tier
from artoo.prompts.segments import Segment
from artoo.team.bench import Bench, Member
from artoo.team.demands import with_demands
from artoo.tools.settlement.review import DIFF_BYTES, line_of

_MAX_TOKENS = 400
REVIEW_CALLS = 8

_RESERVED_TOKENS = 3_000
"""Number of tokens of the window that are reserved for instructions, the identity of the agent, and the answer."""
_CHARACTERS_A_TOKEN = 3
_SMALL_ROOM = 8_000
"""Maximum number of characters for a small model, which cannot follow long texts."""
_LEAST_ROOM = 2_000
_EVIDENCE_SHARE = 4
"""The evidence gets one part in this many of the space."""

_LEAST_CALL = 600
"""Minimum number of characters for each call. If there is less space, the oldest calls are left out."""
_FRAME, _LITTLE = 60, 200
"""Number of characters around each text, and the number by which a text may exceed its limit without being
shortened."""

_NEW_CONTENT = (ChangeKind.CREATED, ChangeKind.OVERWRITTEN)

_FROM_FILES = "Shown of files before the first call:"


def problems_of(work: SubmittedWork) -> tuple[str, ...]:
    """Return the problems that are found without a model. These are unmet criteria, withheld operations, and
    contradicted claims."""
    return tuple(dict.fromkeys(_problems(work)))


def _problems(work: SubmittedWork) -> Iterator[str]:
    yield from (f"not met: {criterion}" for criterion in work.unmet)
    yield from (f"not done, because it needed consent: {act}" for act in work.withheld)
    for verdict in work.verdicts:
        if verdict.contradicted:
            yield f"the evidence contradicts it: {verdict.criterion}"
        elif verdict.verdict == "fail":
            yield f"not met: {verdict.criterion}"
    if work.ending not in ("accept", "success"):
        yield f"the work ended as {work.ending or 'unknown'}"


class TooMuchToJudge(ArtooError):
    """Raised if the changes do not fit into the window of the model. The model was not asked then."""


async def review(bench: Bench, member: Member, claim: TaskClaim, work: SubmittedWork) -> int:
    """Approve or reject a submission on behalf of the agent. Returns the number of model calls.

    Only the changes that were reviewed are approved. A submission with conflicts may be approved too, because artoo
    itself then sends it back. Raises ModelError, BudgetExhausted and TooMuchToJudge (without a verdict),
    SandboxError, and GovernanceRefused.
    """
    approvals, task = bench.office.approvals, claim.task
    problems, calls, reason = problems_of(work), 0, ""
    proposal = None if problems else await approvals.look(task)
    if not problems and (proposal is None or not proposal.conflicts):
        changes = () if proposal is None else proposal.review.changes
        report = await _asked(bench, member, with_demands(task), work, changes)
        calls, reason = 1, "; ".join(report.reasons)
        if report.verdict == "reject":
            problems = report.reasons or ("no reason given",)
    if problems:
        await approvals.reject(task.id, member.name, "; ".join(problems), submission=task.submission)
    else:
        digest = None if proposal is None else proposal.digest
        await approvals.approve(task.id, member.name, reason, submission=task.submission, digest=digest)
    return calls


async def _asked(
    bench: Bench, member: Member, request: str, work: SubmittedWork, changes: tuple[ClassifiedChange, ...]
) -> ReviewReport:
    model, tier = bench.artoo.model, member.tier or Tier.BRAIN
    room = room_of(await model.known(tier))
    segments = exhibits(work, request, changes, room)
    if segments is None:
        raise TooMuchToJudge(
            f"request, result and changes are more than its model can be shown ({room} characters)"
        )
    raised_by = f"`{{}}` of its limits in {member.folder.name}'s identity.yaml"
    most = member.identity.limits.calls or REVIEW_CALLS
    limited = BudgetedModel(model, Budget(max_calls=most, whose="the review's", raised_by=raised_by))
    asker = Asker(bench.speak(Role.REVIEWER), limited, bench.office.clock, tier, standing=member.standing())
    return await asker.ask("ReviewReport", ReviewReport, segments, cause=None, max_tokens=_MAX_TOKENS)


def room_of(known: Known) -> int:
    """Return how many characters of a submission such a model is shown."""
    room = max(_LEAST_ROOM, (known.window - _RESERVED_TOKENS) * _CHARACTERS_A_TOKEN)
    return min(room, _SMALL_ROOM) if known.small else room


def exhibits(
    work: SubmittedWork, request: str, changes: Sequence[ClassifiedChange], room: int
) -> dict[Segment, str] | None:
    """Return the segments of the prompt. Return None if the submission is too large to be shown."""
    if any(_is_unseen(change) for change in changes):
        return None
    result, changed = f"Result:\n{work.summary}", _changes(changes)
    left = room - sum(map(_size, (work.guide, request, result, changed)))
    if left < room // _EVIDENCE_SHARE:
        return None
    return {
        Segment.PROJECT_GUIDE: work.guide,
        Segment.TASK: request,
        Segment.CONTEXT: result,
        Segment.EVIDENCE: f"{_evidence(work, left)}\n\n{changed}",
    }


def _is_unseen(change: ClassifiedChange) -> bool:
    """Return whether a change has new content that is too large to be shown. The content of a moved file is not
    new."""
    return change.kind in _NEW_CONTENT and not change.diff and (change.size_after or 0) > DIFF_BYTES


def _size(text: str) -> int:
    """Return the size of a text in bytes. Chinese characters thus count more than Latin letters."""
    return len(text.encode("utf-8", "replace"))


def _changes(changes: Sequence[ClassifiedChange]) -> str:
    if not changes:
        return "Files changed: none"
    lines = ["Files changed:"]
    for change in changes:
        lines.append(f"- {line_of(change)}")
        lines += [f"   {set_off(line)}" for line in change.diff]
    return "\n".join(lines)


def _evidence(work: SubmittedWork, room: int) -> str:
    verdicts = [f"- {one.verdict}: {one.criterion} ({one.evidence})" for one in work.verdicts]
    told = without_middle("\n".join(set_off(line)[1:] for line in verdicts), room // 3)
    if work.records:
        shown = _calls(work, room - len(told))
    else:
        # earlier versions stored lines instead of records
        shown = without_middle("\n".join(f"- {call}" for call in work.calls), room - len(told))
    return "\n\n".join(filter(None, (told, shown))) or "(none)"


def _calls(work: SubmittedWork, room: int) -> str:
    """Return the newest calls that fit into `room`. Space that short texts do not need is given to longer ones."""
    first = max(0, len(work.records) - max(1, room // _LEAST_CALL))
    calls = list(enumerate(work.records, 1))[first:]
    read = any(call.tool == "read_file" for call in work.records)
    seen = "" if read else work.seen
    texts = [seen, *(text for _, call in calls for text in (call.input, *_put_out(call)))]
    limit = max(0, level([len(set_off(text)) + _FRAME for text in texts], room) - _FRAME)
    parts = [f"{_FROM_FILES}\n{_cut(seen, limit)}"] if seen else []
    parts += [f"({first} earlier calls have no room here)"] if first else []
    parts += ["\n".join(_call(number, call, limit)) for number, call in calls]
    return "\n".join(parts)


def _call(number: int, call: ToolCall, limit: int) -> Iterator[str]:
    code = "" if call.exit_code is None else f", exit {call.exit_code}"
    yield f"call {number}: {call.tool} {_cut(call.input, limit)[1:]} [{call.status}{code}]"
    yield from (_cut(text, limit) for text in _put_out(call))


def _cut(text: str, limit: int) -> str:
    """Return an indented text that is shortened to `limit` characters, unless it exceeds the limit only a
    little."""
    return set_off(without_middle(text, max(0, limit - _LITTLE)))


def _put_out(call: ToolCall) -> list[str]:
    """Return the outputs of a call. If the call failed, return the reason too."""
    why = call.reason if call.status is not CallStatus.OK and call.reason not in (None, call.error_output) else ""
    return [text for text in (call.output, call.error_output, why or "") if text.strip()]


def level(sizes: Sequence[int], room: int) -> int:
    """Return the limit for each item of `sizes` with which all items fit into `room`. Space that small items do not
    need is given to larger ones."""
    left, most = room, 0
    for taken, size in enumerate(ordered := sorted(sizes)):
        share = left // (len(ordered) - taken)
        if size > share:
            return share
        left, most = left - size, size
    return most
