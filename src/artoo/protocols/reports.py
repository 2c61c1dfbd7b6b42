"""Models of task and change reports that all protocols return, with limits on paths and diff length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from artoo.contracts.changes import Conflict
from artoo.contracts.settling import Review, Settled
from artoo.contracts.solution import FinalResult
from artoo.protocols.handed import LONGEST_DOING, HandedTask
from artoo.redaction import Redactor
from artoo.runtime.changes.pending_changes import Pending
from artoo.runtime.changes.settlement_history import Afterwards
from artoo.runtime.changes.settlement_history import PendingSummary as WaitingNow
from artoo.words.outcome import resumable, status_of
from artoo.words.result import result_words
from artoo.words.settling import dropped, waiting

MOST_LISTED = 200
"""Maximum number of changes, paths or facts in one list of an answer."""
_SHOWN = 200
MOST_DIFF = 60_000
"""Maximum number of characters of diffs in one answer. The MCP resource contains the whole text."""

TaskStatus = Literal["working", "asks", "success", "pending", "failed", "stopped", "elsewhere"]
"""working: the task runs. asks: it waits for an answer (with `stopped_by` "question" it has ended, and the answer
belongs into another request). pending: it is done, and its changes need approval. stopped: its process died, and it
can be resumed. elsewhere: another process runs it."""


_CHANGES = (
    "what became of them: none, pending, applied, partly (a part is applied, the rest is pending), part applied"
    " (the rest was discarded), discarded, expired, put back (undone), or waited (pending at the end; what came"
    " then is not on record here)"
)


class Report(BaseModel):
    """A frozen model that rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PendingTask(Report):
    """A task with pending changes. Times are seconds since the epoch (UTC)."""

    task_id: str
    request: str = ""
    reason: str = Field(default="", description="why it waits")
    counts: dict[str, int] = Field(default_factory=dict[str, int], description="how many changes of each class")
    since: float
    expires_at: float = Field(description="when it may be dropped")
    cut_off: bool = Field(default=False, description="the task did not end: resume or discard it")


class TaskReport(Report):
    """The state of a running task, or the result of an ended task. `answer` is in the language of the request."""

    task_id: str
    status: TaskStatus
    request: str = ""
    answer: str = Field(default="", description="the result in words; pending changes are not in effect yet")
    doing: str = Field(default="", description="the present operation")
    subtasks_done: int = 0
    subtasks_planned: int = 0
    question: str = Field(default="", description="the question that waits for an answer")
    assurance: str = Field(default="", description="how the result was checked: checked, judged or unverified")
    open: tuple[str, ...] = Field(default=(), description="criteria that nothing decided")
    unmet: tuple[str, ...] = Field(default=(), description="criteria that the result does not satisfy")
    facts: tuple[str, ...] = Field(default=(), description="facts that code has checked, independent of the answer")
    changes: str = Field(default="none", description=_CHANGES)
    changed: tuple[str, ...] = Field(default=(), description="paths that it has changed or would change")
    counts: dict[str, int] = Field(default_factory=dict[str, int], description="how many changes of each class")
    went_out: tuple[str, ...] = Field(default=(), description="data that was sent from this machine")
    stopped_by: str = ""
    resumable: bool = False
    llm_calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


class ChangedPath(Report):
    """One path of a difference."""

    path: str
    change_class: str
    kind: str
    reason: str = ""
    detail: str = ""
    size_before: int | None = None
    size_after: int | None = None
    diff: str = ""


class DifferenceReport(Report):
    """All pending changes of a task, most dangerous first. `digest` identifies exactly these changes."""

    task_id: str
    digest: str
    counts: dict[str, int]
    changes: tuple[ChangedPath, ...]
    unlisted: int = Field(default=0, description="further changes, which the resource lists")
    shortened: bool = Field(default=False, description="some diffs are left out here; the resource has them")
    conflicts: tuple[str, ...] = Field(default=(), description="paths in conflict, with the reason")
    went_out: tuple[str, ...] = ()


class SettledReport(Report):
    """The settlement of a task's changes by this call."""

    task_id: str
    state: str = Field(description="applied, partly (the rest is pending), pending (all of it) or discarded")
    applied: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    reason: str = ""
    went_out: tuple[str, ...] = ()


def running_report(task: HandedTask, clean: Redactor) -> TaskReport:
    """Report a task of this process that has no result yet."""
    if task.error is not None:
        why = clean.text(str(task.error))
        return TaskReport(task_id=task.task_id, status="stopped", request=clean.text(task.request), answer=why)
    return TaskReport(
        task_id=task.task_id,
        status="working" if task.question is None else "asks",
        request=clean.text(task.request),
        doing=shown(task.doing, clean),
        subtasks_done=task.done,
        subtasks_planned=task.planned,
        question="" if task.question is None else clean.text(task.question.request.title),
    )


