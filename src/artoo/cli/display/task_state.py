"""The texts of the display about a running task (descriptions of phases, current call, activity), safe to print."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from artoo.cli.display.line_wrap import fold_prose
from artoo.cli.display.sanitize import one_line, printable
from artoo.cli.display.side_channel import Fetch
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, CriterionVerdict, ExecutionResult
from artoo.contracts.plan import PlanRefused
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.solution import Cost, RoleFailure
from artoo.contracts.steering import QuestionAsked
from artoo.ports.printing import Printed
from artoo.tasklog.state import Phase, Round, Stage, Subtask, TaskState
from artoo.words.catalogue import ENGLISH, Catalogue, in_language
from artoo.words.language import language_of
from artoo.words.names import directive_name, role_name
from artoo.words.shown import uncoloured

PHASES = {
    Phase.BEGINNING: "reading the request",
    Phase.READING: "reading the request",
    Phase.PLANNING: "planning",
    Phase.DISPATCHING: "starting",
    Phase.MERGING: "putting the results together",
    Phase.DECIDING: "deciding",
    Phase.SETTLING: "reading what it changed",
    Phase.ENDED: "reading what it changed",
}
"""The description of each phase. While subtasks run, their own lines are shown in its place."""

_Progress = tuple[object, ...]


@dataclass(slots=True)
class TaskView:
    """The state of a task, with additional data for the display.

    `clock` returns seconds, by which times are measured. `answered`: true if a user can answer questions.
    `numbers`: true to show the figures of the control law for each round.
    """

    clock: Callable[[], float] = time.monotonic
    numbers: bool = False
    answered: bool = True
    text: Catalogue = ENGLISH
    fetch: Fetch = field(default_factory=Fetch)
    state: TaskState = field(default_factory=TaskState)
    started: float = 0.0
    since: float = 0.0
    answer_shown: str = ""
    """The answer, if it was printed while it was streamed, or above the review of the changes."""
    printed_by_tools: list[str] = field(default_factory=list[str])
    """The answers of subtasks that are the output of a tool, and therefore no Markdown."""
    _title: str = ""
    _stopped: bool = False
    _printed: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The last lines of output of the calls that are running, by the id of the call."""
    _since: dict[str, tuple[_Progress, float]] = field(default_factory=dict[str, tuple[_Progress, float]])
    """The progress of each subtask in the present round, and the time at which it last changed."""

    def __post_init__(self) -> None:
        self.started = self.since = self.clock()

    def begin(self, request: str) -> None:
        """Set the request that is shown before the first message arrives."""
        self._title = request
        self.text = in_language(language_of(request))
        self.since = self.clock()

    def show_answer(self, columns: int, *, colours: bool) -> str:
        """Return the answer so far for the review, and record that it is shown.

        The text is empty if the answer was shown before.
        """
        ends = [each.evidence for each in self.state.rounds if each.evidence is not None]
        last = ends[-1] if ends else None
        answer = "" if last is None or isinstance(last, PlanRefused) else last.merged_output
        shown = self.is_shown(answer)
        self.answer_shown = answer
        return "" if shown else self.laid_out(answer, columns, colours=colours)

    def is_shown(self, answer: str) -> bool:
        """Check whether this answer is on the screen already."""
        return uncoloured(answer).strip() == uncoloured(self.answer_shown).strip()

    def laid_out(self, answer: str, columns: int, *, colours: bool) -> str:
        """Return an answer in safe rows for a terminal. With `colours`, Markdown is rendered."""
        safe = printable(uncoloured(answer)).strip("\n")
        if not colours or any(printed in answer for printed in self.printed_by_tools):
            return fold_prose(safe, columns)
        # The library is loaded only when an answer is printed.
        from artoo.cli.display.markdown import rendered

        return rendered(safe, columns)

    def stop(self) -> None:
        """Record that the user has asked to stop."""
        self._stopped = True
        self.since = self.clock()

    def hear(self, envelope: Envelope) -> None:
        """Update the state by one message."""
        payload, phase, rounds = envelope.payload, self.phase, len(self.state.rounds)
        self.state.apply(envelope)
        if isinstance(payload, UserRequest):
            self.text = in_language(language_of(payload.text))
        elif isinstance(payload, TaskSpec):
            self.text = in_language(payload.language)
        elif isinstance(payload, ExecutionResult) and payload.verbatim and payload.output.strip():
            self.printed_by_tools.append(payload.output.strip())
        # The lines of a call that has ended are removed, because they would otherwise be kept for the whole task.
        for act in [act for act in self._printed if act not in self.state.running]:
            del self._printed[act]
        if self.phase != phase:
            self.since = self.clock()
        if len(self.state.rounds) != rounds:
            self._since.clear()
        for subtask in self.state.round.subtasks.values() if self.state.round is not None else ():
            progress = (subtask.stage, subtask.attempt, subtask.started, subtask.calls)
            if self._since.get(subtask.subtask_id, ((), 0.0))[0] != progress:
                self._since[subtask.subtask_id] = progress, self.clock()

    def hear_printed(self, printed: Printed) -> None:
        """Store the last lines of output of one of this task's commands."""
        if printed.task_id == self.state.task_id and printed.act in self.state.running:
            self._printed[printed.act] = tuple(printable(uncoloured(line).expandtabs()) for line in printed.lines)

    @property
    def rounds(self) -> list[Round]:
        """Return the rounds in which a plan was made, whether it was accepted or refused."""
        return [each for each in self.state.rounds if each.planned]

    @property
    def intent(self) -> str:
        """Return the request in one line."""
        return one_line(self.state.intent or self._title)

    @property
    def stopping(self) -> bool:
        """Return whether the task was asked to stop, or is stopped already."""
        return self._stopped or self.state.stopping

    @property
    def phase(self) -> str:
        """Describe the present phase. Return an empty text if the lines of the subtasks show it."""
        text = self.text
        if self.stopping:
            return text("stopping; collecting the results so far")
        directive = self.state.directive
        if self.state.phase is Phase.REPLANNING and directive is not None:
            return text("planning again ({directive})", directive=directive_name(directive.directive.value, text))
        if self.state.phase is Phase.BEGINNING and not self._title:
            return ""
        return text(PHASES[self.state.phase]) if self.state.phase in PHASES else ""

    @property
    def checking(self) -> bool:
        """Check whether every subtask at work has an answer that is checked now."""
        present = () if self.state.round is None else self.state.round.subtasks.values()
        stages = {one.stage for one in present if one.at_work}
        return stages == {Stage.CHECKING}

    @property
    def question(self) -> str:
        """Return the question that the user has not answered yet. If no user can answer, no question is shown."""
        asked = self.state.question
        if asked is None:
            return ""
        if isinstance(asked, ConfirmationRequest):
            if not self.answered:
                return ""
            title = asked.title if asked.review is None else self.text("Apply the changes of this task?")
        else:
            title = asked.question if isinstance(asked, QuestionAsked) else self.text("approve the plan")
        return self.text("waiting for your answer: {title}", title=one_line(title))

    @property
    def trouble(self) -> str:
        """Describe the latest problem of the present round."""
        trouble, text = self.state.trouble, self.text
        if isinstance(trouble, PlanRefused):
            return text("plan refused: {reason}", reason=one_line("; ".join(trouble.reasons)))
        if isinstance(trouble, RoleFailure):
            return text(
                "{role}: {reason}", role=role_name(trouble.role.value, text), reason=one_line(trouble.reason)
            )
        directive = None if trouble is None else trouble.directive
        return "" if directive is None else directive_name(directive.value, text)

    @property
    def verdicts(self) -> tuple[CriterionVerdict, ...]:
        """Return the verdicts of the last round with their evidence. The decision about the round is based on
        them."""
        judged = (each for each in reversed(self.state.rounds) if each.evidence is not None and not each.refused)
        last = next(judged, None)
        return () if last is None else last.verdicts

    @property
    def cost(self) -> Cost:
        """Return the cost so far, added up from the messages."""
        state = self.state
        return Cost(
            llm_calls=state.model_calls,
            prompt_tokens=state.prompt_tokens,
            cached_tokens=state.cached_tokens,
            completion_tokens=state.completion_tokens,
            tool_calls=state.tool_calls,
            elapsed_ms=round((self.clock() - self.started) * 1000),
        )

    def printed(self, subtask: Subtask) -> tuple[str, ...]:
        """Return the last lines that the running command of a subtask has printed."""
        return () if subtask.running is None else self._printed.get(subtask.running.act, ())

    def working_since(self, subtask: Subtask) -> float:
        """Return the time at which the subtask last made progress, in seconds of `clock`."""
        return self._since.get(subtask.subtask_id, ((), self.since))[1]


def command_of(subtask: Subtask) -> str:
    """Describe the call that is running. Return an empty text if there is none."""
    call = subtask.running
    return "" if call is None else one_line(f"{call.tool}: {call.input}")


def activity_of(subtask: Subtask) -> str:
    """Describe the latest call that has ended, with its status unless that is `ok`. Return an empty text if there
    is none."""
    call = subtask.ended
    if call is None:
        return ""
    mark = "" if call.status in (None, CallStatus.OK) else f"[{call.status}] "
    return mark + one_line(f"{call.tool}: {call.target or call.input}")
