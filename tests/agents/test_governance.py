"""The state machine, trust and review as the seed has them."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import pytest
from engines import open_books

from artoo.agents.board.board import Board
from artoo.agents.board.rules import (
    SEED_POLICIES,
    TRANSITIONS,
    ComplexityRule,
    Mover,
    check_complexity,
    check_reviewer,
    check_transition,
    needs_review,
    ruled,
    way_to_cancel,
)
from artoo.contracts.agents import (
    OPERATOR,
    POLICY,
    RUNTIME,
    BoardState,
    BoardTask,
    Complexity,
    Priority,
    TaskChanged,
    TrustLevel,
)
from artoo.contracts.errors import ActorRefused, MoveRefused
from artoo.testing import FakeClock, SequentialIds

SEED = {
    "pending": ["in_progress", "cancelled"],
    "in_progress": ["blocked", "review", "failed"],
    "blocked": ["in_progress", "cancelled"],
    "review": ["completed", "rejected"],
    "completed": ["archived"],
    "failed": ["pending", "cancelled"],
    "rejected": ["pending", "cancelled"],
    "cancelled": ["archived"],
    "archived": [],
}


def test_moves_are_exactly_those_of_the_seed() -> None:
    """All 81 pairs: allowed where the seed's table has them, refused with what may follow elsewhere."""
    for before, after in product(BoardState, BoardState):
        if after.value in SEED[before.value]:
            check_transition("t", before, after)
            continue
        with pytest.raises(MoveRefused, match=f"is {before.value} and cannot become {after.value}"):
            check_transition("t", before, after)


@pytest.mark.parametrize(
    ("trust", "reviewed"),
    [
        (TrustLevel.PROBATION, {"simple", "complex", "critical", None}),
        (TrustLevel.STANDARD, {"complex", "critical", None}),
        (TrustLevel.TRUSTED, {"critical", None}),
        (TrustLevel.SENIOR, set[str | None]()),
    ],
)
def test_trust_decides_what_is_reviewed(trust: TrustLevel, reviewed: set[str | None]) -> None:
    """All, complex and critical, critical only, none; unset counts as critical."""
    found = {
        None if complexity is None else complexity.value
        for complexity in (*Complexity, None)
        if needs_review(SEED_POLICIES, Mover("ada", trust), complexity)
    }
    assert found == reviewed


def test_the_operator_needs_no_review_and_artoo_itself_always_would() -> None:
    """A person's own work is theirs; nothing that is not an agent gets past by having no trust level."""
    assert not needs_review(SEED_POLICIES, Mover(OPERATOR), None)
    assert needs_review(SEED_POLICIES, Mover(RUNTIME), Complexity.SIMPLE)


@pytest.mark.parametrize(
    ("mover", "may"),
    [
        (Mover(OPERATOR), True),
        (Mover("dot", TrustLevel.SENIOR), True),
        (Mover("dot", TrustLevel.SENIOR, idle="it is paused"), False),
        (Mover("cyd", TrustLevel.TRUSTED), False),
        (Mover("bob", TrustLevel.STANDARD), False),
        (Mover("ada", TrustLevel.PROBATION), False),
        (Mover(RUNTIME), False),
        (Mover(POLICY), False),
    ],
)
def test_only_seniors_and_the_operator_review(mover: Mover, may: bool) -> None:
    """Everybody else is refused, artoo itself and its policy included."""
    task = _task(assignee="ada")
    if may:
        check_reviewer(SEED_POLICIES, task, mover)
        return
    with pytest.raises(ActorRefused):
        check_reviewer(SEED_POLICIES, task, mover)


def test_nobody_reviews_their_own_unless_their_level_needs_no_review() -> None:
    """A senior may, because nothing of theirs is reviewed; a level that approves and is reviewed may not."""
    own = _task(assignee="dot")
    check_reviewer(SEED_POLICIES, own, Mover("dot", TrustLevel.SENIOR))
    stricter = {**SEED_POLICIES, TrustLevel.TRUSTED: SEED_POLICIES[TrustLevel.TRUSTED]}
    stricter[TrustLevel.TRUSTED] = type(stricter[TrustLevel.TRUSTED])("critical", can_approve=True)
    with pytest.raises(ActorRefused, match="own submission"):
        check_reviewer(stricter, own, Mover("dot", TrustLevel.TRUSTED))


@pytest.mark.parametrize("name", ["ada", RUNTIME])
def test_complexity_is_the_operators_or_a_rules(name: str) -> None:
    """No agent sets it, not even of a task that is not its own."""
    check_complexity("t", OPERATOR)
    check_complexity("t", POLICY)
    with pytest.raises(ActorRefused, match="counts as critical"):
        check_complexity("t", name)


def test_cancelling_takes_only_moves_that_there_are() -> None:
    """From in_progress through blocked, from review through rejected; what is over cannot be cancelled."""
    for state in BoardState:
        way = (state, *way_to_cancel(state))
        legal = all(after in TRANSITIONS[before] for before, after in pairwise(way))
        assert legal == (state not in {BoardState.COMPLETED, BoardState.CANCELLED, BoardState.ARCHIVED})


def _task(assignee: str) -> BoardTask:
    now = FakeClock().now()
    return BoardTask(id="t", text="x", state=BoardState.REVIEW, assignee=assignee, created_at=now, updated_at=now)


@pytest.mark.usefixtures("engine")
async def test_a_rule_of_the_operators_sets_the_complexity_that_nobody_set(tmp_path: Path) -> None:
    """The first rule that fits decides, as `policy` and on record, and never against the operator's word."""
    rules = (
        ComplexityRule(Complexity.CRITICAL, project="/srv/money"),
        ComplexityRule(Complexity.SIMPLE, project="/srv", by_operator=True),
        ComplexityRule(Complexity.COMPLEX, priority=Priority.BACKGROUND, assignee="ada"),
    )
    clock = FakeClock()
    async with await open_books(tmp_path, clock) as database:
        board = Board(database, SequentialIds(), rules=rules)
        simple = await board.add("tidy", OPERATOR, project="/srv/notes")
        assert simple.complexity is Complexity.SIMPLE
        changes = [each for each in await board.log(simple.id) if isinstance(each, TaskChanged)]
        assert [(each.actor, each.detail) for each in changes] == [(POLICY, "unset -> simple")]
        assert (await board.add("pay", OPERATOR, project="/srv/money/2026")).complexity is Complexity.CRITICAL
        said = await board.add("tidy", OPERATOR, project="/srv/notes", complexity=Complexity.COMPLEX)
        assert said.complexity is Complexity.COMPLEX
        assert (await board.add("tidy", OPERATOR, project="/srvother")).complexity is None
    assert ruled(rules, "/srv/notes", None, "ada", Priority.STANDARD) is None
    assert ruled(rules, "", "ada", "bob", Priority.BACKGROUND) is Complexity.COMPLEX
