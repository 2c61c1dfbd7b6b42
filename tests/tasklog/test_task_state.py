"""What a task is doing follows from its messages, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from log_doubles import call, final, message, request

from artoo.contracts.base import Contract
from artoo.contracts.confirmation import AskedAct, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.conversation import TextDelta
from artoo.contracts.criteria import Criterion
from artoo.contracts.execution import (
    CallEffects,
    CallStatus,
    CorrectionSignal,
    ExecutionResult,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
    ToolStarted,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.plan import DispatchManifest, ManifestEntry, PlanRefused, SubTask
from artoo.contracts.recording import TaskResumed
from artoo.contracts.request import Interrupt
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending, Review
from artoo.contracts.solution import Decided, Directive, Loss, OutcomeSummary, PlanDirective, ReplanRequest
from artoo.contracts.steering import QuestionAnswered, QuestionAsked, SampleMeasured, UserMessage
from artoo.tasklog import state as reducer
from artoo.tasklog.state import Phase, Stage, TaskState


def after(*payloads: Contract) -> TaskState:
    """The state after these messages, whose ids count from 0."""
    found = TaskState()
    for number, payload in enumerate(payloads):
        found.apply(message(payload, number))
    return found


def manifest(*subtasks: str, number: int = 1, carried: Sequence[str] = ()) -> DispatchManifest:
    entries = tuple(
        ManifestEntry(
            subtask_id=one, sequence=1, intent=f"do {one}", success_criteria=(Criterion(text=f"{one} holds"),)
        )
        for one in subtasks
    )
    return DispatchManifest(task_id="t", round=number, subtasks=entries, carried=tuple(carried))


def begins(subtask: str) -> SubTask:
    return SubTask(subtask_id=subtask, parent_task_id="t", sequence=1, intent=f"do {subtask}")


def ends(subtask: str, *, failed: str = "") -> SubTaskOutcome:
    status = "failed" if failed else "matched"
    return SubTaskOutcome(subtask_id=subtask, parent_task_id="t", status=status, failure_reason=failed or None)


def starts(act: str, subtask: str = "a") -> ToolStarted:
    return ToolStarted(
        subtask_id=subtask, attempt=1, act=act, tool="shell", input=f"run {act}", effects=CallEffects.STAGED
    )


def called(act: str, subtask: str = "a", status: CallStatus = CallStatus.OK) -> ToolCalled:
    record = ToolCall(tool="shell", identity=("shell",), input=f"run {act}", status=status)
    return ToolCalled(subtask_id=subtask, attempt=1, act=act, call=record)


def decided(directive: Directive) -> Decided:
    return Decided(
        round=1, directive=directive, loss=Loss(), grad_equal_cost=0, grad_paper=0, grad_l=0, criteria=1,
        logical_failures=0, environmental_failures=0,
    )  # fmt: skip


def directive(number: int) -> PlanDirective:
    return PlanDirective(
        task_id="t", round=number, loss=Loss(), prev_directive=Directive.INIT, directive=Directive.REFINE
    )


def test_a_subtask_goes_through_its_stages() -> None:
    """It waits, works, is checked, is corrected with a reason, and leaves the fast loop."""
    state = after(request(), manifest("a", "b"))
    known = state.subtask("a")
    assert known is not None
    seen = [known.stage]
    wrong = CorrectionSignal(
        subtask_id="a", attempt=1, what_was_wrong="no header", what_to_do="add it", failed_criterion="header",
        failure_class=FailureClass.LOGICAL,
    )  # fmt: skip
    result = ExecutionResult(subtask_id="a", attempt=1, status="completed")
    for payload in (begins("a"), result, wrong, result, ends("a", failed="no header")):
        state.apply(message(payload))
        seen.append(known.stage)
    assert seen == [
        *(Stage.WAITING, Stage.WORKING, Stage.CHECKING, Stage.WORKING, Stage.CHECKING, Stage.FAILED),
    ]
    assert (known.attempt, known.lessons, known.reason) == (2, ["no header"], "no header")


def test_calls_that_run_side_by_side_are_each_known_until_they_end() -> None:
    """When the later of two calls has ended the earlier one is shown again, and each has its status."""
    state = after(request(), manifest("a"), begins("a"), starts("1"), starts("2"))
    known = state.subtask("a")
    assert known is not None and known.running is not None and known.running.act == "2"
    state.apply(message(called("2", status=CallStatus.ERROR)))
    assert known.running is not None and known.running.act == "1"
    assert known.ended is not None and known.ended.status is CallStatus.ERROR
    state.apply(message(called("1")))
    assert (known.running, state.doing, state.tool_calls) == (None, None, 2)


def test_the_turn_is_that_of_the_role_at_work() -> None:
    """Each role in its turn, the user while a question waits, and no one after the result."""
    result = ExecutionResult(subtask_id="a", attempt=1, status="completed")
    asked = ConfirmationRequest(digest="d", title="may it?")
    state, seen = TaskState(), list[Role | None]()
    for payload in (
        *(request(), manifest("a"), begins("a"), asked),
        ConfirmationAnswer(digest="d", consent=Consent.ONCE, by="a person"),
        *(result, ends("a"), OutcomeSummary(task_id="t", merged_output="x", summary="x")),
        *(Ending(task_id="t", directive="accept"), final()),
    ):
        state.apply(message(payload))
        seen.append(state.turn)
    assert seen == [
        *(Role.PERCEIVER, Role.EXECUTOR, Role.EXECUTOR, Role.USER, Role.EXECUTOR, Role.AGENT_VALIDATOR),
        *(Role.META_VALIDATOR, Role.SOLVER, Role.GATE, None),
    ]


def test_a_round_is_settled_when_a_failure_keeps_later_groups_from_starting() -> None:
    """What has not begun will not begin, so nothing more is waited for."""
    state = after(request(), manifest("a", "b"), begins("a"), ends("a", failed="no"))
    assert state.phase is Phase.MERGING


def test_a_directive_begins_the_next_round() -> None:
    """The planner's calls after it belong to the round that it asks for."""
    state = after(request(), manifest("a"), begins("a"), ends("a", failed="no"), ReplanRequest(task_id="t"))
    assert state.round_number == 1
    for payload in (decided(Directive.REFINE), directive(2)):
        state.apply(message(payload))
    assert (state.round_number, len(state.rounds), state.phase) == (2, 1, Phase.REPLANNING)
    state.apply(message(manifest("b", number=2, carried=["a"])))
    assert [(one.number, one.carried) for one in state.rounds] == [(1, ()), (2, ("a",))]
    assert state.directive is not None


