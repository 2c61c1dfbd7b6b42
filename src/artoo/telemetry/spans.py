"""Build the tree of spans (task, round, subtask, call) from the stream.

The times of spans are those of the messages. The record of a call is published when the call ends, and contains its
duration.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CorrectionSignal, CriterionJudged, SubTaskOutcome
from artoo.contracts.plan import DispatchManifest, SubTask
from artoo.contracts.recording import TaskResumed
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import Decided, Directive, FinalResult, PlanDirective
from artoo.telemetry import conventions as c
from artoo.telemetry import leaves
from artoo.telemetry.leaves import OTHER, Attributes, Leaf, answer, message, shortened
from artoo.telemetry.peers import Peers

# Maximum number of tasks with open spans. If there is one more, the spans of the oldest task are ended.
MOST_TASKS = 256
# Number of ended tasks whose ids are stored, so that a late message does not open their spans again.
MOST_ENDED = 1_024

WORKFLOW = "artoo"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def nanoseconds(at: datetime) -> int:
    """Return a time in nanoseconds since the epoch."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1_000


@dataclass(slots=True)
class _TaskSpans:
    """The open spans of one task. The contexts of ended subtasks are kept, because they are the parents of late
    calls."""

    root: Span
    began: int
    context: Context
    round: Span | None = None
    round_context: Context | None = None
    subtasks: dict[str, Span] = field(default_factory=dict[str, Span])
    contexts: dict[str, Context] = field(default_factory=dict[str, Context])
    tokens: dict[str, int] = field(default_factory=dict[str, int])

    def parent(self, subtask_id: str | None) -> Context:
        """Return the parent context for a call of this subtask, or for a call that belongs to no subtask."""
        return self.contexts.get(subtask_id or "") or self.round_context or self.context


