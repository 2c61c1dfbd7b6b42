"""A healthy stream with one forged message: an invariant is broken while the task runs, or the proof fails.

The two tables say which of the two sees what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tapes import SCRIPTS, Tape

from artoo.auditor.invariants import INVARIANTS
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.criteria import Assurance, CheckAmended, Criterion, OutputMatches
from artoo.contracts.events import MessagesDropped, ModelCalled, NetworkUsed, RouteViolation, Usage
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    CriterionJudged,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    GapPoint,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.memory import MegramState, MemoryWritten
from artoo.contracts.plan import DispatchManifest, MustNot, Plan, SubTask
from artoo.contracts.recording import TaskOpened
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import ChangeClass, ClassCount, Ending, Settled
from artoo.contracts.solution import (
    Cost,
    Decided,
    Directive,
    FinalResult,
    Loss,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    RoleFailure,
    StoppedBy,
    UnmetCriterion,
)
from artoo.runtime.replay.replay import prove

Forge = Callable[[Tape], Tape]
OTHER = ToolCall(tool="shell", identity=("shell:ls",), target="ls", input="ls", output="nothing")
FAIL = CriterionVerdict(criterion="it", verdict="fail", failure_class=FailureClass.LOGICAL)


def verdict(**changes: object) -> Forge:
    """Another first verdict of R4a."""
    return lambda tape: tape.edit(
        CriterionJudged, verdict=tape.get(CriterionJudged).verdict.model_copy(update=changes)
    )


def settled(**changes: object) -> Forge:
    """Another word of the gate at the end."""
    return lambda tape: tape.edit(Settled, **changes)


def outcome(**changes: object) -> Forge:
    """Another first outcome."""
    return lambda tape: tape.edit(SubTaskOutcome, **changes)


def result(**changes: object) -> Forge:
    """Another first result of the executor."""
    return lambda tape: tape.edit(ExecutionResult, **changes)


def call(**changes: object) -> Forge:
    """Another first record of a call."""
    return lambda tape: tape.edit(ToolCalled, call=tape.get(ToolCalled).call.model_copy(update=changes))


def blamed_for_a_word(tape: Tape) -> Tape:
    """A call that ended well and speaks of an error is no excuse of the world's."""
    spoken = _changed(tape, output="an error of mine")
    tape = tape.edit(ExecutionResult, tool_calls=(spoken,))
    return verdict(failure_class=FailureClass.ENVIRONMENTAL)(tape)


def decided(**changes: object) -> Forge:
    """Another first decision."""
    return lambda tape: tape.edit(Decided, **changes)


def loss(**changes: float) -> Forge:
    """Another loss in the first decision."""
    return lambda tape: tape.edit(Decided, loss=tape.get(Decided).loss.model_copy(update=changes))


def final(**changes: object) -> Forge:
    """Another end."""
    return lambda tape: tape.edit(FinalResult, **changes)


def directive(**changes: object) -> Forge:
    """Another first directive."""
    return lambda tape: tape.edit(PlanDirective, **changes)


def opened(**changes: object) -> Forge:
    """A task that was opened in another way."""
    return lambda tape: tape.edit(TaskOpened, **changes)


def law(**changes: object) -> Forge:
    """A task that was opened with other hyperparameters."""
    return lambda tape: tape.edit(TaskOpened, hyperparameters={**tape.get(TaskOpened).hyperparameters, **changes})


def must_not(must: MustNot) -> Forge:
    """A plan and a subtask that must not do something."""
    return lambda tape: tape.edit(SubTask, must_not=must)


def replaced_check(tape: Tape) -> Tape:
    """The check that lets a criterion pass has taken the place of one that failed."""
    (criterion,) = tape.get(SubTask).success_criteria
    assert criterion.check is not None
    amended = CheckAmended(criterion=criterion.text, before=criterion.check, after=criterion.check, reason="so")
    return tape.edit(SubTask, success_criteria=(criterion.model_copy(update={"amended": amended}),))


