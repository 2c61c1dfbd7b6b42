"""Reduce a task's messages to its state, with phases, rounds, subtasks and calls, and limits of its lists.

`TaskState.apply` takes one message after the other and reads no clock, file or setting. The terminal, `artoo
log`, the web UI, ACP and MCP show parts of this state, and never interpret the messages themselves. The size of
the state is bounded, because its lists keep only the latest entries (`MOST_…`) and a round has the subtasks of
its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from artoo.contracts.base import Contract
from artoo.contracts.confirmation import AskedAct, ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.conversation import ChecklistItem, ChecklistUpdated, TextDelta
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    CriterionJudged,
    CriterionVerdict,
    ExecutionResult,
    SubTaskOutcome,
    ToolCalled,
    ToolStarted,
)
from artoo.contracts.plan import DispatchManifest, ManifestEntry, Plan, PlanRefused, SubTask
from artoo.contracts.recording import TaskOpened, TaskResumed
from artoo.contracts.request import Interrupt, TaskSpec, Turn, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import (
    Decided,
    FinalResult,
    Halt,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    RoleFailure,
)
from artoo.contracts.steering import (
    PlanAnswered,
    PlanProposed,
    QuestionAnswered,
    QuestionAsked,
    SampleMeasured,
    UserMessage,
)

MOST_SAMPLES = 40
MOST_MESSAGES = 100
MOST_LESSONS = 20
MOST_RUNNING = 1_000
MOST_NOT_ALLOWED = 100
# Number of characters that are kept of the text that the model writes in its present turn. User interfaces show the
# last lines of it.
WORDS_KEPT = 20_000

_Item = TypeVar("_Item")


class Stage(StrEnum):
    """The position of a subtask in the fast loop."""

    WAITING = "waiting"
    WORKING = "working"
    CHECKING = "checking"
    MATCHED = "matched"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Return whether the subtask has left the fast loop."""
        return self in (Stage.MATCHED, Stage.FAILED)


class Phase(StrEnum):
    """The position of a task between its request and its result."""

    BEGINNING = "beginning"
    READING = "reading"
    PLANNING = "planning"
    DISPATCHING = "dispatching"
    WORKING = "working"
    MERGING = "merging"
    DECIDING = "deciding"
    REPLANNING = "replanning"
    SETTLING = "settling"
    ENDED = "ended"


_TURNS = {
    Phase.READING: Role.PERCEIVER,
    Phase.PLANNING: Role.PLANNER,
    Phase.DISPATCHING: Role.DISPATCHER,
    Phase.WORKING: Role.EXECUTOR,
    Phase.MERGING: Role.META_VALIDATOR,
    Phase.DECIDING: Role.SOLVER,
    Phase.REPLANNING: Role.PLANNER,
    Phase.SETTLING: Role.GATE,
}


@dataclass(slots=True)
class Call:
    """A tool call. `status` is None until the call ends. `target` has the same meaning as in ToolCall."""

    act: str
    subtask_id: str
    tool: str
    input: str
    target: str = ""
    status: CallStatus | None = None


