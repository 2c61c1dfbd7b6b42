"""What a task is doing and why, folded from its log: rounds, subtasks, decisions, and whose turn it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import singledispatchmethod
from typing import Literal

from artoo.contracts.base import Contract
from artoo.contracts.confirmation import NOBODY, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.conversation import ChecklistItem, ChecklistUpdated
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CorrectionSignal, CriterionVerdict, SubTaskOutcome
from artoo.contracts.plan import DispatchManifest, Plan, PlanRefused, SubTask
from artoo.contracts.recording import TaskOpened, TaskResumed
from artoo.contracts.request import Interrupt, TaskSpec, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import (
    Decided,
    FinalResult,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    RoleFailure,
)
from artoo.contracts.steering import SampleMeasured, UserMessage
from artoo.control.hyperparameters import Hyperparameters
from artoo.tasklog.layout import GAP_KEY

MOST_SAMPLES = 40
MOST_MESSAGES = 100
MOST_SHOWN = 60
"""Subtasks of a round that are drawn one by one."""

TOLD = frozenset(
    kind.__name__
    for kind in (
        *(TaskOpened, UserRequest, TaskSpec, Plan, PlanRefused, DispatchManifest, SubTask, CorrectionSignal),
        *(SubTaskOutcome, OutcomeSummary, ReplanRequest, Decided, PlanDirective, FinalResult, TaskResumed),
        *(ConfirmationRequest, ConfirmationAnswer, RoleFailure, Interrupt, Ending, Settled),
        *(UserMessage, ChecklistUpdated, SampleMeasured),
    )
)
"""Kinds of which the story needs all; of the others it only counts."""

State = Literal["waiting", "working", "checking", "matched", "failed"]


@dataclass(slots=True)
class Part:
    """One subtask of a round. `lessons`: what the fast loop said was wrong, attempt by attempt."""

    subtask_id: str
    intent: str
    criteria: tuple[str, ...] = ()
    state: State = "waiting"
    attempt: int = 1
    lessons: list[str] = field(default_factory=list[str])
    verdicts: tuple[CriterionVerdict, ...] = ()
    failure: str = ""
    calls: int = 0


@dataclass(slots=True)
class Round:
    """One turn of the medium loop: a plan, its subtasks, what was missing, what the control law decided."""

    number: int
    parts: dict[str, Part] = field(default_factory=dict[str, Part])
    unlisted: int = 0
    carried: int = 0
    refused: tuple[str, ...] = ()
    verdicts: tuple[CriterionVerdict, ...] = ()
    gap: str = ""
    decided: Decided | None = None
    directive: PlanDirective | None = None
    """How the next round must differ."""
    samples: list[SampleMeasured] = field(default_factory=list[SampleMeasured])
    """Measurements of long attempts while they went on, the latest `MOST_SAMPLES`."""


@dataclass(slots=True)
class Asked:
    """A question of Law 1 that is on the log, and its answer if there is one."""

    request: ConfirmationRequest
    number: int
    answer: ConfirmationAnswer | None = None


@dataclass(slots=True)
class Story:
    """One task up to now. `turn`: whose it is; None before the beginning and after the end."""

    task_id: str = ""
    started: datetime | None = None
    last: datetime | None = None
    request: str = ""
    project: str = ""
    language: str = "en"
    task_type: str = ""
    opened: TaskOpened | None = None
    rounds: list[Round] = field(default_factory=list[Round])
    asked: list[Asked] = field(default_factory=list[Asked])
    messages: list[str] = field(default_factory=list[str])
    checklist: tuple[ChecklistItem, ...] = ()
    result: FinalResult | None = None
    settled: Settled | None = None
    failure: str = ""
    turn: Role | None = None
    doing: str = ""
    model_calls: int = 0
    tokens: int = 0
    tool_calls: int = 0
    stopping: bool = False
    resumed: int = 0
    missing: int = 0
    unreadable: int = 0
    version: int = 0
    """Grows with everything that a drawing could show."""

    def hear(self, envelope: Envelope, number: int) -> None:
        """One message of a kind in TOLD; `number` is its line."""
        if self.started is None:
            self.started, self.task_id = envelope.at, envelope.task_id
        self.last = envelope.at
        self.version += 1
        self._take(envelope.payload)
        if isinstance(envelope.payload, ConfirmationRequest):
            self.asked.append(Asked(envelope.payload, number))

    @property
    def round(self) -> Round:
        """The one that runs, or ran last."""
        if not self.rounds:
            self.rounds.append(Round(1))
        return self.rounds[-1]

    @property
    def law(self) -> Hyperparameters:
        """The numbers by which it decides."""
        given = {} if self.opened is None else self.opened.for_type(self.task_type).hyperparameters
        known = {name: value for name, value in given.items() if name in Hyperparameters.__slots__}
        return Hyperparameters(**known)  # pyright: ignore[reportArgumentType]

    @property
    def ended_parts(self) -> int:
        """Subtasks of the round that have left the fast loop."""
        parts = self.rounds[-1].parts.values() if self.rounds else ()
        return sum(each.state in ("matched", "failed") for each in parts)

    @property
    def told(self) -> PlanDirective | None:
        """How the round that runs must differ, or the next one will."""
        return next((each.directive for each in reversed(self.rounds[-2:]) if each.directive is not None), None)

    @property
    def verdicts(self) -> tuple[CriterionVerdict, ...]:
        """What was decided of every criterion, by whom: of a criterion that was judged again, the last word."""
        said: dict[str, CriterionVerdict] = {}
        for each in self.rounds:
            for part in each.parts.values():
                said |= {one.criterion: one for one in part.verdicts}
            said |= {one.criterion: one for one in each.verdicts}
        return tuple(said.values())

    def part(self, subtask_id: str) -> Part | None:
        """A subtask of any round."""
        return next((each.parts[subtask_id] for each in reversed(self.rounds) if subtask_id in each.parts), None)

    @singledispatchmethod
    def _take(self, payload: Contract) -> None:
        """Kinds that change nothing that is shown."""

    @_take.register
    def _opened(self, payload: TaskOpened) -> None:
        self.opened = payload

    @_take.register
    def _request(self, payload: UserRequest) -> None:
        self.request, self.project, self.turn = payload.text, payload.project, Role.PERCEIVER

    @_take.register
    def _spec(self, payload: TaskSpec) -> None:
        self.language, self.task_type, self.turn = payload.language, payload.task_id, Role.PLANNER

    @_take.register
    def _plan(self, payload: Plan) -> None:
        self.turn = Role.DISPATCHER

    @_take.register
    def _refused(self, payload: PlanRefused) -> None:
        self.rounds.append(Round(payload.round, refused=payload.reasons))
        self.turn = Role.SOLVER

    @_take.register
    def _manifest(self, payload: DispatchManifest) -> None:
        shown = payload.subtasks[:MOST_SHOWN]
        parts = {
            one.subtask_id: Part(one.subtask_id, one.intent, tuple(each.text for each in one.success_criteria))
            for one in shown
        }
        unlisted = len(payload.subtasks) - len(shown)
        self.rounds.append(Round(payload.round, parts, unlisted, carried=len(payload.carried)))
        self.turn = Role.EXECUTOR if payload.subtasks else Role.META_VALIDATOR

    @_take.register
    def _subtask(self, payload: SubTask) -> None:
        part = self.part(payload.subtask_id)
        if part is not None:
            part.state = "working"
        self.turn = Role.EXECUTOR

    @_take.register
    def _correction(self, payload: CorrectionSignal) -> None:
        part = self.part(payload.subtask_id)
        if part is not None:
            part.state, part.attempt = "working", payload.attempt + 1
            part.lessons.append(payload.what_was_wrong)
        self.turn = Role.EXECUTOR

    @_take.register
    def _outcome(self, payload: SubTaskOutcome) -> None:
        part = self.part(payload.subtask_id)
        if part is not None:
            part.state, part.verdicts = payload.status, payload.criteria_verdicts
            part.failure = payload.failure_reason or ""
        if self.ended_parts == len(self.round.parts):
            self.turn = Role.META_VALIDATOR

    @_take.register
    def _summary(self, payload: OutcomeSummary) -> None:
        self.round.verdicts, self.turn = payload.task_verdicts, Role.SOLVER

    @_take.register
    def _replan(self, payload: ReplanRequest) -> None:
        self.round.verdicts, self.round.gap, self.turn = payload.task_verdicts, payload.gap_summary, Role.SOLVER

    @_take.register
    def _decided(self, payload: Decided) -> None:
        self.round.decided, self.turn = payload, Role.SOLVER

    @_take.register
    def _directive(self, payload: PlanDirective) -> None:
        self.round.directive, self.turn = payload, Role.PLANNER

    @_take.register
    def _message(self, payload: UserMessage) -> None:
        if payload.text:
            self.messages = [*self.messages, payload.text][-MOST_MESSAGES:]

    @_take.register
    def _checklist(self, payload: ChecklistUpdated) -> None:
        self.checklist = payload.items

    @_take.register
    def _sampled(self, payload: SampleMeasured) -> None:
        self.round.samples = [*self.round.samples, payload][-MOST_SAMPLES:]

    @_take.register
    def _question(self, payload: ConfirmationRequest) -> None:
        self.turn = Role.USER

    @_take.register
    def _answer(self, payload: ConfirmationAnswer) -> None:
        for each in reversed(self.asked):
            if each.request.digest == payload.digest and each.answer is None:
                each.answer = payload
                break
        self.turn = Role.SOLVER if self.round.decided is not None else Role.EXECUTOR

    @_take.register
    def _role_failure(self, payload: RoleFailure) -> None:
        self.failure = f"{payload.role.value}: {payload.reason}"

    @_take.register
    def _interrupt(self, payload: Interrupt) -> None:
        self.stopping = True

    @_take.register
    def _ending(self, payload: Ending) -> None:
        self.turn = Role.GATE

    @_take.register
    def _settled(self, payload: Settled) -> None:
        self.settled = payload

    @_take.register
    def _result(self, payload: FinalResult) -> None:
        self.result, self.turn, self.settled = payload, None, payload.changes
        for each in self.asked:  # a question that nobody answered is not open any more
            closed = ConfirmationAnswer(digest=each.request.digest, consent=Consent.NO, by=NOBODY)
            each.answer = each.answer or closed

    @_take.register
    def _resumed(self, payload: TaskResumed) -> None:
        self.result, self.stopping, self.failure = None, False, ""
        self.resumed += 1


_SUBTASK = re.compile(rb'"subtask_id":"([^"\\]{1,100})"')
_TOKENS = re.compile(rb'"(?:prompt|completion)_tokens":(\d{1,12})')
_DOING = re.compile(rb'"tool":"([^"\\]{1,60})","input":"((?:[^"\\]|\\.){0,120})')


def tally(story: Story, kind: str, line: bytes) -> None:
    """What the story takes from kinds that come by the ten thousand: counts, and what is being done now.

    From the line as it stands: building each of them would take most of the time of opening a long log.
    """
    if kind == "ModelCalled":
        story.model_calls += 1
        story.tokens += sum(int(each) for each in _TOKENS.findall(line)[:2])
    elif kind == "ToolStarted":
        found = _DOING.search(line)
        story.doing = "" if found is None else b": ".join(found.groups()).decode("utf-8", "replace")
    elif kind == "ToolCalled":
        story.tool_calls += 1
        story.doing = ""
        part = _part_of(story, line)
        if part is not None:
            part.calls += 1
    elif kind == "ExecutionResult":
        part = _part_of(story, line)
        if part is not None:
            part.state = "checking"
        story.turn = Role.AGENT_VALIDATOR
    elif kind == GAP_KEY:
        story.missing += 1
    else:
        return
    story.version += 1


def _part_of(story: Story, line: bytes) -> Part | None:
    found = _SUBTASK.search(line)
    return None if found is None else story.part(found[1].decode("utf-8", "replace"))
