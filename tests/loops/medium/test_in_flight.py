"""The control law on samples of one attempt, and the budgets of an effort."""

from __future__ import annotations

import asyncio

import pytest

from artoo.contracts.criteria import Mode
from artoo.contracts.execution import CriterionVerdict, DecidedBy
from artoo.contracts.failure import FailureClass
from artoo.contracts.solution import Directive
from artoo.contracts.steering import Sampled
from artoo.control.hyperparameters import Hyperparameters
from artoo.llm.budget import Budget, Demand
from artoo.loops.medium.in_flight import Course, Flight

H = Hyperparameters()


def verdict(text: str, *, fails: bool, by: DecidedBy = DecidedBy.CHECK) -> CriterionVerdict:
    open_ = by is DecidedBy.NOBODY
    return CriterionVerdict(
        criterion=text,
        mode=Mode.VERIFIABLE,
        verdict="open" if open_ else "fail" if fails else "pass",
        failure_class=FailureClass.LOGICAL if fails else None,
        failed_attempts=int(fails),
        evidence=f"{text} was looked at",
        decided_by=by,
    )


def sample(turn: int, failing: int, of: int = 4, *, logical: int = 0, environmental: int = 0) -> Sampled:
    """A sample in which the first `failing` of so many checks fail."""
    verdicts = tuple(verdict(f"c{number}", fails=number < failing) for number in range(of))
    return Sampled(
        subtask_id="s", attempt=1, turn=turn, verdicts=verdicts, logical=logical, environmental=environmental
    )


def flown(*failing: int, **classes: int) -> list[Course]:
    """What R7 says to samples in a row, in each of which so many of four checks fail."""
    flight = Flight(1)
    return [flight.take(sample(8 * turn, each, **classes), 0.05, H) for turn, each in enumerate(failing, 1)]


def told(*failing: int, **classes: int) -> list[Directive | None]:
    return [course.directive for course in flown(*failing, **classes)]


@pytest.mark.parametrize(
    ("failing", "classes", "directive"),
    [
        ((3, 3), {"logical": 2}, Directive.BREAK_SYMMETRY),
        ((3, 3), {"environmental": 2}, Directive.CHANGE_PATH),
        ((2, 4), {"logical": 2}, Directive.CHANGE_APPROACH),
        ((2, 4), {"environmental": 2}, Directive.REFINE),
    ],
)
def test_a_plateau_or_a_worsening_is_directed_by_the_table(
    failing: tuple[int, int], classes: dict[str, int], directive: Directive
) -> None:
    """The four macro-states that go on, by |∇L| and P, with the reason and the checks in words."""
    *_, last = flown(*failing, **classes)
    assert last.directive is directive and not last.ends
    assert "c0 was looked at" in last.text and ("further" in last.text) is (failing[0] < failing[1])


def test_an_attempt_that_comes_closer_is_left_alone() -> None:
    """An improvement needs no word, and neither does a distance that can be a success."""
    assert told(4, 3, 2) == [None, None, None]
    assert told(1, 1, 1) == [None, None, None]


def test_without_a_check_nobody_is_directed() -> None:
    """Open criteria count as passed, and what no check decides says nothing about the way."""
    flight = Flight(1)
    nobody = tuple(verdict(name, fails=False, by=DecidedBy.NOBODY) for name in "ab")
    for turn in (8, 16, 24):
        course = flight.take(Sampled(subtask_id="s", attempt=1, turn=turn, verdicts=nobody), 0.1, H)
        assert (course.directive, course.loss.D) == (None, 0.0)


def test_two_worsening_samples_after_a_directive_end_the_attempt() -> None:
    """Law 2; an attempt that recovers in between goes on."""
    courses = flown(2, 2, 3, 4)
    assert [each.ends for each in courses] == [False, False, False, True]
    assert "Law 2" in courses[-1].reason and courses[-1].text.startswith("Stop here")
    assert not any(each.ends for each in flown(2, 2, 3, 2, 3, 2, 3))
    assert not any(each.ends for each in flown(1, 2, 3))


def test_where_no_call_failed_nothing_is_said_of_the_approach() -> None:
    """P is 0 / 0 then: neither is the method kept, nor is another one asked for."""
    text = flown(3, 3)[-1].text
    assert "method" not in text and "approach" not in text and "Find out why" in text


async def test_limits_that_are_raised_admit_the_request_that_waits() -> None:
    """And are never lowered; a budget without a limit stays without one."""
    budget = Budget(max_calls=2, max_tokens=100)
    first = await budget.reserve(Demand(100))
    waiting = asyncio.ensure_future(budget.reserve(Demand(50)))
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.raise_limits(40, 1_000)
    second = await waiting
    budget.raise_limits(1, 1)
    third = await budget.reserve(Demand(200))
    for each in (first, second, third):
        budget.release(each)
    assert budget.idle
    free = Budget()
    free.raise_limits(1, 1)
    free.release(await free.reserve(Demand(10**9)))
