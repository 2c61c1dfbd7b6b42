from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.testing import FakeClock, SequentialIds


async def test_sleepers_wake_in_order_when_time_comes():
    """Time moves only by `advance`, and each sleeper wakes at its own moment."""
    clock, woken = FakeClock(), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, seconds))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("late", 20))
        group.create_task(sleeper("early", 10))
        await clock.wait_for_sleepers(2)
        clock.advance(9.5)
        await asyncio.sleep(0)
        assert not woken
        clock.advance(0.5)
        assert clock.sleepers == 1
        clock.advance(100)
    assert woken == [("early", 10), ("late", 20)]
    assert clock.monotonic() == 110
    assert clock.now() == datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=110)
    assert clock.slept == [20, 10]


async def test_auto_advance_never_waits():
    """A sleep of an hour returns at once, an hour later."""
    clock: Clock = FakeClock(auto_advance=True)
    await clock.sleep(3_600)
    await clock.sleep(0)
    assert clock.monotonic() == 3_600


async def test_cancelled_sleepers_are_forgotten():
    """Advancing past a cancelled sleep wakes nobody and does not fail."""
    clock = FakeClock()
    task = asyncio.ensure_future(clock.sleep(5))
    await clock.wait_for_sleepers()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.sleepers == 0
    clock.advance(10)


def test_time_does_not_go_back():
    """A negative step is a mistake in the test."""
    with pytest.raises(ValueError, match="cannot go back"):
        FakeClock().advance(-1)


def test_ids_can_be_predicted():
    """Ids are version 7 in form, sorted, and the same in every run."""
    ids: Ids = SequentialIds()
    made = [ids.new() for _ in range(20)]
    assert made == sorted(made)
    assert made[0] == SequentialIds().new() == "00000000-0000-7000-8000-000000000001"
    assert all(UUID(one).version == 7 for one in made)


def test_a_jump_of_the_wall_clock_is_no_time() -> None:
    """`jump` moves `now` both ways; `monotonic` stays."""
    clock = FakeClock()
    start = clock.now()
    clock.jump(-60)
    assert ((clock.now() - start).total_seconds(), clock.monotonic()) == (-60, 0)


async def test_the_next_sleeper_is_known() -> None:
    """`until_next` says when somebody is due, and that nobody is."""
    clock = FakeClock()
    assert clock.until_next() is None
    async with asyncio.TaskGroup() as group:
        group.create_task(clock.sleep(5))
        await clock.wait_for_sleepers()
        clock.advance(2)
        assert clock.until_next() == 3
        clock.advance(3)