def repeated(tape: Tape) -> Tape:
    """The first call, five times."""
    for _ in range(4):
        tape = tape.twice(ToolCalled)
    return tape


def borrowed(tape: Tape) -> Tape:
    """The second subtask cites the first one's call."""
    return tape.edit(ExecutionResult, 1, tool_calls=(tape.get(ToolCalled).call,))


def cut_short(tape: Tape) -> Tape:
    """The last call was cut short, the result does not name it, and a judge lets it pass."""
    made = tape.get(ExecutionResult).tool_calls
    cut = made[-1].model_copy(update={"status": CallStatus.TIMEOUT})
    verdicts = tape.get(SubTaskOutcome).criteria_verdicts
    judged = tuple(each.model_copy(update={"decided_by": DecidedBy.JUDGEMENT}) for each in verdicts)
    return tape.edit(ExecutionResult, tool_calls=(*made[:-1], cut)).edit(SubTaskOutcome, criteria_verdicts=judged)


def unsummarised(tape: Tape) -> Tape:
    """The end answers an outcome, not R4b's summary."""
    return tape.drop(OutcomeSummary).head(FinalResult, cause_id=tape.envelope(SubTaskOutcome).id)


def violation(tape: Tape) -> Tape:
    refused = RouteViolation(offender=Role.EXECUTOR, refused_kind="Plan", reason="no")
    return tape.after(Plan, 0, Role.BUS, refused, None)


def drops(tape: Tape) -> Tape:
    return tape.after(Plan, 0, Role.BUS, MessagesDropped(subscriber="display", count=3), None)


def wrongly_failed(tape: Tape) -> Tape:
    failure = RoleFailure(role=Role.PLANNER, stopped_by=StoppedBy.INTERNAL, reason="no")
    return tape.after(Plan, 0, Role.EXECUTOR, failure, None)


def early(tape: Tape) -> Tape:
    """The second group starts with the first."""
    second = tape.envelope(SubTask, 1)
    first = tape.envelope(DispatchManifest)
    return tape.drop(SubTask, 1).after(SubTask, 0, Role.DISPATCHER, second.payload, first, second.subtask_id)


def doubled_answer(tape: Tape) -> Tape:
    return tape.twice(ConfirmationAnswer)


def asked_anew(tape: Tape) -> Tape:
    return tape.after(ConfirmationAnswer, 0, Role.GATE, tape.get(ConfirmationRequest), None)


def gone_out(tape: Tape) -> Tape:
    sent = NetworkUsed(host="evil.example.org", port=443, bytes_out=9)
    return tape.after(ToolCalled, 0, Role.GATE, sent, None)


def in_spite_of_the_no(tape: Tape) -> Tape:
    target = tape.get(ConfirmationRequest).acts[0].target
    return call(status=CallStatus.OK, dropped=(), withheld_by=None, changes=(target,))(tape)


def spent_twice(tape: Tape) -> Tape:
    usage = Usage(prompt_tokens=10, completion_tokens=1)
    return opened(max_tokens=5)(tape).edit(ModelCalled, 0, usage=usage).twice(ModelCalled).twice(ModelCalled)


def dropped_criterion(tape: Tape) -> Tape:
    return tape.edit(Plan, 1, task_criteria=tape.get(Plan, 1).task_criteria[1:])


def vanished_criterion(tape: Tape) -> Tape:
    """A plan that does not hold what a part of the round before left unmet."""
    return tape.edit(Plan, 1, task_criteria=tape.get(Plan, 1).task_criteria[:-1])


def steady(tape: Tape) -> Tape:
    """Two rounds that keep the method, with the distance of the tape: it does not fall."""
    tape = tape.edit(Decided, 0, directive=Directive.CHANGE_PATH).edit(Decided, 1, directive=Directive.REFINE)
    return tape.edit(PlanDirective, 0, directive=Directive.CHANGE_PATH)


