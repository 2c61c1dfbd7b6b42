"""Folds the messages of a task into its view. Kinds that a person need not see change nothing."""

from __future__ import annotations

from functools import singledispatch

from artoo.cli.printable import one_line, printable
from artoo.cli.review.words import review_words
from artoo.cli.text import directive_name, in_language, role_name
from artoo.cli.view import RoundView, Stage, SubtaskView, TaskView
from artoo.contracts.base import Contract
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.conversation import ChecklistUpdated, TextDelta
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
from artoo.contracts.plan import DispatchManifest, Plan, PlanRefused, SubTask
from artoo.contracts.request import Interrupt, TaskSpec, UserRequest
from artoo.contracts.settling import Ending
from artoo.contracts.solution import (
    Decided,
    FinalResult,
    Halt,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    RoleFailure,
)
from artoo.contracts.steering import PlanAnswered, PlanProposed, QuestionAnswered, QuestionAsked, SampleMeasured
from artoo.ports.printing import Printed


def fold(envelope: Envelope, view: TaskView) -> None:
    """Takes one message into the view."""
    view.task_id = view.task_id or envelope.task_id
    take(envelope.payload, view)


def fold_printed(printed: Printed, view: TaskView) -> None:
    """Takes what a command printed so far, while it is the one that runs."""
    present = view.round.subtasks.values() if printed.task_id == view.task_id and view.round is not None else ()
    for task in present:
        if task.act == printed.act:
            task.printed = tuple(printable(line.expandtabs()) for line in printed.lines)


@singledispatch
def take(payload: Contract, view: TaskView) -> None:
    """One payload, by its type; a type that is not registered below is not shown."""


@take.register
def request(payload: UserRequest, view: TaskView) -> None:
    """What was asked, and what still waits of the same conversation."""
    view.begin(payload.text)
    view.earlier = tuple(turn for turn in payload.history if turn.waits)


@take.register
def spec(payload: TaskSpec, view: TaskView) -> None:
    """How it was understood, and the language from here on."""
    view.intent = one_line(payload.intent) or view.intent
    view.text = in_language(payload.language)
    view.enter(view.text.planning)


@take.register
def plan(payload: Plan, view: TaskView) -> None:
    """A plan was accepted."""
    view.enter(view.text.dispatching)


@take.register
def refused_plan(payload: PlanRefused, view: TaskView) -> None:
    """A plan was refused twice."""
    view.trouble = view.text.refused_plan.format(reason=one_line("; ".join(payload.reasons)))
    view.rounds.append(RoundView(payload.round))
    view.enter(view.text.deciding)


@take.register
def manifest(payload: DispatchManifest, view: TaskView) -> None:
    """A round begins."""
    views = {
        entry.subtask_id: SubtaskView(number, one_line(entry.intent), since=view.clock())
        for number, entry in enumerate(payload.subtasks, start=1)
    }
    view.rounds.append(RoundView(payload.round, views, carried=len(payload.carried)))
    view.trouble = ""
    view.enter("")


@take.register
def subtask(payload: SubTask, view: TaskView) -> None:
    """A subtask starts."""
    view.advance(payload.subtask_id, Stage.THINKING)


@take.register
def started(payload: ToolStarted, view: TaskView) -> None:
    """A tool call goes out."""
    task = view.subtask(payload.subtask_id)
    if task is not None:
        task.command, task.act = one_line(f"{payload.tool}: {payload.input}"), payload.act
        task.calls += 1
        task.printed = ()
        task.since = view.clock()


@take.register
def tool(payload: ToolCalled, view: TaskView) -> None:
    """A tool call ended."""
    call = payload.call
    view.tool_calls += 1
    task = view.subtask(payload.subtask_id)
    if task is not None:
        mark = "" if call.status is CallStatus.OK else f"[{call.status}] "
        task.activity = mark + one_line(f"{call.tool}: {call.target or call.input}")
        task.command, task.act, task.printed = "", "", ()
        task.since = view.clock()


@take.register
def execution(payload: ExecutionResult, view: TaskView) -> None:
    """An attempt is finished and will be judged."""
    task = view.advance(payload.subtask_id, Stage.CHECKING)
    if task is not None:
        task.passed = task.judged = task.open = 0


@take.register
def verdict(payload: CriterionJudged, view: TaskView) -> None:
    """One criterion was judged."""
    task = view.subtask(payload.subtask_id) if payload.subtask_id is not None else None
    if task is not None:
        task.judged += 1
        task.passed += payload.verdict.verdict == "pass"
        task.open += payload.verdict.verdict == "open"


@take.register
def correction(payload: CorrectionSignal, view: TaskView) -> None:
    """The fast loop tries again."""
    view.corrections += 1
    task = view.advance(payload.subtask_id, Stage.THINKING)
    if task is not None:
        task.attempt = payload.attempt + 1
        task.reason = one_line(payload.what_was_wrong)


