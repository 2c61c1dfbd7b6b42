"""A consumer that waits for the end of a burst is woken once, and sooner when somebody is in a hurry."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from artoo.bus.spool import SpoolingTap
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import StreamClosed
from artoo.contracts.memory import MemoryRead
from artoo.contracts.roles import Role
from artoo.ports.spool import Lull

NEVER = Lull(first=3_600.0, quiet=3_600.0, longest=7_200.0, enough=3)
AT_ONCE = Lull(first=0.0, quiet=0.0, longest=7_200.0, enough=3)


def said(number: int = 0) -> Envelope:
    return Envelope(
        str(number), Role.USER, "t", datetime.now(UTC), MemoryRead(space="tool:glob", entity="env:local")
    )


async def test_a_burst_wakes_its_consumer_once_and_no_sooner(tmp_path: Path) -> None:
    """What comes one after the other is taken together, when nothing more came."""
    with SpoolingTap(tmp_path) as tap:
        waiting = asyncio.ensure_future(tap.wait(AT_ONCE._replace(enough=1_000)))
        for number in range(20):
            tap(said(number))
            tap(said(number))
            await asyncio.sleep(0)
            assert not waiting.done()
        await waiting
        assert len(tap.take(100)) == 40


async def test_a_burst_without_an_end_is_over_when_enough_is_there_or_time_is_up(tmp_path: Path) -> None:
    """A consumer is not kept from its work for as long as others speak."""
    for lull in (AT_ONCE, AT_ONCE._replace(enough=1_000, longest=0.0)):
        with SpoolingTap(tmp_path) as tap:
            waiting = asyncio.ensure_future(tap.wait(lull))
            for _ in range(6):
                await asyncio.sleep(0)
                tap(said())
            assert waiting.done()
            tap.forget()


async def test_who_is_in_a_hurry_waits_for_no_lull(tmp_path: Path) -> None:
    """`hurry` wakes whoever waits for the end of a burst, also of what was there before; else it does nothing."""
    with SpoolingTap(tmp_path) as tap:
        tap.hurry()
        for before in (True, False):
            if before:
                tap(said())
            waiting = asyncio.ensure_future(tap.wait(NEVER))
            await asyncio.sleep(0)
            if not before:
                tap.hurry()
                await asyncio.sleep(0)
                tap(said())
            await asyncio.sleep(0)
            assert not waiting.done()
            tap.hurry()
            await waiting
            assert len(tap.take(9)) == 1


async def test_the_end_and_a_cancelled_wait_leave_no_timer(tmp_path: Path) -> None:
    """What is there at the end is taken at once; a consumer that was cancelled can wait again."""
    with SpoolingTap(tmp_path) as tap:
        waiting = asyncio.ensure_future(tap.wait(NEVER))
        await asyncio.sleep(0)
        tap(said())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        waiting = asyncio.ensure_future(tap.wait(NEVER))
        await asyncio.sleep(0)
        tap.finish()
        await waiting
        await tap.wait(NEVER)
        assert len(tap.take(9)) == 1
        with pytest.raises(StreamClosed):
            await tap.wait(NEVER)