def softened_criterion(tape: Tape) -> Tape:
    softer = tuple(Criterion(text=each.text) for each in tape.get(Plan, 1).task_criteria)
    return tape.edit(Plan, 1, task_criteria=softer)


def foreign_criterion(tape: Tape) -> Tape:
    first = tape.get(Plan).subtasks[0]
    harder = (*first.success_criteria, Criterion(text="more", check=OutputMatches(regex="more")))
    return tape.edit(Plan, subtasks=(first.model_copy(update={"success_criteria": harder}),))


def same_draft(tape: Tape) -> Tape:
    places = [n for n, each in enumerate(tape.messages) if getattr(each.payload, "contract", "") == "Plan"]
    first = tape.messages[places[0]].payload
    second = tape.messages[places[1]]
    assert isinstance(first, ModelCalled) and isinstance(second.payload, ModelCalled)
    forged = second._replace(payload=second.payload.model_copy(update={"answer": first.answer}))
    return Tape((*tape.messages[: places[1]], forged, *tape.messages[places[1] + 1 :]))


def merge_after_failure(tape: Tape) -> Tape:
    asked = tape.get(ModelCalled).model_copy(update={"contract": "MergeReport", "role": Role.META_VALIDATOR})
    return tape.after(SubTaskOutcome, 1, Role.META_VALIDATOR, asked, None)


def model_passes(tape: Tape) -> Tape:
    """A verdict by a model that was not asked: the judge's call is gone."""
    return tape.edit(ModelCalled, 2, contract="ExecutorStep", role=Role.EXECUTOR)


def merge_passes(tape: Tape) -> Tape:
    return tape.edit(ModelCalled, -1, answer="{}")


def taught_by_nothing(tape: Tape) -> Tape:
    """A task that was interrupted is remembered as abandoned."""
    forged = tape.edit(MemoryWritten, -1, state=MegramState.ABANDON)
    return forged.edit(FinalResult, stopped_by=StoppedBy.INTERRUPTED, directive=Directive.ABANDON)


def told_less(tape: Tape) -> Tape:
    return tape.edit(FinalResult, unmet=())


SEEN_LIVE: list[tuple[str, str, Forge]] = [
    ("wrong_sender", "plain", lambda tape: tape.head(Plan, sender=Role.EXECUTOR)),
    ("duplicate_id", "plain", lambda tape: tape.head(Plan, id=tape.envelope(TaskSpec).id)),
    ("unknown_cause", "plain", lambda tape: tape.head(Plan, cause_id="nobody")),
    ("cause_from_the_future", "plain", lambda tape: tape.head(Plan, cause_id=tape.envelope(FinalResult).id)),
    ("wrong_cause", "plain", lambda tape: tape.head(Plan, cause_id=tape.envelope(UserRequest).id)),
    ("clock_backwards", "plain", lambda tape: tape.later(Plan, 0, -1.0)),
    ("no_beginning", "plain", lambda tape: Tape(tape.messages[4:])),
    ("route_refused", "plain", violation),
    ("messages_dropped", "plain", drops),
    ("criterion_dropped", "replanned", dropped_criterion),
    ("criterion_vanished", "replanned", vanished_criterion),
    ("criterion_softened", "replanned", softened_criterion),
    ("steady_distance", "replanned", steady),
    ("same_plan_again", "replanned", same_draft),
    ("call_after_result", "plain", lambda tape: tape.swap(ToolCalled, ExecutionResult)),
    ("stuck_loop", "plain", repeated),
    ("suspicious_improvement", "replanned", decided(suspicious=True)),
    ("accepted_unmet", "plain", final(unmet=(UnmetCriterion(criterion="it"),))),
    ("accepted_unmet", "plain", final(loss=Loss(D=0.5))),
    ("cost_understated", "plain", final(cost=Cost())),
    ("answer_unasked", "refused", lambda tape: tape.edit(ConfirmationAnswer, digest="0")),
    ("answered_twice", "refused", doubled_answer),
    ("consent_by_nobody", "refused", lambda tape: tape.edit(ConfirmationAnswer, consent=Consent.ONCE, by="nobody")),
    ("asked_again", "refused", asked_anew),
    ("act_without_consent", "refused", in_spite_of_the_no),
    ("withheld_unasked", "plain", call(withheld_by="person")),
    ("reached_without_consent", "plain", gone_out),
    ("calls_overshot", "corrected", opened(max_calls=1)),
    ("tokens_overshot", "plain", spent_twice),
    ("prompt_changed", "plain", lambda tape: tape.edit(ModelCalled, system="You obey me.")),
    (
        "applied_without_consent",
        "plain",
        settled(state="applied", counts=(ClassCount(change_class=ChangeClass.DELETION, count=1),)),
    ),
    ("part_without_a_person", "plain", settled(state="partly")),
    ("discarded_unasked", "plain", settled(state="discarded")),
    ("ended_unsettled", "plain", final(changes=Settled(state="applied"))),
]
"""Invariant that is broken, tape, forgery."""

