"""What stands of a log, what counts as the same, and what other hyperparameters would have decided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Mode
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import ModelCalled, ModelFailure
from artoo.contracts.execution import CriterionVerdict, SubTaskOutcome
from artoo.contracts.failure import FailureClass
from artoo.contracts.plan import PlanRefused
from artoo.contracts.recording import TaskOpened, TaskResumed
from artoo.contracts.request import Interrupt, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import ApplyMode
from artoo.contracts.solution import (
    Decided,
    Directive,
    FinalResult,
    Halt,
    ReplanRequest,
    RoleFailure,
    StoppedBy,
)
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.medium.allowance import Allowance
from artoo.loops.medium.trajectory import Trajectory, measure
from artoo.ports.spool import Gap
from artoo.runtime.replay.conductor import RecordedWatch, ReplayClock
from artoo.runtime.replay.difference import alike, differences
from artoo.runtime.replay.recording import read_recording
from artoo.runtime.replay.standing import standing, to_drop
from artoo.runtime.replay.what_if import changed, what_if
from artoo.runtime.task.task_header import opened_as, settings_of
from artoo.runtime.task.task_run import TaskSettings
from artoo.testing import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = UserRequest(text="do it", project="/p", workspace="/w")


def said(number: int, payload: Contract, cause: int | None = None, role: Role = Role.SOLVER) -> Envelope:
    at = START + timedelta(seconds=number)
    return Envelope(f"m{number}", role, "task-1", at, payload, None, None if cause is None else f"m{cause}")


def asked(failure: ModelFailure | None = None) -> ModelCalled:
    return ModelCalled(
        role=Role.PLANNER,
        contract="Plan",
        tier="brain",
        model="m",
        system="s",
        user="u",
        answer="{}",
        error=None if failure is None else "no",
        failure=failure,
    )


def ended(why: StoppedBy) -> FinalResult:
    return FinalResult(task_id="task-1", summary="it was", directive=Directive.ABANDON, stopped_by=why)


def test_an_interruption_does_not_stand() -> None:
    """The interrupt and all that followed from it go; work that ended in the meantime stays."""
    stream = [
        said(1, REQUEST, role=Role.USER),
        said(2, Interrupt(), role=Role.USER),
        said(3, Halt(stopped_by=StoppedBy.INTERRUPTED, reason=""), cause=2),
        said(4, asked(), cause=1, role=Role.PLANNER),
        said(5, ended(StoppedBy.INTERRUPTED), cause=3),
    ]
    assert to_drop(stream) == ("m2", "m3", "m5")


def test_a_model_that_could_not_be_reached_is_asked_again() -> None:
    """The failed call goes with the failure; an answer that did not fit stays."""
    stream = [
        said(1, REQUEST, role=Role.USER),
        said(2, asked(ModelFailure(nature="invalid")), cause=1, role=Role.PLANNER),
        said(3, asked(ModelFailure(nature="unreachable")), cause=1, role=Role.PLANNER),
        said(4, RoleFailure(role=Role.PLANNER, stopped_by=StoppedBy.NO_MODEL, reason="x"), cause=1),
        said(5, ended(StoppedBy.NO_MODEL), cause=4),
    ]
    assert to_drop(stream) == ("m3", "m4", "m5")


def test_a_resumed_log_reads_as_one_run() -> None:
    """What the TaskResumed names is gone, and what came after it follows on what stands."""
    log = [
        said(1, REQUEST, role=Role.USER),
        said(2, Interrupt(), role=Role.USER),
        said(3, TaskResumed(after="m1", dropped=("m2",)), role=Role.USER),
        said(4, asked(), cause=1, role=Role.PLANNER),
    ]
    assert [each.id for each in standing(log)] == ["m1", "m3", "m4"]


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ([], "it is empty"),
        ([said(1, REQUEST)], "written by artoo 0.1"),
        ([said(1, TaskOpened(artoo="0.2"))], "ends before the request"),
        ([said(1, TaskOpened(artoo="0.2")), Gap(3, (), "disk full")], "3 messages are missing after message m1"),
    ],
)
def test_a_log_that_cannot_be_replayed_says_why(log: list[Envelope | Gap], why: str) -> None:
    """Empty, old, cut off and gapped logs are refused, each with its reason."""
    with pytest.raises(ConfigurationError, match=why):
        read_recording(log)


def test_how_a_task_runs_survives_its_log() -> None:
    """Settings, through the first message and back, are the same settings."""
    given_settings = TaskSettings(
        Hyperparameters(delta=0.125, gradient="paper", time_budget_ms=60_000),
        strict_roles=True,
        persona="calm",
        apply=ApplyMode.EDITS,
        allowance=Allowance(effort="long", seconds=60.0, calls=3),
        approve=True,
    )
    opened = opened_as(given_settings, ("edits a",), memory=False)
    read = TaskOpened.model_validate_json(opened.model_dump_json())
    assert settings_of(read) == given_settings
    assert (read.max_calls, read.max_tokens, read.allow, read.memory) == (3, 40_000_000, ("edits a",), False)
    assert read.apply is ApplyMode.EDITS


def test_time_and_prompts_may_differ() -> None:
    """Durations, costs and the wording of prompts are no difference; answers and decisions are."""
    one = ReplanRequest(task_id="t", elapsed_ms=5)
    assert alike(one, one.model_copy(update={"elapsed_ms": 9}))
    assert not alike(one, one.model_copy(update={"not_run": 1}))
    assert alike(asked(), asked().model_copy(update={"user": "other", "duration_ms": 8}))
    assert list(differences(asked(), asked().model_copy(update={"answer": "[]"}))) == [
        "answer: the log says '{}', replay says '[]'"
    ]


def test_a_redacted_text_is_like_its_original() -> None:
    """Where the log holds the mark of a secret, anything may stand; around it nothing else."""
    logged = PlanRefused(reasons=("the key [redacted] is wrong",), round=1)
    assert alike(logged, PlanRefused(reasons=("the key sk-123 is wrong",), round=1))
    assert not alike(logged, PlanRefused(reasons=("the key sk-123 is right",), round=1))
    many = PlanRefused(reasons=("K=[redacted]\n" * 60 + "end",), round=1)
    assert alike(many, PlanRefused(reasons=("K=v\n" * 60 + "end",), round=1))
    assert not alike(many, PlanRefused(reasons=("K=v\n" * 120 + "End",), round=1))  # no search of all ways to match
    overlapping = PlanRefused(reasons=("ab[redacted]ba",), round=1)
    assert not alike(overlapping, PlanRefused(reasons=("aba",), round=1))


# --- what if ----------------------------------------------------------------------------------------------------


def request_with(*failed: bool) -> ReplanRequest:
    """One subtask that matched, with these task criteria failed or not."""
    verdicts = tuple(
        CriterionVerdict(
            criterion=f"c{number}",
            mode=Mode.VERIFIABLE,
            verdict="fail" if each else "pass",
            failure_class=FailureClass.LOGICAL if each else None,
        )
        for number, each in enumerate(failed)
    )
    outcome = SubTaskOutcome(subtask_id="s", parent_task_id="t", status="matched", criteria_verdicts=verdicts)
    return ReplanRequest(task_id="t", outcomes=(outcome,))


def run_of(requests: list[ReplanRequest], h: Hyperparameters) -> list[Envelope]:
    """The stream of R7's decisions about these rounds, until one ends the task."""
    trajectory = Trajectory(h)
    stream = [said(1, REQUEST, role=Role.USER)]
    for index, request in enumerate(requests):
        number = 2 + 2 * index
        measured = trajectory.measure(measure(request), 1_000.0 * (index + 1), float(h.time_budget_ms))
        decision = trajectory.decide(measured, may_replan=True)
        stream.append(said(number, request, role=Role.META_VALIDATOR))
        stream.append(said(number + 1, trajectory.record(decision, measured), cause=number))
        if decision.state.ends:
            break
        trajectory.advance(measured, Directive(decision.state.value))
    return stream


