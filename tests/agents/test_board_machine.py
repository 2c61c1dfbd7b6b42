"""The whole board under arbitrary calls by arbitrary actors, on the real database."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import pytest
from core_doubles import TEAM, Office, Stream, office
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import TaskClaim
from artoo.agents.board.rules import SEED_POLICIES
from artoo.agents.mail.outbox import Outbox
from artoo.contracts.agents import (
    OPERATOR,
    POLICY,
    RUNTIME,
    BoardState,
    Complexity,
    TaskChanged,
    TaskMoved,
    TrustLevel,
)
from artoo.contracts.errors import ConfigurationError, GovernanceRefused
from artoo.runtime.app.system import UuidIds
from artoo.testing import FakeClock
from board_work import hand_in, take

T = TypeVar("T")
S = BoardState

# Written down once more, so that a mistake in the product is not a mistake of its test.
LEGAL = {
    (None, S.PENDING),
    (S.PENDING, S.IN_PROGRESS),
    (S.PENDING, S.CANCELLED),
    (S.IN_PROGRESS, S.BLOCKED),
    (S.IN_PROGRESS, S.REVIEW),
    (S.IN_PROGRESS, S.FAILED),
    (S.BLOCKED, S.IN_PROGRESS),
    (S.BLOCKED, S.CANCELLED),
    (S.REVIEW, S.COMPLETED),
    (S.REVIEW, S.REJECTED),
    (S.COMPLETED, S.ARCHIVED),
    (S.FAILED, S.PENDING),
    (S.FAILED, S.CANCELLED),
    (S.REJECTED, S.PENDING),
    (S.REJECTED, S.CANCELLED),
    (S.CANCELLED, S.ARCHIVED),
}
REVIEWED = {
    TrustLevel.PROBATION: {None, *Complexity},
    TrustLevel.STANDARD: {None, Complexity.COMPLEX, Complexity.CRITICAL},
    TrustLevel.TRUSTED: {None, Complexity.CRITICAL},
    TrustLevel.SENIOR: set[Complexity | None](),
}

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A file system that need not wait for a disk; what survives a crash is proved elsewhere."""

AFTER = {
    "block": (S.IN_PROGRESS,),
    "release": (S.BLOCKED,),
    "retry": (S.FAILED, S.REJECTED),
    "cancel": (S.PENDING, S.IN_PROGRESS, S.REVIEW),
    "archive": (S.COMPLETED, S.CANCELLED),
}
"""Where each of the operator's verbs has a chance."""

actors = st.sampled_from([*TEAM, OPERATOR, OPERATOR, RUNTIME, POLICY, "stranger"])
workers = st.sampled_from([*TEAM, OPERATOR])
complexities = st.sampled_from([None, *Complexity])
picks = st.integers(0, 39)