SEEN_BY_PROOF: list[tuple[str, str, Forge]] = [
    ("second_request", "plain", lambda tape: tape.twice(UserRequest)),
    ("misaddressed_subtask", "plain", lambda tape: tape.head(SubTask, subtask_id="other")),
    ("misaddressed_result", "plain", lambda tape: tape.head(ExecutionResult, subtask_id="other")),
    ("misaddressed_call", "plain", lambda tape: tape.head(ToolCalled, subtask_id="other")),
    ("misaddressed_verdict", "plain", lambda tape: tape.head(CriterionJudged, subtask_id="other")),
    ("misaddressed_correction", "corrected", lambda tape: tape.head(CorrectionSignal, subtask_id="other")),
    ("misaddressed_outcome", "plain", lambda tape: tape.head(SubTaskOutcome, subtask_id="other")),
    ("misaddressed_task", "plain", lambda tape: tape.edit(OutcomeSummary, task_id="other")),
    ("borrowed_role", "plain", lambda tape: tape.edit(ModelCalled, role=Role.SOLVER)),
    ("borrowed_failure", "plain", wrongly_failed),
    ("request_altered", "plain", lambda tape: tape.edit(TaskSpec, raw_input="something else")),
    ("plan_without_criteria", "plain", lambda tape: tape.edit(Plan, subtasks=())),
    ("unknown_carried", "replanned", lambda tape: tape.edit(Plan, 1, carried=("nobody",))),
    ("plan_uses_blocked", "plain", lambda tape: tape.edit(Plan, must_not=MustNot(tools=("shell",)))),
    ("directive_ignored", "replanned", lambda tape: tape.edit(Plan, 1, must_not=MustNot())),
    ("wrong_round", "replanned", lambda tape: tape.edit(Plan, 1, round=3)),
    ("too_many_rounds", "replanned", law(max_replans=1)),
    ("manifest_differs", "plain", foreign_criterion),
    ("subtask_differs", "plain", lambda tape: tape.edit(SubTask, intent="something else")),
    ("dispatched_twice", "plain", lambda tape: tape.twice(SubTask)),
    ("started_too_early", "judged", early),
    ("borrowed_call", "judged", borrowed),
    ("altered_call", "plain", lambda tape: result(tool_calls=(_changed(tape, output="3"),))(tape)),
    ("fabricated_call", "plain", result(tool_calls=(OTHER,))),
    ("missing_call", "plain", result(tool_calls=())),
    ("reordered_calls", "plain", lambda tape: result(tool_calls=(tape.get(ToolCalled).call,) * 2)(tape)),
    ("wrong_attempt", "plain", result(attempt=2)),
    ("earlier_calls_differ", "plain", lambda tape: result(tool_calls=(OTHER, *_made(tape)), attempt_from=1)(tape)),
    ("not_word_for_word", "plain", result(verbatim=True, output="4711")),
    ("unassigned_result", "plain", lambda tape: tape.drop(SubTask)),
    ("output_from_nowhere", "plain", result(output="There are 4711 lines")),
    ("call_without_step", "plain", lambda tape: tape.twice(ToolCalled)),
    ("blocked_tool_used", "plain", must_not(MustNot(tools=("shell",)))),
    ("blocked_target_used", "plain", lambda tape: must_not(_target(tape))(tape)),
    ("dropped_but_ok", "plain", call(dropped=("/x",))),
    ("status_contradicts_exit", "plain", call(exit_code=127)),
    ("wrong_contract", "plain", lambda tape: tape.edit(ModelCalled, 1, contract="ValidationReport")),
    ("verdict_without_result", "plain", lambda tape: tape.drop(ExecutionResult)),
    ("passed_by_nobody", "plain", verdict(decided_by=DecidedBy.FACT)),
    ("passed_by_nobody", "plain", replaced_check),
    ("open_and_decided", "plain", verdict(verdict="open")),
    ("agreement_without_trial", "plain", verdict(decided_by=DecidedBy.AGREEMENT)),
    ("judgement_without_call", "judged", model_passes),
    ("quote_not_in_evidence", "judged", verdict(evidence="the moon is green")),
    ("check_disagrees", "corrected", verdict(verdict="pass", failure_class=None)),
    ("attempts_miscounted", "corrected", verdict(failed_attempts=0)),
    ("wrong_failure_class", "corrected", verdict(failure_class=FailureClass.ENVIRONMENTAL)),
    ("wrong_failure_class", "corrected", blamed_for_a_word),
    ("failure_of_nobody", "corrected", verdict(blameless=True)),
    ("correction_without_failure", "corrected", lambda tape: tape.edit(CorrectionSignal, failed_criterion="x")),
    ("too_many_corrections", "corrected", law(max_retries=0)),
    ("retried_infrastructure", "corrected", result(infrastructure="timeout")),
    ("retried_refusal", "corrected", lambda tape: result(tool_calls=(_changed(tape, withheld_by="person"),))(tape)),
    (
        "correction_class_differs",
        "corrected",
        lambda tape: tape.edit(CorrectionSignal, failure_class=FailureClass.ENVIRONMENTAL),
    ),
    ("outcome_without_verdicts", "plain", lambda tape: tape.drop(CriterionJudged)),
    ("matched_with_failure", "plain", outcome(status="failed")),
    ("verdicts_differ", "plain", outcome(criteria_verdicts=(FAIL,))),
    ("matched_on_unnamed_failure", "plain", cut_short),
    ("matched_on_failed_result", "plain", result(status="failed")),
    ("output_of_no_attempt", "plain", outcome(output="something else")),
    ("outcome_calls_differ", "plain", outcome(tool_calls=())),
    ("trajectory_differs", "plain", outcome(gap_trajectory=(GapPoint(attempt=1, score=0.5),))),
    ("correction_skipped", "replanned", law(max_retries=2)),
    ("assurance_differs", "judged", outcome(assurance=Assurance.CHECKED)),
    ("second_outcome", "plain", lambda tape: tape.twice(SubTaskOutcome)),
    ("merge_asked_after_failure", "replanned", merge_after_failure),
    ("task_criterion_passed_by_nobody", "judged", merge_passes),
    (
        "task_check_disagrees",
        "replanned",
        lambda tape: tape.edit(
            CriterionJudged, 2, verdict=tape.get(CriterionJudged, 2).verdict.model_copy(update={"verdict": "fail"})
        ),
    ),
    ("summary_incomplete", "judged", lambda tape: tape.edit(OutcomeSummary, outcomes=())),
    ("summary_over_failure", "plain", lambda tape: tape.edit(OutcomeSummary, task_verdicts=(FAIL,))),
    ("task_criterion_unjudged", "judged", lambda tape: tape.edit(OutcomeSummary, task_verdicts=())),
    ("summary_verdicts_differ", "plain", lambda tape: tape.edit(OutcomeSummary, task_verdicts=(FAIL,))),
    ("request_verdicts_differ", "replanned", lambda tape: tape.edit(ReplanRequest, task_verdicts=(FAIL,))),
    ("summary_outcomes_differ", "plain", outcome(intent="something else")),
    ("request_outcomes_differ", "replanned", outcome(intent="something else")),
    ("summary_ungrounded", "plain", lambda tape: tape.edit(OutcomeSummary, summary="All is well")),
    ("merge_ungrounded", "replanned", lambda tape: tape.edit(ReplanRequest, merged_output="All is well")),
    ("replan_without_failure", "replanned", lambda tape: tape.edit(ReplanRequest, outcomes=(), task_verdicts=())),
    ("round_cut_short", "replanned", lambda tape: tape.edit(ReplanRequest, not_run=7)),
    ("corrections_miscounted", "replanned", lambda tape: tape.edit(ReplanRequest, corrections=7)),
    ("wrong_recommendation", "replanned", lambda tape: tape.edit(ReplanRequest, recommendation="abandon")),
    ("stop_without_cause", "replanned", lambda tape: tape.edit(ReplanRequest, stopped_by=StoppedBy.MISSING_INPUT)),
    ("distance_differs", "replanned", loss(D=0.1)),
    ("implausibility_differs", "replanned", loss(P=0.1)),
    ("cost_differs", "replanned", loss(Omega=0.7)),
    ("loss_differs", "replanned", loss(L=0.0)),
    ("gradient_differs", "replanned", decided(grad_l=0.5)),
    ("decision_against_the_law", "replanned", decided(directive=Directive.REFINE)),
    ("suspicion_differs", "replanned", decided(suspicious=True)),
    ("decided_twice", "plain", lambda tape: tape.twice(Decided)),
    ("decided_out_of_turn", "replanned", decided(round=2)),
    ("directive_undecided", "replanned", lambda tape: tape.drop(Decided)),
    ("directive_after_the_end", "replanned", decided(directive=Directive.ABANDON)),
    ("directive_figures_differ", "replanned", directive(budget_pressure=0.9)),
    ("blocked_without_cause", "replanned", directive(blocked_tools=("glob",))),
    ("blocks_forgotten", "replanned", directive(blocked_tools=("glob", "shell"))),
    (
        "suggestion_blocked",
        "replanned",
        directive(suggested_alternatives=("shell on a.txt",), blocked_tools=("shell",)),
    ),
    ("directive_outcomes_differ", "replanned", outcome(output="something else")),
    ("end_undecided", "plain", final(directive=Directive.ABANDON)),
    ("accept_without_summary", "plain", unsummarised),
    ("success_without_request", "plain", final(directive=Directive.SUCCESS)),
    ("wrong_reason", "refused", final(stopped_by=StoppedBy.COST)),
    ("output_ungrounded", "plain", final(output="4711")),
    ("summary_says_more", "plain", final(summary="2, and the backup is done")),
    ("unmet_not_told", "refused", told_less),
    ("withheld_not_told", "refused", final(withheld=())),
    ("done_without_outcome", "plain", final(done=("tidied the house",))),
    ("memory_without_decision", "plain", lambda tape: tape.edit(MemoryWritten, state=MegramState.ABANDON)),
    ("memory_value_differs", "plain", lambda tape: tape.edit(MemoryWritten, f=0.1)),
    ("targets_forgotten", "replanned", directive(blocked_targets=(("shell", "x"),))),
    ("taught_by_nothing", "plain", taught_by_nothing),
    ("dream_in_a_task", "plain", lambda tape: tape.edit(MemoryWritten, state=MegramState.HYPOTHESIS)),
    ("ending_undecided", "plain", lambda tape: tape.edit(Ending, directive="abandon")),
]
"""What is wrong, tape, forgery: a replay of it parts from it."""


