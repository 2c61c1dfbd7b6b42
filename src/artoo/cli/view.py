"""What is going on in a task: the one model behind the live and the plain display. `fold` fills it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from artoo.cli.aside import Fetch
from artoo.cli.printable import one_line
from artoo.cli.text import ENGLISH, Text, in_language
from artoo.contracts.confirmation import AskedAct, ConfirmationRequest
from artoo.contracts.conversation import ChecklistItem
from artoo.contracts.execution import CriterionVerdict
from artoo.contracts.request import Turn
from artoo.contracts.solution import Cost, Decided, FinalResult
from artoo.words.language import language_of


class Stage(Enum):
    """Where a subtask is."""

    WAITING = auto()
    THINKING = auto()
    CHECKING = auto()
    MATCHED = auto()
    FAILED = auto()


@dataclass(slots=True)
class SubtaskView:
    """One subtask of a round. `passed`, `judged` and `open` count verdicts of the present attempt.

    `command` is the call that runs now, the latest of `calls`, under `act`, and `printed` the last lines that it
    has written; `activity` is the one before.
    """

    number: int
    intent: str
    stage: Stage = Stage.WAITING
    attempt: int = 1
    activity: str = ""
    command: str = ""
    act: str = ""
    printed: tuple[str, ...] = ()
    calls: int = 0
    passed: int = 0
    judged: int = 0
    open: int = 0
    reason: str = ""
    since: float = 0.0

    @property
    def running(self) -> bool:
        """True while an executor or its validator is at work."""
        return self.stage in (Stage.THINKING, Stage.CHECKING)


@dataclass(slots=True)
class RoundView:
    """One plan and what became of it."""

    number: int
    subtasks: dict[str, SubtaskView] = field(default_factory=dict[str, SubtaskView])
    carried: int = 0
    decided: Decided | None = None

    @property
    def matched(self) -> int:
        """How many subtasks of this round are done."""
        return sum(subtask.stage is Stage.MATCHED for subtask in self.subtasks.values())

    @property
    def settled(self) -> bool:
        """True when nothing runs and nothing more will start: after a failure, later groups do not."""
        stages = {subtask.stage for subtask in self.subtasks.values()}
        return stages <= {Stage.MATCHED, Stage.FAILED, Stage.WAITING} and (
            Stage.WAITING not in stages or Stage.FAILED in stages
        )


@dataclass(slots=True)
class TaskView:
    """A task as a person watches it. `clock` gives seconds, for how long something has been going on.

    `answered`: somebody is there to answer questions. `asked` are Law 1's questions by digest, `not_allowed` the
    acts that were not agreed to, reviews left out.
    `numbers`: rounds are told with the control law's figures. `words` are those of the model's present turn as they
    come, made safe for a terminal; `checklist` is what the executor shows of its own plan.
    `verdicts` are those that the last decision rests on: of the subtasks, then of the task.
    """

    clock: Callable[[], float] = time.monotonic
    numbers: bool = False
    answered: bool = True
    task_id: str = ""
    intent: str = ""
    text: Text = ENGLISH
    phase: str = ""
    question: str = ""
    asked: dict[str, ConfirmationRequest] = field(default_factory=dict[str, "ConfirmationRequest"])
    not_allowed: list[AskedAct] = field(default_factory=list[AskedAct])
    earlier: tuple[Turn, ...] = ()
    rounds: list[RoundView] = field(default_factory=list[RoundView])
    verdicts: tuple[CriterionVerdict, ...] = ()
    corrections: int = 0
    calls: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    stopping: bool = False
    trouble: str = ""
    words: str = ""
    checklist: tuple[ChecklistItem, ...] = ()
    result: FinalResult | None = None
    fetch: Fetch = field(default_factory=Fetch)
    started: float = 0.0
    since: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.since = self.clock()

    @property
    def round(self) -> RoundView | None:
        """The present round."""
        return self.rounds[-1] if self.rounds else None

    @property
    def cost(self) -> Cost:
        """What has been used so far, as the stream tells it."""
        return Cost(
            llm_calls=self.calls,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            tool_calls=self.tool_calls,
            elapsed_ms=round((self.clock() - self.started) * 1000),
        )

    def begin(self, request: str) -> None:
        """What was asked, before the first message arrives."""
        self.intent = one_line(request)
        self.text = in_language(language_of(request))
        self.enter(self.text.reading)

    def stop(self) -> None:
        """The person asked to stop."""
        self.stopping = True
        self.enter(self.text.stopping)

    def subtask(self, subtask_id: str) -> SubtaskView | None:
        """A subtask of the present round."""
        return self.round.subtasks.get(subtask_id) if self.round is not None else None

    def enter(self, phase: str) -> None:
        """A new phase begins; while stopping, nothing else is worth saying."""
        if not self.stopping or phase == self.text.stopping:
            self.phase, self.since = phase, self.clock()

    def advance(self, subtask_id: str, stage: Stage) -> SubtaskView | None:
        """A subtask of the present round reached a stage. None when the round does not have it."""
        view = self.subtask(subtask_id)
        if view is not None:
            view.stage, view.since = stage, self.clock()
        return view
