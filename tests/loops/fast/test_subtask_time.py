"""A subtask's deadline bounds all its attempts together; without one only the task's budget does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from executing import Bench, bench, turn

from artoo.contracts.conversation import ModelTurn
from artoo.contracts.execution import ExecutionResult
from artoo.ports.waiting import waiting_for_a_person
from artoo.testing import FakeClock


class SlowTurns:
    """Turns that take their time: the loop's time goes on by so many seconds during each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.moved = 0.0
        loop = asyncio.get_running_loop()
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + self.moved)

    def taking(self, seconds: float, *, with_a_person: bool = False) -> Callable[[], Awaitable[ModelTurn]]:
        async def passes() -> ModelTurn:
            self.moved += seconds
            for _ in range(3):  # timers that are due now run before the answer
                await asyncio.sleep(0)
            return turn(text="done")

        async def waits() -> ModelTurn:
            with waiting_for_a_person():
                return await passes()

        return waits if with_a_person else passes


async def attempts(it: Bench, count: int, seconds: float | None) -> list[ExecutionResult]:
    """The results of so many attempts, one after the other."""
    it.patience = 1e6  # the loop's time is what these tests move
    it.give(deadline=None if seconds is None else FakeClock().now() + timedelta(seconds=seconds))
    results = [await it.until(ExecutionResult)]
    while len(results) < count:
        it.correct("again")
        results.append(await it.until(ExecutionResult))
    return results


async def test_attempts_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attempts that would each fit do not fit together: the second is cut off, and a third ends at once."""
    slow = SlowTurns(monkeypatch)
    async with bench(*[slow.taking(3.0)] * 3) as it:
        first, second, third = await attempts(it, 3, 5.0)
    assert first.infrastructure is None
    reason = "timeout: the subtask's attempts took more than 5 s"
    assert (second.status, second.infrastructure, third.infrastructure) == ("failed", reason, reason)


async def test_a_users_time_is_not_an_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user takes to answer counts for no attempt, neither this nor the next."""
    slow = SlowTurns(monkeypatch)
    async with bench(*[slow.taking(60.0, with_a_person=True)] * 2) as it:
        results = await attempts(it, 2, 5.0)
    assert [result.status for result in results] == ["completed"] * 2


async def test_without_a_deadline_attempts_have_the_tasks_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """R7 ends the task when its budget is spent."""
    slow = SlowTurns(monkeypatch)
    async with bench(slow.taking(9_000.0)) as it:
        (result,) = await attempts(it, 1, None)
    assert result.status == "completed"