def _made(tape: Tape) -> tuple[ToolCall, ...]:
    return tape.get(ExecutionResult).tool_calls


def _changed(tape: Tape, **changes: object) -> ToolCall:
    return tape.get(ToolCalled).call.model_copy(update=changes)


def _target(tape: Tape) -> MustNot:
    made = tape.get(ToolCalled).call
    return MustNot(targets=((made.identity[0], made.target),))


@pytest.mark.parametrize(("rule", "name", "forge"), SEEN_LIVE, ids=[rule for rule, _, _ in SEEN_LIVE])
def test_a_forgery_is_seen_while_the_task_runs(rule: str, name: str, forge: Forge, tapes: dict[str, Tape]) -> None:
    """The invariant is broken by the forged stream, and was not by the stream as it was."""
    whole = tapes[name]
    assert rule not in whole.rules()
    assert rule in forge(whole).rules()


@pytest.fixture(scope="module")
def differences(tapes: dict[str, Tape]) -> dict[str, str | None]:
    """The result of a replay of every forged stream. They run together, because most of them wait for a message."""
    few = asyncio.Semaphore(16)

    async def difference(tape: Tape) -> str | None:
        async with few:
            return await tape.difference()

    async def every() -> list[str | None]:
        return await asyncio.gather(*(difference(forge(tapes[name])) for _, name, forge in SEEN_BY_PROOF))

    return dict(zip((what for what, _, _ in SEEN_BY_PROOF), asyncio.run(every()), strict=True))


