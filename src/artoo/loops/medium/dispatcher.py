"""Assign ids to subtasks, run groups by sequence in parallel, feed outputs forward, and find shared paths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.plan import DispatchManifest, Joined, ManifestEntry, Plan, SharedPath, SubTask
from artoo.contracts.steering import UserMessage
from artoo.contracts.text import without_middle
from artoo.loops.role import listen
from artoo.ports.bus import Port
from artoo.ports.ids import Ids

# Number of characters (from the head and the tail) of each earlier output in the context of a later subtask.
_FED_CHARACTERS = 1_500


@dataclass(slots=True)
class _Round:
    """The state of one round: the groups that have not started, in order, the current group, its running subtasks,
    and the outcomes so far."""

    number: int = 1
    waiting: list[list[SubTask]] = field(default_factory=list[list[SubTask]])
    group: tuple[str, ...] = ()
    running: set[str] = field(default_factory=set[str])
    ended: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome])
    failed: bool = False
    started: bool = False


@dataclass(slots=True, eq=False)
class Dispatcher:
    """Runs groups with equal `sequence` in parallel. If a subtask fails, the groups after its own are not started.

    All subtasks share the task's workspace. At the end of a group, the paths that more than one of its subtasks
    changed are reported.
    """

    port: Port
    ids: Ids
    _round: _Round = field(default_factory=_Round, init=False)
    _finished: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome], init=False)
    # The user's messages to the running task, by the ids of their envelopes.
    _said: dict[str, str] = field(default_factory=dict[str, str], init=False)

    async def run(self) -> None:
        """Listen until the port closes."""
        await listen(self.port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case Plan() as plan:
                self._begin(plan, envelope)
            case SubTaskOutcome() as outcome:
                self._collect(outcome, envelope)
            case UserMessage(text=text) if text:
                self._said[envelope.id] = text
            case _:
                return

    def _begin(self, plan: Plan, cause: Envelope) -> None:
        self._finished = {key: self._finished[key] for key in plan.carried if key in self._finished}
        subtasks = sorted(self._with_ids(plan), key=lambda subtask: subtask.sequence)
        manifest = DispatchManifest(
            task_id=self.port.task_id,
            round=plan.round,
            subtasks=tuple(_entry(subtask) for subtask in subtasks),
            carried=plan.carried,
            task_criteria=plan.task_criteria,
            reply=plan.reply,
            question=plan.question,
            heads=plan.heads if plan.reply else "",
        )
        self.port.publish(manifest, cause=cause)
        groups: dict[int, list[SubTask]] = {}
        for subtask in subtasks:
            groups.setdefault(subtask.sequence, []).append(subtask)
        self._round = _Round(plan.round, [group for _, group in sorted(groups.items())])
        self._start_next(cause)

    def _with_ids(self, plan: Plan) -> Iterable[SubTask]:
        return [
            SubTask(
                subtask_id=self.ids.new(),
                parent_task_id=self.port.task_id,
                sequence=planned.sequence,
                intent=planned.intent,
                request=planned.request,
                context=planned.context,
                surroundings=plan.surroundings,
                heads=plan.heads,
                named_files=plan.named_files,
                guide=plan.guide,
                images=plan.images,
                success_criteria=planned.success_criteria,
                must_not=plan.must_not,
                cautions=plan.cautions,
                preferred_tool=planned.tool,
                part=planned.part,
                first_calls=planned.first_calls,
                deadline=plan.deadline,
            )
            for planned in plan.subtasks
        ]

    def _collect(self, outcome: SubTaskOutcome, cause: Envelope) -> None:
        if outcome.subtask_id not in self._round.running:
            return
        self._round.running.discard(outcome.subtask_id)
        self._round.ended[outcome.subtask_id] = outcome
        if outcome.status == "matched":
            self._finished[outcome.subtask_id] = outcome
        else:
            self._round.failed = True
        if not self._round.running:
            self._end_group(cause)

    def _end_group(self, cause: Envelope) -> None:
        under_way = self._round
        order = tuple(sorted(under_way.group, key=lambda key: key not in self._finished))
        shared = shared_paths(under_way.ended[key] for key in order)
        self.port.publish(Joined(round=under_way.number, subtask_ids=order, shared=shared), cause=cause)
        if not under_way.failed:
            self._start_next(cause)

    def _start_next(self, cause: Envelope) -> None:
        if not self._round.waiting:
            return
        group = self._round.waiting.pop(0)
        self._round.group = tuple(subtask.subtask_id for subtask in group)
        self._round.running = set(self._round.group)
        begun = self._round.number > 1 or self._round.started
        self._round.started = True
        known = _known(self._finished.values())
        now = {"begun": begun, "said": tuple(self._said.values()), "said_ids": tuple(self._said)}
        for subtask in group:
            context = "\n\n".join(part for part in (subtask.context, known) if part)
            subtask = subtask.model_copy(update={"context": context, **now})
            self.port.publish(subtask, cause=cause, subtask_id=subtask.subtask_id)


def _entry(subtask: SubTask) -> ManifestEntry:
    return ManifestEntry(
        subtask_id=subtask.subtask_id,
        sequence=subtask.sequence,
        intent=subtask.intent,
        success_criteria=subtask.success_criteria,
    )


def _known(outcomes: Iterable[SubTaskOutcome]) -> str:
    lines = [f"- {outcome.intent}: {without_middle(outcome.output, _FED_CHARACTERS)}" for outcome in outcomes]
    return "Known from earlier steps:\n" + "\n".join(lines) if lines else ""


def shared_paths(outcomes: Iterable[SubTaskOutcome]) -> tuple[SharedPath, ...]:
    """Return the paths that at least two of these subtasks certainly changed, in path order.

    A change is certain if no call or process of another subtask ran during its call (`ToolCall.overlapped`).
    """
    changed_by: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        for call in outcome.tool_calls:
            for path in () if call.overlapped else call.changes:
                changed_by.setdefault(path, {})[outcome.subtask_id] = None
    shared = ((path, tuple(ids)) for path, ids in sorted(changed_by.items()) if len(ids) > 1)
    return tuple(SharedPath(path=path, subtasks=ids) for path, ids in shared)