@dataclass(slots=True)
class Subtask:
    """One subtask of a round. `judged` counts the verdicts of the present attempt, `passed` counts those of them
    that passed, and `open` counts those that are open.

    `started` counts the tool calls that have started, and `calls` counts those that have ended. `running` is the
    latest call that has not ended, and `ended` is the latest call that has. `lessons` contains the corrections of
    the fast loop, one for each attempt.
    """

    subtask_id: str
    number: int
    intent: str
    criteria: tuple[str, ...] = ()
    stage: Stage = Stage.WAITING
    attempt: int = 1
    started: int = 0
    calls: int = 0
    running: Call | None = None
    ended: Call | None = None
    passed: int = 0
    judged: int = 0
    open: int = 0
    lessons: list[str] = field(default_factory=list[str])
    checklist: tuple[ChecklistItem, ...] = ()
    outcome: SubTaskOutcome | None = None

    def take(self, payload: ChecklistUpdated | CriterionJudged | CorrectionSignal | SubTaskOutcome) -> None:
        """Update the subtask with a message about it."""
        match payload:
            case ChecklistUpdated():
                self.checklist = payload.items
            case CriterionJudged(verdict=verdict):
                self.judged += 1
                self.passed += verdict.verdict == "pass"
                self.open += verdict.verdict == "open"
            case CorrectionSignal():
                self.stage, self.attempt = Stage.WORKING, payload.attempt + 1
                self.lessons = _latest([*self.lessons, payload.what_was_wrong], MOST_LESSONS)
            case SubTaskOutcome():
                self.stage, self.outcome = Stage(payload.status), payload

    @property
    def at_work(self) -> bool:
        """Return whether an executor or its validator is working on the subtask."""
        return self.stage in (Stage.WORKING, Stage.CHECKING)

    @property
    def verdicts(self) -> tuple[CriterionVerdict, ...]:
        """Return the verdicts with which the subtask left the fast loop."""
        return () if self.outcome is None else self.outcome.criteria_verdicts

    @property
    def failure(self) -> str:
        """Return the reason why the subtask failed. Return an empty text if it did not fail."""
        return "" if self.outcome is None else self.outcome.failure_reason or ""

    @property
    def reason(self) -> str:
        """Return the reason why the subtask failed. While the subtask runs, return the latest correction."""
        if self.stage.ended:
            return self.failure if self.stage is Stage.FAILED else ""
        return self.lessons[-1] if self.lessons else ""


@dataclass(slots=True)
class Round:
    """One turn of the medium loop: a plan, its subtasks, the unmet criteria, and the decision of the control law.

    `planned` is False if this round has no plan yet, or if the task ended before it had one. `carried` contains the
    subtasks of earlier rounds that matched and remain valid. `evidence` is the message on which the decision rests.
    `directive` says how the next round must differ.
    """

    number: int
    subtasks: dict[str, Subtask] = field(default_factory=dict[str, Subtask])
    planned: bool = True
    carried: tuple[str, ...] = ()
    evidence: OutcomeSummary | ReplanRequest | PlanRefused | None = None
    decided: Decided | None = None
    directive: PlanDirective | None = None
    samples: list[SampleMeasured] = field(default_factory=list[SampleMeasured])

    @property
    def matched(self) -> int:
        """Return the number of subtasks of this round that matched."""
        return sum(each.stage is Stage.MATCHED for each in self.subtasks.values())

    @property
    def ended(self) -> int:
        """Return the number of subtasks of this round that have left the fast loop."""
        return sum(each.stage.ended for each in self.subtasks.values())

    @property
    def settled(self) -> bool:
        """Return whether no subtask runs and none will start. After a failure, later groups of subtasks do not
        start."""
        stages = {each.stage for each in self.subtasks.values()}
        return not any(each.at_work for each in self.subtasks.values()) and (
            Stage.WAITING not in stages or Stage.FAILED in stages
        )

    @property
    def refused(self) -> tuple[str, ...]:
        """Return the reasons why the plan of this round was refused. Return an empty tuple if it was not
        refused."""
        return self.evidence.reasons if isinstance(self.evidence, PlanRefused) else ()

    @property
    def gap(self) -> str:
        """Return in words which part of the task is unmet."""
        return self.evidence.gap_summary if isinstance(self.evidence, ReplanRequest) else ""

    @property
    def task_verdicts(self) -> tuple[CriterionVerdict, ...]:
        """Return the verdicts on the task's own criteria."""
        return (
            () if self.evidence is None or isinstance(self.evidence, PlanRefused) else self.evidence.task_verdicts
        )

    @property
    def verdicts(self) -> tuple[CriterionVerdict, ...]:
        """Return the verdicts on which the decision rests: first those of the subtasks, then those of the task.

        If the verdict of a single subtask also decided the task, it is listed only once.
        """
        if self.evidence is None or isinstance(self.evidence, PlanRefused):
            return ()
        of_subtasks = (verdict for one in self.evidence.outcomes for verdict in one.criteria_verdicts)
        found = (*of_subtasks, *self.evidence.task_verdicts)
        return tuple({(one.criterion, one.verdict, one.decided_by): one for one in found}.values())