@take.register
def outcome(payload: SubTaskOutcome, view: TaskView) -> None:
    """A subtask left the fast loop."""
    matched = payload.status == "matched"
    task = view.advance(payload.subtask_id, Stage.MATCHED if matched else Stage.FAILED)
    if task is not None:
        task.reason = "" if matched else one_line(payload.failure_reason or "")
    if view.round is not None and view.round.settled:
        view.enter(view.text.merging)


@take.register
def merged(payload: OutcomeSummary, view: TaskView) -> None:
    """Everything matched."""
    view.verdicts = _verdicts(payload)
    view.enter(view.text.deciding)


@take.register
def unmet(payload: ReplanRequest, view: TaskView) -> None:
    """Something is missing."""
    view.verdicts = _verdicts(payload)
    view.enter(view.text.deciding)


def _verdicts(payload: OutcomeSummary | ReplanRequest) -> tuple[CriterionVerdict, ...]:
    """Those of the subtasks, then of the task; what a single subtask decided for the task stands once."""
    of_subtasks = (verdict for one in payload.outcomes for verdict in one.criteria_verdicts)
    found = (*of_subtasks, *payload.task_verdicts)
    return tuple({(one.criterion, one.verdict, one.decided_by): one for one in found}.values())


@take.register
def decided(payload: Decided, view: TaskView) -> None:
    """The control law spoke."""
    if view.round is not None:
        view.round.decided = payload


@take.register
def directive(payload: PlanDirective, view: TaskView) -> None:
    """Another round is coming."""
    name = directive_name(payload.directive.value, view.text)
    view.enter(view.text.replanning.format(directive=name))


@take.register
def model(payload: ModelCalled, view: TaskView) -> None:
    """A model call ended."""
    view.words = ""
    view.calls += 1
    view.prompt_tokens += payload.usage.prompt_tokens
    view.cached_tokens += payload.usage.cached_tokens
    view.completion_tokens += payload.usage.completion_tokens


@take.register
def words(payload: TextDelta, view: TaskView) -> None:
    """A model says something more."""
    view.words += printable(payload.text.expandtabs())


@take.register
def checklist(payload: ChecklistUpdated, view: TaskView) -> None:
    """The executor changed its checklist."""
    items = (item.model_copy(update={"text": one_line(item.text)}) for item in payload.items)
    view.checklist = tuple(items)


@take.register
def asked(payload: QuestionAsked, view: TaskView) -> None:
    """An executor asks the user something."""
    view.question = view.text.asking.format(title=one_line(payload.question))


@take.register
def told(payload: QuestionAnswered, view: TaskView) -> None:
    """It was answered, or no one answered."""
    view.question = ""


@take.register
def proposed(payload: PlanProposed, view: TaskView) -> None:
    """A plan waits for approval."""
    view.question = view.text.asking.format(title=view.text.plan_head)


@take.register
def decided_plan(payload: PlanAnswered, view: TaskView) -> None:
    """The user said something to the plan."""
    view.question = ""


@take.register
def sampled(payload: SampleMeasured, view: TaskView) -> None:
    """A long attempt was measured, and R7 may have sent it elsewhere."""
    if payload.directive is not None:
        view.trouble = directive_name(payload.directive.value, view.text)


@take.register
def question(payload: ConfirmationRequest, view: TaskView) -> None:
    """Law 1 asks; where nobody can answer, nobody is waited for."""
    head = payload.title if payload.review is None else review_words(payload.language).head
    if view.answered:
        view.question = view.text.asking.format(title=one_line(head))
    view.asked[payload.digest] = payload


@take.register
def answer(payload: ConfirmationAnswer, view: TaskView) -> None:
    """Law 1 was answered."""
    view.question = ""
    asked = view.asked.pop(payload.digest, None)
    if asked is not None and asked.review is None and not payload.consent.is_yes:
        view.not_allowed += [act for act in asked.acts if act not in view.not_allowed]


@take.register
def interrupt(payload: Interrupt, view: TaskView) -> None:
    """The person wants to stop."""
    view.stop()


@take.register
def halt(payload: Halt, view: TaskView) -> None:
    """The solver stops running work."""
    view.stop()


@take.register
def failure(payload: RoleFailure, view: TaskView) -> None:
    """A role could not do its part."""
    role = role_name(payload.role.value, view.text)
    view.trouble = view.text.trouble.format(role=role, reason=one_line(payload.reason))


@take.register
def result(payload: FinalResult, view: TaskView) -> None:
    """The end."""
    view.result = payload


@take.register
def ending(payload: Ending, view: TaskView) -> None:
    """What the task changed is being settled."""
    view.enter(view.text.settling)