def test_trouble_is_over_with_the_next_plan() -> None:
    """A refused plan is shown until another one is accepted."""
    state = after(request(), PlanRefused(reasons=("no criteria",), round=1))
    assert isinstance(state.trouble, PlanRefused) and state.rounds[0].refused == ("no criteria",)
    state.apply(message(manifest("a", number=2)))
    assert state.trouble is None


def test_what_was_not_allowed_is_kept_and_a_review_is_no_such_thing() -> None:
    """A no to a call names what would have been done; a no to a review says only that the changes wait."""
    act = AskedAct(verb="network", target="example.com")
    no = ConfirmationAnswer(digest="d", consent=Consent.NO, by="a person")
    asked = ConfirmationRequest(digest="d", title="?", acts=(act,))
    assert after(request(), asked, no).not_allowed == [act]
    assert after(request(), asked.model_copy(update={"review": Review(task_id="t")}), no).not_allowed == []


def test_each_question_waits_for_its_own_answer() -> None:
    """An answer to one of two questions leaves the other."""
    state = after(
        request(),
        ConfirmationRequest(digest="d", title="may it?"),
        QuestionAsked(subtask_id="a", question="which?"),
        QuestionAnswered(subtask_id="a", answer="the first"),
    )
    assert isinstance(state.question, ConfirmationRequest)


def test_a_resumed_task_goes_on_where_it_was() -> None:
    """The decision to stop does not stand, nothing waits for an answer, and no call runs any more."""
    state = after(
        *(request(), manifest("a"), begins("a"), starts("1"), Interrupt()),
        *(ReplanRequest(task_id="t"), decided(Directive.ABANDON), final()),
    )
    assert state.result is not None
    state.apply(message(TaskResumed(after="id-000003", dropped=("id-000004", "id-000005", "id-000006"))))
    assert (state.result, state.stopping, state.phase, state.doing) == (None, False, Phase.WORKING, None)
    assert state.rounds[0].decided is None


def test_the_state_does_not_grow_with_the_task() -> None:
    """Messages, samples and words are kept up to their bounds, the latest of each."""
    state = after(request(), manifest("a"))
    for number in range(500):
        state.apply(message(UserMessage(text=str(number))))
        state.apply(message(SampleMeasured(subtask_id="a", turn=number + 1, loss=Loss())))
        state.apply(message(TextDelta(contract="Turn", text=f"{number:099d}\n")))
    assert state.messages[-1] == "499" and len(state.messages) == reducer.MOST_MESSAGES
    assert state.rounds[0].samples[-1].turn == 500 and len(state.rounds[0].samples) == reducer.MOST_SAMPLES
    assert state.words.endswith("499\n") and len(state.words) + state.words_cut == 50_000
    state.apply(message(call("{}")))
    assert (state.words, state.words_cut, state.model_calls) == ("", 0, 1)