class SpanTree:
    """The spans of all tasks, which are made by `tracer`. If `content` is true, they include the texts of prompts,
    answers and tools."""

    def __init__(self, tracer: Tracer, peers: Peers, *, content: bool = False) -> None:
        self._tracer = tracer
        self._peers = peers
        self._content = content
        self._tasks: OrderedDict[str, _TaskSpans] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    @property
    def open_tasks(self) -> int:
        """Return the number of tasks whose spans are open."""
        return len(self._tasks)

    def hear(self, envelope: Envelope) -> None:
        """Update the spans according to one message. Kinds of messages that are not part of a trace are ignored."""
        leaf = leaves.leaf_of(envelope, self._peers, content=self._content)
        if not envelope.task_id:
            if leaf is not None:
                self._leaf(leaf, envelope, None)
            return
        task = self._task(envelope)
        if task is None:
            return
        if leaf is not None:
            self._leaf(leaf, envelope, task)
        else:
            self._follow(task, envelope)

    def close(self) -> None:
        """End the spans that are still open, and mark them as incomplete. A second call has no effect."""
        while self._tasks:
            self._end_oldest()

    def _follow(self, task: _TaskSpans, envelope: Envelope) -> None:
        at = nanoseconds(envelope.at)
        match envelope.payload:
            case UserRequest() as request if self._content:
                task.root.set_attribute(c.INPUT_MESSAGES, message("user", request.text))
            case DispatchManifest() as manifest:
                self._open_round(task, at, manifest.round)
            case PlanDirective() as directive:
                self._open_round(task, at, directive.round)
            case Decided() as decided:
                self._close_round(task, at, decided)
            case SubTask() as subtask:
                self._open_subtask(task, at, subtask)
            case SubTaskOutcome() as outcome:
                _close_subtask(task, at, outcome)
            case CriterionJudged() | CorrectionSignal():
                self._note(task, envelope)
            case FinalResult() as result:
                self._finish(task, envelope, result)
            case _:
                return

    # --- opening and closing ---------------------------------------------------------------------------------

    def _task(self, envelope: Envelope) -> _TaskSpans | None:
        """Return the task's spans.

        They are opened by the task's first message, or by the message that resumes it after its end.
        """
        task = self._tasks.get(envelope.task_id)
        if isinstance(envelope.payload, TaskResumed):
            self._ended.pop(envelope.task_id, None)
        if task is not None or envelope.task_id in self._ended:
            return task
        began = nanoseconds(envelope.at)
        root = self._start(
            f"{c.INVOKE_WORKFLOW} {WORKFLOW}",
            Context(),
            began,
            {c.OPERATION: c.INVOKE_WORKFLOW, c.WORKFLOW_NAME: WORKFLOW, c.TASK_ID: envelope.task_id},
        )
        task = _TaskSpans(root, began, set_span_in_context(root, Context()))
        self._tasks[envelope.task_id] = task
        self._open_round(task, began, 1)
        if len(self._tasks) > MOST_TASKS:
            self._end_oldest()
        return task

    def _open_round(self, task: _TaskSpans, at: int, number: int) -> None:
        """Open a round at its directive, and the first round at the start of the task. If the round is open
        already, only update its number.

        The manifest of the round confirms the number."""
        if task.round is None:
            task.round = self._start("round", task.context, at, {c.ROUND: number})
            task.round_context = set_span_in_context(task.round, task.context)
        task.round.set_attribute(c.ROUND, number)

    def _close_round(self, task: _TaskSpans, at: int, decided: Decided) -> None:
        span, task.round = task.round, None
        if span is None:
            return
        span.set_attributes({c.ROUND: decided.round, c.DIRECTIVE: decided.directive.value})
        span.set_attributes({**_loss(decided.loss.model_dump()), c.GRADIENT: decided.grad_l})
        if decided.directive is Directive.ABANDON:
            span.set_attribute(c.ERROR_TYPE, Directive.ABANDON.value)
            span.set_status(Status(StatusCode.ERROR, decided.reason or None))
        span.end(at)

    def _open_subtask(self, task: _TaskSpans, at: int, subtask: SubTask) -> None:
        parent = task.round_context or task.context
        known: Attributes = {
            c.OPERATION: c.INVOKE_AGENT,
            c.AGENT_NAME: leaves.EXECUTOR,
            c.SUBTASK_ID: subtask.subtask_id,
        }
        if self._content:
            known[c.INPUT_MESSAGES] = message("user", subtask.intent)
        span = self._start(f"{c.INVOKE_AGENT} {leaves.EXECUTOR}", parent, at, known)
        task.subtasks[subtask.subtask_id] = span
        task.contexts[subtask.subtask_id] = set_span_in_context(span, parent)

    def _note(self, task: _TaskSpans, envelope: Envelope) -> None:
        """Add a verdict or a correction as an event to its subtask, or to its round."""
        span = task.subtasks.get(envelope.subtask_id or "") or task.round or task.root
        name, attributes = leaves.event_of(envelope, content=self._content)
        span.add_event(name, attributes, nanoseconds(envelope.at))

    def _finish(self, task: _TaskSpans, envelope: Envelope, result: FinalResult) -> None:
        at, root = nanoseconds(envelope.at), task.root
        root.set_attributes({c.DIRECTIVE: result.directive.value, c.ROUND: result.replans + 1})
        root.set_attributes({**_loss(result.loss.model_dump()), **task.tokens, c.GRADIENT: result.grad_l})
        if result.cost.money is not None:
            root.set_attributes({c.MONEY: result.cost.money.amount, c.CURRENCY: result.cost.money.currency})
        if self._content:
            root.set_attribute(c.OUTPUT_MESSAGES, answer(result.summary))
        why = result.stopped_by.value if result.stopped_by is not None else OTHER
        if result.directive is Directive.ABANDON:
            root.set_attributes({c.STOPPED_BY: why, c.ERROR_TYPE: why})
            root.set_status(Status(StatusCode.ERROR, shortened(result.summary) if self._content else why))
        _end_below(task, at, why)
        root.end(at)
        del self._tasks[envelope.task_id]
        self._remember(envelope.task_id)

    def _end_oldest(self) -> None:
        """End the spans of the oldest task, and mark them as incomplete."""
        task_id, task = self._tasks.popitem(last=False)
        task.root.set_attribute(c.INCOMPLETE, True)
        _end_below(task, None, OTHER)
        task.root.end()
        self._remember(task_id)

    def _remember(self, task_id: str) -> None:
        self._ended[task_id] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)

    # --- leaves ----------------------------------------------------------------------------------------------

    def _leaf(self, leaf: Leaf, envelope: Envelope, task: _TaskSpans | None) -> None:
        end = nanoseconds(envelope.at)
        start = max(end - leaf.duration_ms * 1_000_000, task.began if task is not None else 0)
        parent = task.parent(envelope.subtask_id) if task is not None else Context()
        span = self._start(leaf.name, parent, min(start, end), leaf.attributes, leaf.kind)
        if leaf.error is not None:
            span.set_attribute(c.ERROR_TYPE, leaf.error)
            span.set_status(Status(StatusCode.ERROR, leaf.description))
        span.end(end)
        if task is not None:
            for name, count in leaf.tokens.items():
                task.tokens[name] = task.tokens.get(name, 0) + count

    def _start(
        self,
        name: str,
        parent: Context,
        at: int,
        attributes: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        return self._tracer.start_span(name, parent, kind, attributes, start_time=at)


def _close_subtask(task: _TaskSpans, at: int, outcome: SubTaskOutcome) -> None:
    span = task.subtasks.pop(outcome.subtask_id, None)
    if span is None:
        return
    span.set_attributes({c.STATUS: outcome.status, c.ATTEMPT: max(1, len(outcome.gap_trajectory))})
    if outcome.status == "failed":
        why = "infrastructure" if outcome.infrastructure is not None else "criteria_unmet"
        span.set_attribute(c.ERROR_TYPE, why)
        span.set_status(Status(StatusCode.ERROR, why))
    span.end(at)


def _end_below(task: _TaskSpans, at: int | None, why: str) -> None:
    """End the spans of a task that are open below the task's own span: subtasks that a halt interrupted, and a
    round without a decision."""
    for span in (*task.subtasks.values(), *((task.round,) if task.round is not None else ())):
        span.set_attributes({c.INCOMPLETE: True, c.ERROR_TYPE: why})
        span.set_status(Status(StatusCode.ERROR, why))
        span.end(at)
    task.subtasks.clear()
    task.round = None


def _loss(terms: Mapping[str, float]) -> dict[str, float]:
    return {f"{c.LOSS}.{name}": value for name, value in terms.items()}