rounds = st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=1, max_size=5)


@settings(deadline=None)
@given(rounds, st.sampled_from(["equal_cost", "paper"]), st.floats(0, 1), st.floats(0, 1))
def test_the_same_numbers_decide_the_same(
    failures: list[list[bool]], gradient: str, delta: float, theta: float
) -> None:
    """With the hyperparameters of the log every decision is recomputed exactly, figures included."""
    lines = [f"gradient={gradient}", f"delta={delta!r}", f"theta={theta!r}"]
    h = changed(Hyperparameters(), lines)
    stream = run_of([request_with(*each) for each in failures], h)
    recomputed = what_if(stream, h)
    assert [each.now for each in recomputed] == [e.payload for e in stream if isinstance(e.payload, Decided)]


def test_a_smaller_delta_takes_another_road() -> None:
    """One criterion of four unmet is a success at δ = .3 and not at .2; what follows is not shown."""
    stream = run_of([request_with(True, False, False, False)], Hyperparameters())
    (round_,) = what_if(stream, changed(Hyperparameters(), ["δ=.2"]))
    assert round_.then.directive is Directive.SUCCESS
    assert round_.now is not None and round_.now.directive is Directive.BREAK_SYMMETRY
    assert not round_.same


# --- time -------------------------------------------------------------------------------------------------------


async def test_time_goes_by_messages_and_then_by_the_clock() -> None:
    """Until the task is live it is as late as its last message; a stop between two processes never counted."""
    real = FakeClock(start=START + timedelta(days=3))
    clock = ReplayClock(real, START)
    watch = RecordedWatch(clock, lambda: None)
    watch.start()
    clock.move(START + timedelta(seconds=5))
    clock.move(START + timedelta(days=1), stopped=True)
    clock.move(START + timedelta(days=1, seconds=2))
    assert (clock.now(), watch.elapsed_ms()) == (START + timedelta(days=1, seconds=2), 7_000.0)
    clock.go_live()
    real.advance(3)
    assert (clock.now(), watch.elapsed_ms()) == (START + timedelta(days=3, seconds=3), 10_000.0)