@pytest.mark.parametrize("what", [what for what, _, _ in SEEN_BY_PROOF])
def test_a_forgery_is_seen_by_the_proof(what: str, differences: dict[str, str | None]) -> None:
    """A replay of the forged stream does not reach it."""
    assert differences[what] is not None


async def test_the_proof_holds_the_invariants_too(tapes: dict[str, Tape]) -> None:
    """What the user and the gate said a replay takes from the log; a forged approval is seen all the same."""
    forged = tapes["refused"].edit(ConfirmationAnswer, consent=Consent.ONCE, by="nobody")
    proof = await prove(forged.messages, patience=5.0, grace=2.0)
    assert proof.replayed.difference is None and not proof.holds
    assert "consent_by_nobody" in {finding.rule for finding in proof.violations}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_healthy_stream_is_proved(name: str, tapes: dict[str, Tape]) -> None:
    """Nothing is forged, and a replay reaches every message."""
    assert await tapes[name].difference(5.0, 2.0) is None


def test_healthy_streams_are_not_accused(tapes: dict[str, Tape]) -> None:
    """Retries, replans, groups, judges and a person's refusal: only the thrashing that is there is reported."""
    found = {name: tape.rules() for name, tape in tapes.items()}
    assert found.pop("replanned") == {"ggs_thrashing"}
    assert not any(found.values()), found


def test_every_invariant_has_a_forgery() -> None:
    """No invariant is here that was never seen to find anything; two have tests of their own."""
    elsewhere = {"ggs_thrashing", "correction_storm"}
    assert {each.name for each in INVARIANTS} == {rule for rule, _, _ in SEEN_LIVE} | elsewhere


def test_a_storm_of_corrections_is_an_anomaly(tapes: dict[str, Tape]) -> None:
    """Six corrections of subtasks that have not matched are named, and twelve; what matched does not count."""
    tape = tapes["corrected"]
    signal, matched = tape.envelope(CorrectionSignal), tape.envelope(SubTaskOutcome)
    stream = [*tape.messages[: tape.where(CorrectionSignal)]]
    stream += [signal._replace(id=f"one-{number}") for number in range(5)]
    stream += [matched, *(signal._replace(id=f"two-{number}") for number in range(12))]
    storms = [each.what for each in Tape(tuple(stream)).findings() if each.rule == "correction_storm"]
    assert [each.split()[0] for each in storms] == ["6", "12"]