def result_report(result: FinalResult, request: str, after: Afterwards, clean: Redactor) -> TaskReport:
    """Report a task that has ended. `after` is the present state of the task's changes."""
    cost, changes = result.cost, result.changes
    # No record says that the changes were applied or discarded, so the report repeats the state at the end of the
    # task.
    unknown = after.waited is not None
    ended = status_of(result, waits=None if unknown else after.waits is not None)
    asks = ended == "needs_input"
    return TaskReport(
        task_id=result.task_id,
        status="asks" if ended == "needs_input" else ended,
        request=clean.text(request),
        question=clean.text(result.output) if asks else "",
        answer=clean.text(told(result) if unknown else _answer(result, after.waits)),
        assurance=result.assurance.value,
        open=_texts(result.open, clean),
        unmet=_texts([one.criterion for one in result.unmet], clean),
        facts=_texts(tuple(map(result_words(result.language).fact, result.facts)), clean),
        changes=_standing(after),
        changed=tuple(one.path for one in changes.changes[:MOST_LISTED]),
        counts={one.change_class.value: one.count for one in changes.counts},
        went_out=_texts(changes.went_out, clean),
        stopped_by=result.stopped_by.value if result.stopped_by is not None else "",
        resumable=resumable(result),
        llm_calls=cost.llm_calls,
        tokens=cost.prompt_tokens + cost.completion_tokens,
        seconds=cost.elapsed_ms / 1_000,
    )


def told(result: FinalResult) -> str:
    """Return the answer as it was when the task ended, with the changes that were pending then."""
    found = result.changes
    waited = WaitingNow(found.counts, None, None, len(found.conflicts), found.reason) if found.waits else None
    return _answer(result, waited)


def _answer(result: FinalResult, waits: WaitingNow | None) -> str:
    """Return the answer. If changes are pending or were discarded, a paragraph says that they are not applied."""
    plain = result_words(result.language).plain(result)
    why = dropped(result.language) if result.changes.state == "discarded" else ""
    if waits is not None:
        why = waiting(waits.reason, waits.counts, waits.conflicts, result.language)
    return "\n\n".join(part for part in (plain, why) if part)


def _standing(after: Afterwards) -> str:
    """Return the present state of the changes."""
    if after.waits is not None:
        return "partly" if any(one.act == "applied" for one in after.became) else "pending"
    return after.state or "none"


def waiting_report(one: Pending, clean: Redactor) -> PendingTask:
    """Report a task with pending changes."""
    return PendingTask(
        task_id=one.task_id,
        request=clean.text(one.request),
        reason=clean.text(waiting(one.reason, one.counts, one.conflicts, one.language)),
        counts={each.change_class.value: each.count for each in one.counts},
        since=one.since,
        expires_at=one.expires_at,
        cut_off=one.cut_off,
    )


def difference_report(review: Review, digest: str, clean: Redactor) -> DifferenceReport:
    """Report the changes of a review. The report has at most `MOST_LISTED` changes and `MOST_DIFF` characters of
    diffs."""
    room, shortened, changes = MOST_DIFF, False, list[ChangedPath]()
    for one in review.changes[:MOST_LISTED]:
        diff = clean.text("\n".join(one.diff))
        # A diff is included completely or not at all, because a part of it could hide a line.
        shown = diff if len(diff) <= room else ""
        shortened |= shown != diff
        room -= len(shown)
        changes.append(
            ChangedPath(
                path=one.path,
                change_class=one.change_class.value,
                kind=one.kind.value,
                reason=clean.text(one.reason),
                detail=clean.text(one.detail),
                size_before=one.size_before,
                size_after=one.size_after,
                diff=shown,
            )
        )
    return DifferenceReport(
        task_id=review.task_id,
        digest=digest,
        counts={one.change_class.value: one.count for one in review.counts},
        changes=tuple(changes),
        unlisted=len(review.changes) - len(changes),
        shortened=shortened,
        conflicts=_conflicts(review.conflicts, clean),
        went_out=_texts(review.went_out, clean),
    )


def settled_report(task_id: str, settled: Settled, clean: Redactor) -> SettledReport:
    """Report the changes that a call has applied or discarded."""
    applied = settled.took_effect
    return SettledReport(
        task_id=task_id,
        state=settled.state,
        applied=applied[:MOST_LISTED],
        conflicts=_conflicts(settled.conflicts, clean),
        reason=clean.text(settled.reason),
        went_out=_texts(settled.went_out, clean),
    )


def shown(text: str, clean: Redactor) -> str:
    """Return the beginning of a text with secrets redacted."""
    return clean.text(text[:LONGEST_DOING])[:_SHOWN]


def _conflicts(found: Sequence[Conflict], clean: Redactor) -> tuple[str, ...]:
    """List conflicts. Their paths are not redacted, because a client passes them to `apply`."""
    return tuple(f"{one.path}: {clean.text(one.reason)}" for one in found[:MOST_LISTED])


def _texts(found: Sequence[str], clean: Redactor) -> tuple[str, ...]:
    return tuple(clean.text(each) for each in found[:MOST_LISTED])
