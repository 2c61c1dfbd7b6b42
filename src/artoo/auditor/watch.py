"""Apply all invariants to every message, with the limits on memory and on findings of a task.

The module does no input or output. Reference: SPEC section 7.

watch = Watch()
for envelope in stream:
    for finding in watch.observe(envelope):
        ...
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from artoo.auditor.drift import Drift
from artoo.auditor.invariants import INVARIANTS
from artoo.auditor.invariants.invariant import Invariant
from artoo.auditor.notes import TaskNotes
from artoo.contracts.audit import Finding, Nature
from artoo.contracts.envelope import Envelope
from artoo.contracts.recording import TaskResumed
from artoo.contracts.routes import ROUTES
from artoo.contracts.solution import FinalResult
from artoo.ports.spool import Gap

Recall = Callable[[str], Iterable[Envelope]]
"""Returns all earlier messages of a task that was resumed in this process."""

_LONGEST = 500
"""Maximum number of characters of the text of a finding."""

_MOST_DANGLING = 256

_LATE = frozenset({"RoleFailure", "Interrupt", "ConfirmationAnswer", "ConfirmationRequest", "TaskResumed"})
"""Kinds of messages that may arrive just after the end of a task, because their sender could not know of the
end."""

_LATE_WHEN_HALTED = frozenset({"ReplanRequest", "ExecutionResult", "SubTaskOutcome", "Joined", "OutcomeSummary"})
"""Kinds of messages that may arrive late if work was stopped and the solver (R7) did not wait for them."""


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """Limits on the use of memory. Messages and tasks beyond the limits are counted in `Watch.forgotten`. They are
    checked less strictly."""

    open_tasks: int = 512
    ended_tasks: int = 512
    lost_tasks: int = 10_000
    messages: int = 65_536
    findings_a_task: int = 100


class Watch:
    """Applies every invariant to every message. It must be used in one thread only.

    `recall` returns the earlier messages of a resumed task. Without it, such a task is judged only by the messages
    that were seen. `drift` contains the long-run figures of the roles. If an invariant raises an error, this is
    reported, and the invariant is no longer applied.
    """

    def __init__(
        self,
        *,
        recall: Recall | None = None,
        drift: Drift | None = None,
        limits: WatchLimits | None = None,
        invariants: Sequence[Invariant] = INVARIANTS,
    ) -> None:
        self._recall = recall
        self.drift = drift or Drift()
        self._limits = limits or WatchLimits()
        self._invariants = list(invariants)
        self._tasks: dict[str, TaskNotes] = {}
        self._ended: OrderedDict[str, TaskNotes] = OrderedDict()
        self._nobody = TaskNotes("", partial=True, seen=1)
        self._lost: dict[str, None] = {}
        """Open tasks on which the notes were dropped, oldest first."""
        self._held = 0
        """Number of message ids that are remembered, over all tasks."""
        self.forgotten = 0
        """Number of messages and tasks that did not fit into memory."""
        self.withheld = 0
        """Number of findings above the limit of their task."""
        self._sort()

    def _sort(self) -> None:
        """Group the invariants by the kind of message that they check."""
        self._always = [each for each in self._invariants if each.kind is None]
        self._of_kind: dict[str, list[Invariant]] = {}
        for each in self._invariants:
            if each.kind is not None:
                self._of_kind.setdefault(each.kind, []).append(each)

    @property
    def open_tasks(self) -> int:
        """Return the number of tasks that have not ended."""
        return len(self._tasks)

    def observe(self, envelope: Envelope) -> Sequence[Finding]:
        """Return the findings about this message, by what is known from earlier messages."""
        found: list[Finding] = []
        payload, task_id = envelope.payload, envelope.task_id
        if isinstance(payload, TaskResumed):
            notes = self._resume(envelope, payload, found)
        elif task_id in self._ended:
            self._late(envelope, self._ended[task_id], found)
            return found
        else:
            notes = self._notes(task_id)
        self._look((*self._always, *self._of_kind.get(envelope.kind, ())), notes, envelope, found)
        cause = envelope.cause_id
        if cause is not None and cause not in notes.kinds and len(notes.dangling) < _MOST_DANGLING:
            notes.dangling.add(cause)
        self._note(notes, envelope, found)
        if isinstance(payload, FinalResult):
            self._end(task_id)
        found += self.drift.observe(envelope)
        return found

    def gap(self, gap: Gap, at: datetime) -> Sequence[Finding]:
        """Report that messages were lost. From now on, it proves nothing if a message of the affected tasks is
        missing."""
        affected = [task_id for task_id, _ in gap.by_task]
        everything = not affected or "" in affected
        for task in self._tasks.values() if everything else filter(None, map(self._tasks.get, affected)):
            task.partial = True
        what = f"{gap.count} messages were lost before they could be looked at: {gap.reason}"[:_LONGEST]
        task_id = affected[0] if len(affected) == 1 else ""
        return [Finding(rule="sequence_gap", nature="loss", what=what, task_id=task_id, at=at)]

    # --- applying invariants --------------------------------------------------------------------------------

    def _look(
        self, invariants: Iterable[Invariant], notes: TaskNotes, envelope: Envelope, found: list[Finding]
    ) -> None:
        for each in invariants:
            if each.whole and notes.partial:
                continue
            try:
                for what in each.look(notes, envelope.payload, envelope):
                    self._report(notes, _finding(each.name, each.nature, what, envelope), found)
            except Exception as error:  # noqa: BLE001 - a broken invariant must not take the others with it
                self._invariants.remove(each)
                self._sort()
                what = f"the Auditor's own rule {each.name} failed and is off from here on: {_named(error)}"
                found.append(_finding("auditor_failed", "anomaly", what, envelope))

    def _report(self, notes: TaskNotes, finding: Finding, found: list[Finding]) -> None:
        notes.found += 1
        if notes.found > self._limits.findings_a_task:
            self.withheld += 1
        else:
            found.append(finding)

    def _note(self, notes: TaskNotes, envelope: Envelope, found: list[Finding]) -> None:
        self._remember(notes, envelope)
        try:
            notes.absorb(envelope)
        except Exception as error:  # noqa: BLE001 - what cannot be noted makes one task's notes incomplete, not all
            notes.partial = True
            what = f"the Auditor could not note this {envelope.kind}: {_named(error)}"
            found.append(_finding("auditor_failed", "anomaly", what, envelope))

    # --- memory and its bounds ------------------------------------------------------------------------------

    def _notes(self, task_id: str) -> TaskNotes:
        if not task_id:
            return self._nobody
        notes = self._tasks.get(task_id)
        if notes is None:
            notes = self._tasks[task_id] = TaskNotes(task_id)
            if task_id in self._lost:
                notes.partial, notes.seen = True, 1
            if len(self._tasks) > self._limits.open_tasks:
                self._forget_oldest(self._tasks)
        return notes

    def _remember(self, notes: TaskNotes, envelope: Envelope) -> None:
        self._held += envelope.id not in notes.kinds
        notes.kinds[envelope.id] = envelope.kind
        if self._held <= self._limits.messages:
            return
        if self._nobody.kinds:
            self._forget(self._nobody)
        else:
            self._forget_oldest(self._ended or self._tasks)

    def _forget_oldest(self, tasks: dict[str, TaskNotes]) -> None:
        """Drop the notes on the task that began or ended first. If the task continues, its notes are incomplete."""
        oldest = next(iter(tasks))
        self._forget(tasks.pop(oldest))
        if tasks is self._tasks:
            self.forgotten += 1
            self._lost[oldest] = None
            if len(self._lost) > self._limits.lost_tasks:
                del self._lost[next(iter(self._lost))]

    def _forget(self, notes: TaskNotes | None) -> None:
        if notes is not None:
            self._held -= len(notes.kinds)
            notes.kinds.clear()
            notes.partial = True

    def _end(self, task_id: str) -> None:
        """Keep only those notes on an ended task that are needed to judge late messages."""
        was = self._tasks.pop(task_id, None)
        if was is not None:
            rest = TaskNotes(task_id, was.kinds, was.partial, was.seen, was.found, was.latest, halted=was.halted)
            self._ended[task_id] = rest
            if len(self._ended) > self._limits.ended_tasks:
                self._forget_oldest(self._ended)

    # --- after the end --------------------------------------------------------------------------------------

    def _late(self, envelope: Envelope, notes: TaskNotes, found: list[Finding]) -> None:
        """Judge a message of a task that has ended. Records may still arrive, but control messages must not."""
        kind = envelope.kind
        route = ROUTES.get(kind)
        late = kind in _LATE or (notes.halted and kind in _LATE_WHEN_HALTED)
        if kind == "FinalResult":
            second = _finding("second_result", "violation", "a second FinalResult of one task", envelope)
            self._report(notes, second, found)
        elif (route is None or route.receivers) and not late:
            what = f"a {kind} of the {envelope.sender} after the task has ended"
            self._report(notes, _finding("message_after_end", "violation", what, envelope), found)
        invariants = (*self._always, *self._of_kind.get(kind, ()))
        self._look([each for each in invariants if not each.whole], notes, envelope, found)
        self._remember(notes, envelope)
        notes.latest = envelope

    # --- resumed tasks --------------------------------------------------------------------------------------

    def _resume(self, envelope: Envelope, resumed: TaskResumed, found: list[Finding]) -> TaskNotes:
        """Make the notes on a resumed task again from its earlier messages, except those that are no longer
        valid."""
        earlier = self._earlier(envelope, found)
        task_id = envelope.task_id
        self._lost.pop(task_id, None)
        self._forget(self._ended.pop(task_id, None))
        self._forget(self._tasks.pop(task_id, None))
        notes = self._notes(task_id)
        if earlier is None:
            notes.partial, notes.seen = True, 1
            return notes
        dropped = set(resumed.dropped)
        # A task may be resumed several times, so messages that earlier resumptions dropped are left out too.
        for message in earlier:
            if isinstance(message.payload, TaskResumed):
                dropped.update(message.payload.dropped)
        for message in earlier:
            if message.id == envelope.id:
                break
            if message.id in dropped:
                self._remember(notes, message)
            else:
                self._note(notes, message, found)
        if resumed.after not in notes.kinds:
            what = f"the task goes on after {resumed.after}, which was never on the stream"
            found.append(_finding("resumed_from_nowhere", "violation", what, envelope))
        return notes

    def _earlier(self, envelope: Envelope, found: list[Finding]) -> list[Envelope] | None:
        if self._recall is None:
            return None
        try:
            return list(self._recall(envelope.task_id))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the log, the rest is still watched
            what = f"what was said of this task before cannot be read: {_named(error)}"
            found.append(_finding("auditor_failed", "anomaly", what, envelope))
            return None


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _finding(rule: str, nature: Nature, what: str, envelope: Envelope) -> Finding:
    return Finding(
        rule=rule,
        nature=nature,
        what=what[:_LONGEST],
        task_id=envelope.task_id,
        subtask_id=envelope.subtask_id,
        envelope_id=envelope.id,
        accountable=envelope.sender,
        at=envelope.at,
    )
