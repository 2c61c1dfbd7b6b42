"""The Auditor's eyes: what is wrong with a stream, message by message. No I/O, bounded memory (SPEC section 7).

watch = Watch()
for envelope in stream:
    for finding in watch.observe(envelope):
        ...
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from artoo.auditor.absorb import absorb
from artoo.auditor.drift import Drift
from artoo.auditor.law import Law
from artoo.auditor.notes import TaskNotes
from artoo.auditor.rules import ALL_RULES
from artoo.auditor.rules.envelopes import unremarkable
from artoo.auditor.rules.rule import Rule
from artoo.contracts.audit import Finding
from artoo.contracts.envelope import Envelope
from artoo.contracts.recording import TaskResumed
from artoo.contracts.routes import ROUTES
from artoo.contracts.solution import FinalResult
from artoo.ports.spool import Gap

Recall = Callable[[str], Iterable[Envelope]]
"""Everything that was said of a task so far, for one that goes on in this process."""

_LONGEST = 500
"""Characters of what a finding says."""

_LATE = frozenset({"RoleFailure", "Interrupt", "ConfirmationAnswer", "ConfirmationRequest", "TaskResumed"})
"""Kinds that somebody receives and that may come a moment after the end, because their sender could not know."""

_LATE_WHEN_HALTED = frozenset({"ReplanRequest", "ExecutionResult", "SubTaskOutcome", "Joined", "OutcomeSummary"})
"""What was on its way when work was stopped and R7 did not wait for it."""


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """Bounds of what is remembered. What does not fit is counted in `Watch.forgotten`, and judged less strictly."""

    open_tasks: int = 512
    ended_tasks: int = 64
    ended_names: int = 10_000
    messages: int = 65_536
    findings_a_task: int = 100


@dataclass(slots=True)
class _Ended:
    """A task that has ended: a tombstone for what still comes."""

    notes: TaskNotes
    halted: bool
    messages: list[str] = field(default_factory=list[str])


class Watch:
    """Applies every rule to every message. One consumer, one thread.

    `law` is what a task is held to until its TaskOpened says otherwise. `recall` gives the earlier messages of a
    task that goes on here; without it such a task is only judged by what is seen of it. `drift` holds the long-run
    figures of the roles. A rule that raises is reported and left out from there on.
    """

    def __init__(
        self,
        *,
        law: Law | None = None,
        recall: Recall | None = None,
        drift: Drift | None = None,
        limits: WatchLimits | None = None,
        rules: Sequence[Rule] = ALL_RULES,
    ) -> None:
        self._law = law or Law()
        self._recall = recall
        self.drift = drift or Drift()
        self._limits = limits or WatchLimits()
        self._always = [rule for rule in rules if rule.kind is None]
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.kind is not None:
                self._rules.setdefault(rule.kind, []).append(rule)
        self._kinds: dict[str, tuple[str, str]] = {}
        self._tasks: dict[str, TaskNotes] = {}
        self._messages: dict[str, list[str]] = {}
        self._ended: OrderedDict[str, _Ended] = OrderedDict()
        self._past: OrderedDict[str, None] = OrderedDict()
        self._lost: OrderedDict[str, None] = OrderedDict()
        self._nobody = TaskNotes("", self._kinds, partial=True, seen=1)
        self.forgotten = 0
        """Messages and tasks that did not fit into memory."""
        self.withheld = 0
        """Findings beyond the limit of their task."""

    @property
    def open_tasks(self) -> int:
        """Tasks that have not ended."""
        return len(self._tasks)

    def is_open(self, task_id: str) -> bool:
        """Whether this task is under way."""
        return task_id in self._tasks

    def observe(self, envelope: Envelope) -> Sequence[Finding]:
        """What is wrong with this message, in the light of those before it."""
        found: list[Finding] = []
        ended = self._ended.get(envelope.task_id)
        payload = envelope.payload
        if isinstance(payload, TaskResumed):
            task = self._resume(envelope, payload, found)
        elif ended is not None or envelope.task_id in self._past:
            self._late(envelope, ended, found)
            return found
        else:
            task = self._task(envelope.task_id)
        self._apply(task, envelope, found)
        self._note(task, envelope, found)
        if isinstance(payload, FinalResult):
            self._end(task)
        found += self.drift.observe(envelope)
        return found

    def gap(self, gap: Gap, at: datetime) -> Sequence[Finding]:
        """Messages that nobody has kept: they are reported, and what is missing proves nothing any more."""
        affected = [task_id for task_id, _ in gap.by_task]
        everything = not affected or "" in affected
        for task in self._tasks.values() if everything else filter(None, map(self._tasks.get, affected)):
            task.partial = True
        return [
            Finding(
                rule="sequence_gap",
                nature="loss",
                what=f"{gap.count} messages were lost before they could be looked at: {gap.reason}"[:_LONGEST],
                task_id=affected[0] if len(affected) == 1 else "",
                at=at,
            )
        ]

    # --- applying rules -------------------------------------------------------------------------------------

    def _apply(self, task: TaskNotes, envelope: Envelope, found: list[Finding]) -> None:
        rules = self._rules.get(envelope.kind, ())
        if not unremarkable(task, envelope):
            rules = self._rules_for(envelope)
        self._look([rule for rule in rules if not rule.whole] if task.partial else rules, task, envelope, found)
        if envelope.cause_id is not None and envelope.cause_id not in self._kinds and len(task.dangling) < 256:
            task.dangling.add(envelope.cause_id)

    def _rules_for(self, envelope: Envelope) -> Sequence[Rule]:
        return (*self._always, *self._rules.get(envelope.kind, ()))

    def _look(self, rules: Sequence[Rule], task: TaskNotes, envelope: Envelope, found: list[Finding]) -> None:
        for rule in rules:
            try:
                for what in rule.look(task, envelope.payload, envelope):
                    self._report(task, _finding(rule.name, rule.nature, what, envelope), found)
            except Exception as error:  # noqa: BLE001 - a broken rule must not take the others with it
                self._disable(rule, error, envelope, found)

    def _report(self, task: TaskNotes, finding: Finding, found: list[Finding]) -> None:
        task.found += 1
        if task.found > self._limits.findings_a_task:
            self.withheld += 1
            return
        found.append(finding)

    def _disable(self, rule: Rule, error: Exception, envelope: Envelope, found: list[Finding]) -> None:
        self._always = [each for each in self._always if each is not rule]
        self._rules = {kind: [each for each in rules if each is not rule] for kind, rules in self._rules.items()}
        what = f"the Auditor's own rule {rule.name} failed and is off from here on: {type(error).__name__}: {error}"
        found.append(_finding("auditor_failed", "anomaly", what, envelope))

    def _note(self, task: TaskNotes, envelope: Envelope, found: list[Finding]) -> None:
        self._remember(envelope)
        try:
            absorb(task, envelope)
        except Exception as error:  # noqa: BLE001 - what cannot be noted makes one task's notes incomplete, not all
            task.partial = True
            what = f"the Auditor could not note this {envelope.kind}: {type(error).__name__}: {error}"
            found.append(_finding("auditor_failed", "anomaly", what, envelope))

    # --- memory and its bounds ------------------------------------------------------------------------------

    def _task(self, task_id: str) -> TaskNotes:
        if not task_id:
            return self._nobody
        task = self._tasks.get(task_id)
        if task is None:
            task = self._tasks[task_id] = TaskNotes(task_id, self._kinds, law=self._law)
            self._messages[task_id] = []
            if task_id in self._lost:
                task.partial, task.seen = True, 1
            if len(self._tasks) > self._limits.open_tasks:
                self._forget_oldest()
        return task

    def _remember(self, envelope: Envelope) -> None:
        self._kinds[envelope.id] = (envelope.task_id, envelope.kind)
        messages = self._messages.get(envelope.task_id)
        if messages is not None:
            messages.append(envelope.id)
        if len(self._kinds) > self._limits.messages:
            oldest = next(iter(self._kinds))
            owner = self._tasks.get(self._kinds.pop(oldest)[0])
            self.forgotten += 1
            if owner is not None:
                owner.partial = True

    def _forget_oldest(self) -> None:
        """The task that began first; if it still speaks, it is a task of which not everything is known."""
        oldest = next(iter(self._tasks))
        del self._tasks[oldest]
        for message in self._messages.pop(oldest, ()):
            self._kinds.pop(message, None)
        self._lost[oldest] = None
        if len(self._lost) > self._limits.ended_names:
            self._lost.popitem(last=False)
        self.forgotten += 1

    def _end(self, task: TaskNotes) -> None:
        self._tasks.pop(task.task_id, None)
        rest = TaskNotes(task.task_id, self._kinds, law=task.law, partial=task.partial, seen=task.seen)
        rest.latest, rest.found = task.latest, task.found
        self._ended[task.task_id] = _Ended(rest, task.halt is not None, self._messages.pop(task.task_id, []))
        if len(self._ended) > self._limits.ended_tasks:
            name, oldest = self._ended.popitem(last=False)
            for message in oldest.messages:
                self._kinds.pop(message, None)
            self._past[name] = None
            if len(self._past) > self._limits.ended_names:
                self._past.popitem(last=False)

    # --- after the end --------------------------------------------------------------------------------------

    def _late(self, envelope: Envelope, ended: _Ended | None, found: list[Finding]) -> None:
        """A message of a task that has ended: records may still come, control messages may not.

        Ended so long ago that only its name is known, it shares the bound of findings with what is of no task.
        """
        kind, notes = envelope.kind, self._nobody if ended is None else ended.notes
        route = ROUTES.get(kind)
        halted = ended is not None and ended.halted
        late = kind in _LATE or (halted and kind in _LATE_WHEN_HALTED)
        if kind == "FinalResult":
            second = _finding("second_result", "violation", "a second FinalResult of one task", envelope)
            self._report(notes, second, found)
        elif (route is None or route.receivers) and not late:
            what = f"a {kind} of the {envelope.sender} after the task has ended"
            self._report(notes, _finding("message_after_end", "violation", what, envelope), found)
        if ended is None:
            return
        self._look([rule for rule in self._rules_for(envelope) if not rule.whole], ended.notes, envelope, found)
        if len(ended.messages) < self._limits.messages:
            self._remember(envelope)
            ended.messages.append(envelope.id)
            ended.notes.latest = envelope

    # --- tasks that go on here ------------------------------------------------------------------------------

    def _resume(self, envelope: Envelope, resumed: TaskResumed, found: list[Finding]) -> TaskNotes:
        """The notes of a task that goes on: made anew from what was said of it, without what does not stand."""
        earlier = self._earlier(envelope, found)
        self._drop(envelope.task_id)
        task = self._task(envelope.task_id)
        if earlier is None:
            task.partial, task.seen = True, 1
            return task
        dropped = set(resumed.dropped)
        for message in earlier:  # a task may be resumed often: what an earlier life took back does not stand either
            if isinstance(message.payload, TaskResumed):
                dropped.update(message.payload.dropped)
        for message in earlier:
            if message.id == envelope.id:
                break
            if message.id in dropped:
                self._remember(message)
            else:
                self._note(task, message, found)
        if resumed.after not in self._kinds:
            what = f"the task goes on after {resumed.after}, which was never on the stream"
            found.append(_finding("resumed_from_nowhere", "violation", what, envelope))
        return task

    def _earlier(self, envelope: Envelope, found: list[Finding]) -> list[Envelope] | None:
        if self._recall is None:
            return None
        try:
            return list(self._recall(envelope.task_id))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the log, the rest is still watched
            what = f"what was said of this task before cannot be read: {type(error).__name__}: {error}"
            found.append(_finding("auditor_failed", "anomaly", what, envelope))
            return None

    def _drop(self, task_id: str) -> None:
        ended = self._ended.pop(task_id, None)
        self._past.pop(task_id, None)
        self._tasks.pop(task_id, None)
        for message in (*(ended.messages if ended is not None else ()), *self._messages.pop(task_id, ())):
            self._kinds.pop(message, None)


def _finding(rule: str, nature: str, what: str, envelope: Envelope) -> Finding:
    return Finding.model_validate(
        {
            "rule": rule,
            "nature": nature,
            "what": what[:_LONGEST],
            "task_id": envelope.task_id,
            "subtask_id": envelope.subtask_id,
            "envelope_id": envelope.id,
            "accountable": envelope.sender,
            "at": envelope.at,
        }
    )