class BoardMachine(RuleBasedStateMachine):
    """Calls of every kind; after each, the new transitions are judged by an account of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory(dir=IN_MEMORY)
        self.stack = AsyncExitStack()
        self.clock = FakeClock()
        self.office: Office = self.runner.run(
            self.stack.enter_async_context(office(Path(self.directory.name), self.clock))
        )
        self.board = self.office.board
        self.merges = Reviews(self.office.database, UuidIds(), SEED_POLICIES)
        self.stream = Stream()
        self.outbox = Outbox(self.office.database, self.stream)
        self.trust = dict(TEAM)
        self.complexity: dict[str, Complexity | None] = {}
        self.state: dict[str, BoardState | None] = {}
        self.submitter: dict[str, str] = {}
        self.claims: list[TaskClaim] = []
        self.judged = 0

    def attempt(self, call: Coroutine[None, None, T]) -> T | None:
        """The call's result; None when it was refused, which must say why."""
        try:
            return self.runner.run(call)
        except (GovernanceRefused, ConfigurationError) as error:
            assert str(error)
            return None

    def some_task(self, pick: int, *likely: BoardState) -> str:
        """Any task; three times in four one in a `likely` state, so that calls get far."""
        fitting = [task for task, state in self.state.items() if state in likely]
        tasks = fitting if fitting and pick % 4 else list(self.state)
        return tasks[pick // 4 % len(tasks)] if tasks else "none"

    def some_claim(self, pick: int) -> TaskClaim | None:
        """Any claim that there ever was; three times in four one of the last two."""
        claims = self.claims[-2:] if pick % 4 else self.claims
        return claims[pick // 4 % len(claims)] if claims else None

    @initialize(
        tasks=st.lists(st.tuples(complexities, st.sampled_from([*TEAM]), st.booleans()), min_size=2, max_size=6)
    )
    def begin(self, tasks: list[tuple[Complexity | None, str, bool]]) -> None:
        """Some tasks are being worked on already, and some were handed in."""
        for complexity, assignee, submitted in tasks:
            task = self.runner.run(self.board.add("do it", OPERATOR, complexity=complexity, assignee=assignee))
            self.state[task.id], self.complexity[task.id] = None, complexity
            self.claims.append(self.runner.run(take(self.office.database, task.id, assignee)))
            if submitted:
                self.runner.run(hand_in(self.office.database, self.claims[-1], "done"))

    @rule(actor=actors, complexity=complexities, assignee=st.none() | workers)
    def add(self, actor: str, complexity: Complexity | None, assignee: str | None) -> None:
        task = self.attempt(self.board.add("do it", actor, complexity=complexity, assignee=assignee))
        if task is not None:
            assert complexity is None or actor in (OPERATOR, POLICY)
            self.state[task.id] = None
            self.complexity[task.id] = complexity

    @rule(pick=picks, actor=actors, own=st.booleans())
    def take(self, pick: int, actor: str, own: bool) -> None:
        task_id = self.some_task(pick, S.PENDING, S.BLOCKED)
        if own and task_id in self.state:
            actor = self.runner.run(self.board.get(task_id)).assignee or actor
        claim = self.attempt(self.office.allocation.next(actor))
        if isinstance(claim, TaskClaim) and claim.task.state is S.IN_PROGRESS:
            self.claims.append(claim)

    @rule(pick=picks, ending=st.sampled_from(["hand in", "submit", "fail", "hold_up", "give_back", "renew"]))
    def work(self, pick: int, ending: str) -> None:
        claim = self.some_claim(pick)
        if claim is None:
            return
        work = self.board.work
        match ending:
            case "hand in":
                self.attempt(hand_in(self.office.database, claim, "done"))
            case "submit":
                self.attempt(self.merges.submit(claim, "done"))
            case "fail":
                self.attempt(work.fail(claim, "no"))
            case "hold_up":
                self.attempt(work.hold_up(claim, "help"))
            case "give_back":
                self.attempt(work.give_back(claim, "stopping"))
            case _:
                self.attempt(work.renew(claim))

    @rule(pick=picks, actor=actors)
    def approve(self, pick: int, actor: str) -> None:
        self.attempt(self.board.reviews.approve(self.some_task(pick, S.REVIEW), actor))

    @rule(pick=picks, actor=actors)
    def approve_what_was_seen(self, pick: int, actor: str) -> None:
        self.attempt(self.board.reviews.approve(self.some_task(pick, S.REVIEW), actor, submission=1))

    @rule(
        pick=picks,
        actor=actors,
        verb=st.sampled_from(["reject", "take", "policy", "send_back"]),
        submission=st.sampled_from([None, None, None, 1]),
    )
    def review(self, pick: int, actor: str, verb: str, submission: int | None) -> None:
        task_id, reviews = self.some_task(pick, S.REVIEW), self.board.reviews
        match verb:
            case "reject":
                self.attempt(reviews.reject(task_id, actor, "not good enough", submission=submission))
            case "take":
                self.attempt(reviews.take(task_id, actor))
            case "policy":
                self.attempt(self.merges.pass_by_policy(task_id, submission or 1))
            case _:
                self.attempt(self.merges.send_back(task_id, submission or 1, "cannot be merged"))

    @rule(pick=picks, actor=actors, verb=st.sampled_from(sorted(AFTER)))
    def steer(self, pick: int, actor: str, verb: str) -> None:
        task_id, board = self.some_task(pick, *AFTER[verb]), self.board
        match verb:
            case "block":
                self.attempt(board.work.block(task_id, actor, "stop"))
            case "release":
                self.attempt(board.release(task_id, actor, "go on"))
            case "retry":
                self.attempt(board.retry(task_id, actor))
            case "cancel":
                self.attempt(board.cancel(task_id, actor))
            case _:
                self.attempt(board.archive(task_id, actor))

    @rule(pick=picks, actor=actors, complexity=complexities)
    def set_complexity(self, pick: int, actor: str, complexity: Complexity | None) -> None:
        task_id = self.some_task(pick)
        if self.attempt(self.board.set_complexity(task_id, complexity, actor)) is not None:
            assert actor in (OPERATOR, POLICY)
            self.complexity[task_id] = complexity

    @rule(pick=picks, actor=actors, agent=st.none() | workers, what=st.sampled_from(["assignee", "reviewer"]))
    def set_people(self, pick: int, actor: str, agent: str | None, what: str) -> None:
        change = self.board.assign if what == "assignee" else self.board.set_reviewer
        if self.attempt(change(self.some_task(pick), agent, actor)) is not None:
            assert actor == OPERATOR

    @rule(agent=st.sampled_from([*TEAM]), trust=st.sampled_from(TrustLevel), actor=actors, paused=st.booleans())
    def set_agent(self, agent: str, trust: TrustLevel, actor: str, paused: bool) -> None:
        registry = self.office.registry
        if self.attempt(registry.set_trust(agent, trust, actor)) is not None:
            assert actor == OPERATOR
            self.trust[agent] = trust
        self.attempt(registry.pause(agent, actor) if paused else registry.resume(agent, actor))

    @rule(seconds=st.sampled_from([1.0, 1.0, 1.0, 20.0, 70.0]), killed=st.sampled_from([False, False, False, True]))
    def time_passes(self, seconds: float, killed: bool) -> None:
        self.clock.advance(seconds)
        self.runner.run(self.board.work.recover(lambda _: killed))

    @invariant()
    def every_new_transition_is_justified(self) -> None:
        self.runner.run(self.outbox.drain())
        moves = [record for record in self.stream.records if isinstance(record, TaskMoved)]
        for moved in moves[self.judged :]:
            self.judge(moved)
        self.judged = len(moves)
        assert len({record.event for record in moves}) == len(moves)

    def judge(self, moved: TaskMoved) -> None:
        task = moved.board_task
        assert task in self.state, "a transition of a task that nobody added"
        assert self.state[task] == moved.before, "the chain of transitions is broken"
        assert (moved.before, moved.after) in LEGAL
        assert moved.actor in {*TEAM, OPERATOR, RUNTIME, POLICY}
        if moved.after is S.REVIEW:
            self.submitter[task] = moved.actor
        if moved.after is S.COMPLETED:
            self.judge_completion(moved, self.submitter[task])
        self.state[task] = moved.after

    def judge_completion(self, moved: TaskMoved, submitter: str) -> None:
        assert moved.before is S.REVIEW
        trust = self.trust.get(submitter, TrustLevel.PROBATION)  # artoo itself is reviewed like a beginner
        demanded = submitter != OPERATOR and self.complexity[moved.board_task] in REVIEWED[trust]
        if moved.by_policy:
            assert moved.actor == POLICY
            assert not demanded, "the policy approved what it demands a review of"
        elif moved.actor != OPERATOR:
            assert self.trust[moved.actor] is TrustLevel.SENIOR
            assert moved.actor != submitter or not demanded

    @invariant()
    def no_task_is_lost(self) -> None:
        listed = self.runner.run(self.board.list(list(S)))
        assert {task.id: task.state for task in listed} == self.state

    def teardown(self) -> None:
        try:
            for task_id in self.state:
                self.end(task_id)
                log = self.runner.run(self.board.log(task_id))
                self.runner.run(self.outbox.drain())
                records = (record for record in self.stream.records if isinstance(record, TaskMoved | TaskChanged))
                assert list(log) == [record for record in records if record.board_task == task_id]
        finally:
            self.runner.run(self.stack.aclose())
            self.runner.close()
            self.directory.cleanup()

    def end(self, task_id: str) -> None:
        """Whatever happened, the operator can bring it to archived."""
        state = self.runner.run(self.board.get(task_id)).state
        if state is S.ARCHIVED:
            return
        if state not in (S.COMPLETED, S.CANCELLED):
            self.runner.run(self.board.cancel(task_id, OPERATOR))
        assert self.runner.run(self.board.archive(task_id, OPERATOR)).state is S.ARCHIVED


BoardMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=40, deadline=None)
TestBoard = BoardMachine.TestCase


class LongBoardMachine(BoardMachine):
    """The same at length."""


LongBoardMachine.TestCase.settings = settings(max_examples=400, stateful_step_count=100, deadline=None)
TestBoardAtLength = pytest.mark.torture(LongBoardMachine.TestCase)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("engine", ["shared"], indirect=True)
def test_the_rules_hold_in_a_shared_store() -> None:
    """The same machine, with fewer examples, on PostgreSQL."""
    run_state_machine_as_test(
        BoardMachine, settings=settings(max_examples=4, stateful_step_count=40, deadline=None)
    )