Asked = ConfirmationRequest | QuestionAsked | PlanProposed


@dataclass(slots=True)
class TaskState:
    """The state of one task up to now.

    `questions` contains the questions that wait for the user, oldest first. `not_allowed` contains the operations
    that the user or a policy refused, without reviews. `running` contains the tool calls that have not ended.
    `words` is the text that the model has written in its present turn, without the first `words_cut` characters.
    `trouble` is the latest problem of the present round. `missing` counts the messages that the log lost, and
    `unreadable` counts the lines that cannot be read.
    """

    task_id: str = ""
    started: datetime | None = None
    last: datetime | None = None
    opened: TaskOpened | None = None
    request: str = ""
    project: str = ""
    history: tuple[Turn, ...] = ()
    spec: TaskSpec | None = None
    phase: Phase = Phase.BEGINNING
    rounds: list[Round] = field(default_factory=list[Round])
    questions: dict[str, Asked] = field(default_factory=dict[str, Asked])
    not_allowed: list[AskedAct] = field(default_factory=list[AskedAct])
    running: dict[str, Call] = field(default_factory=dict[str, Call])
    checklist: tuple[ChecklistItem, ...] = ()
    messages: list[str] = field(default_factory=list[str])
    words: str = ""
    words_cut: int = 0
    trouble: PlanRefused | RoleFailure | SampleMeasured | None = None
    failure: RoleFailure | None = None
    settled: Settled | None = None
    result: FinalResult | None = None
    stopping: bool = False
    resumed: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    tool_calls: int = 0
    missing: int = 0
    unreadable: int = 0
    _decision: str = ""
    """The id of the last decision's message, because a resumption may revoke the decision."""

    def apply(self, envelope: Envelope) -> None:
        """Update the state with the next message of the task."""
        if self.started is None:
            self.started, self.task_id = envelope.at, envelope.task_id
        self.last = envelope.at
        if isinstance(envelope.payload, Decided):
            self._decision = envelope.id
        self._take(envelope.payload)

    @property
    def intent(self) -> str:
        """Return the request as the perceiver (R1) understood it. Before there is a TaskSpec, return the user's
        text."""
        return self.request if self.spec is None else self.spec.intent or self.request

    @property
    def language(self) -> str:
        """Return the language in which artoo writes its own sentences to the user."""
        return "en" if self.spec is None else self.spec.language

    @property
    def task_type(self) -> str:
        """Return the short name of the task's kind. It is empty before there is a TaskSpec."""
        return "" if self.spec is None else self.spec.task_id

    @property
    def round(self) -> Round | None:
        """Return the round that is running now, or the last one if none is."""
        return self.rounds[-1] if self.rounds else None

    @property
    def round_number(self) -> int:
        """Return the number of the round that is planned or running now. A directive begins the next round."""
        if not self.rounds:
            return 1
        last = self.rounds[-1]
        return last.number if last.directive is None else last.directive.round

    @property
    def directive(self) -> PlanDirective | None:
        """Return the directive of the running round, or of the next one."""
        return next((each.directive for each in reversed(self.rounds[-2:]) if each.directive is not None), None)

    @property
    def question(self) -> Asked | None:
        """Return the latest question that waits for the user."""
        return next(reversed(self.questions.values()), None)

    @property
    def turn(self) -> Role | None:
        """Return the role that has to act next. Return None before the request and after the result."""
        if self.questions:
            return Role.USER
        if self.phase is Phase.WORKING and self.round is not None:
            stages = {each.stage for each in self.round.subtasks.values()}
            if Stage.CHECKING in stages and Stage.WORKING not in stages:
                return Role.AGENT_VALIDATOR
        return _TURNS.get(self.phase)

    @property
    def doing(self) -> Call | None:
        """Return the latest tool call that has not ended."""
        return next(reversed(self.running.values()), None)

    @property
    def tokens(self) -> int:
        """Return the total number of tokens that models received and produced."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def verdicts(self) -> tuple[CriterionVerdict, ...]:
        """Return the last verdict on every criterion of the task and its subtasks."""
        said: dict[str, CriterionVerdict] = {}
        for each in self.rounds:
            for subtask in each.subtasks.values():
                said |= {one.criterion: one for one in subtask.verdicts}
            said |= {one.criterion: one for one in each.task_verdicts}
        return tuple(said.values())

    def subtask(self, subtask_id: str | None) -> Subtask | None:
        """Return the latest subtask with this id. Return None if no round has such a subtask."""
        if subtask_id is None:
            return None
        return next(
            (each.subtasks[subtask_id] for each in reversed(self.rounds) if subtask_id in each.subtasks), None
        )

    # The module `web.index`, which reads raw log lines, calls the next methods directly without building the
    # messages.

    def add_model_call(self, prompt: int, cached: int, completion: int) -> None:
        """Count a model call and its tokens. Clear the text of the turn, because the turn is complete."""
        self.model_calls += 1
        self.prompt_tokens += prompt
        self.cached_tokens += cached
        self.completion_tokens += completion
        self.words, self.words_cut = "", 0

    def begin_call(self, call: Call) -> None:
        """Count a tool call that starts."""
        self.running[call.act] = call
        if len(self.running) > MOST_RUNNING:
            del self.running[next(iter(self.running))]
        subtask = self.subtask(call.subtask_id)
        if subtask is not None:
            subtask.started += 1
            subtask.running = call

    def end_call(self, call: Call) -> None:
        """Count a tool call that ended, or that was refused before it started."""
        self.tool_calls += 1
        self.running.pop(call.act, None)
        subtask = self.subtask(call.subtask_id)
        if subtask is not None:
            subtask.calls += 1
            subtask.ended = call
            others = (each for each in reversed(self.running.values()) if each.subtask_id == call.subtask_id)
            subtask.running = next(others, None)

    def begin_check(self, subtask_id: str) -> None:
        """Mark the attempt of a subtask as finished, so that it will be judged."""
        subtask = self.subtask(subtask_id)
        if subtask is not None:
            subtask.stage = Stage.CHECKING
            subtask.passed = subtask.judged = subtask.open = 0

    def _take(self, payload: Contract) -> None:
        """Update the state according to the type of a payload. Types that have no case here or in the methods below
        change nothing."""
        match payload:
            case TaskOpened():
                self.opened = payload
            case UserRequest():
                self.request, self.project, self.phase = payload.text, payload.project, Phase.READING
                self.history = payload.history
            case TaskSpec():
                self.spec, self.phase = payload, Phase.PLANNING
            case ModelCalled(usage=usage):
                self.add_model_call(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
            case TextDelta():
                whole = self.words + payload.text
                self.words = whole[-WORDS_KEPT:]
                self.words_cut += len(whole) - len(self.words)
            case UserMessage():
                if payload.text:
                    self.messages = _latest([*self.messages, payload.text], MOST_MESSAGES)
            case Interrupt() | Halt():
                self.stopping = True
            case RoleFailure():
                self.trouble = self.failure = payload
            case Ending():
                self.phase = Phase.SETTLING
            case Settled():
                self.settled = payload
            case FinalResult():
                self.result, self.settled, self.phase = payload, payload.changes, Phase.ENDED
                self._let_go()
            case TaskResumed():
                self._resume(payload)
            case _:
                self._take_step(payload)

    def _take_step(self, payload: Contract) -> None:
        """Update the state with a step of the loops, or with a question or an answer of the user."""
        match payload:
            case Plan():
                self.phase = Phase.DISPATCHING
            case PlanRefused():
                self._begin(Round(payload.round, evidence=payload))
                self.trouble, self.phase = payload, Phase.DECIDING
            case DispatchManifest():
                subtasks = {one.subtask_id: _subtask(number, one) for number, one in enumerate(payload.subtasks, 1)}
                self._begin(Round(payload.round, subtasks, carried=payload.carried))
                self.trouble, self.phase = None, Phase.WORKING if subtasks else Phase.MERGING
            case OutcomeSummary() | ReplanRequest():
                self._current().evidence, self.phase = payload, Phase.DECIDING
            case Decided():
                self._current().decided, self.phase = payload, Phase.DECIDING
            case PlanDirective():
                self._current().directive, self.phase = payload, Phase.REPLANNING
            case SampleMeasured():
                present = self._current()
                present.samples = _latest([*present.samples, payload], MOST_SAMPLES)
                self.trouble = self.trouble if payload.directive is None else payload
            case ConfirmationRequest():
                self.questions[payload.digest] = payload
            case ConfirmationAnswer():
                self._answer(payload)
            case QuestionAsked():
                self.questions[payload.subtask_id] = payload
            case QuestionAnswered():
                self.questions.pop(payload.subtask_id, None)
            case PlanProposed():
                self.questions["plan"] = payload
            case PlanAnswered():
                self.questions.pop("plan", None)
            case _:
                self._take_work(payload)

    def _take_work(self, payload: Contract) -> None:
        """Update the state with a step of one subtask."""
        match payload:
            case SubTask():
                known = self.subtask(payload.subtask_id)
                if known is None:
                    there = self._current().subtasks
                    known = there[payload.subtask_id] = Subtask(payload.subtask_id, len(there) + 1, payload.intent)
                known.stage = Stage.WORKING
                return
            case ToolStarted():
                self.begin_call(Call(payload.act, payload.subtask_id, payload.tool, payload.input))
                return
            case ToolCalled(call=call):
                ended = Call(payload.act, payload.subtask_id, call.tool, call.input, call.target, call.status)
                self.end_call(ended)
                return
            case ExecutionResult():
                self.begin_check(payload.subtask_id)
                return
            case ChecklistUpdated():
                self.checklist = payload.items
            case CriterionJudged() | CorrectionSignal() | SubTaskOutcome():
                pass
            case _:
                return
        subtask = self.subtask(payload.subtask_id)
        if subtask is not None:
            subtask.take(payload)
        if isinstance(payload, SubTaskOutcome) and self.phase is Phase.WORKING and self._current().settled:
            self.phase = Phase.MERGING

    def _begin(self, begun: Round) -> None:
        """Start a round. It replaces a round of the same number that was planned before the task was resumed."""
        if self.rounds and self.rounds[-1].number == begun.number:
            self.rounds.pop()
        self.rounds.append(begun)

    def _current(self) -> Round:
        """Return the present round. If the next round has no plan yet, append a round that has no plan."""
        if not self.rounds or self.rounds[-1].directive is not None:
            self.rounds.append(Round(self.round_number, planned=False))
        return self.rounds[-1]

    def _answer(self, answer: ConfirmationAnswer) -> None:
        asked = self.questions.pop(answer.digest, None)
        if isinstance(asked, ConfirmationRequest) and asked.review is None and not answer.consent.is_yes:
            new = [act for act in asked.acts if act not in self.not_allowed]
            self.not_allowed = _latest([*self.not_allowed, *new], MOST_NOT_ALLOWED)

    def _resume(self, resumed: TaskResumed) -> None:
        self.result, self.stopping, self.failure, self.trouble = None, False, None, None
        self.resumed += 1
        if self._decision in resumed.dropped:
            self.rounds[-1].decided = self.rounds[-1].evidence = None
            self.phase = Phase.WORKING if self.rounds[-1].subtasks else Phase.PLANNING
        elif self.phase is Phase.ENDED:
            self.phase = Phase.DECIDING
        self._let_go()

    def _let_go(self) -> None:
        """Clear the open questions and calls, because the process that made them has stopped working on the
        task."""
        self.questions.clear()
        self.running.clear()
        self.words, self.words_cut = "", 0
        for subtask in self.rounds[-1].subtasks.values() if self.rounds else ():
            subtask.running = None


def _subtask(number: int, entry: ManifestEntry) -> Subtask:
    return Subtask(entry.subtask_id, number, entry.intent, tuple(each.text for each in entry.success_criteria))


def _latest(items: list[_Item], most: int) -> list[_Item]:
    return items[-most:]
