"""The Auditor as a part of the runtime: who waits for it is let go when nobody is there any more."""

from __future__ import annotations

import asyncio
from pathlib import Path

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.task.auditor import audited


async def test_an_end_that_waits_while_the_auditor_loads_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    """As a loop that ends does, which cancels all tasks, the holder's first."""
    bus = InProcessBus(SystemClock(), UuidIds())
    begun = asyncio.Event()

    async def holder() -> None:
        async with audited(bus, tmp_path / "home", SystemClock()):
            asked = UserRequest(text="wait", project=str(tmp_path), workspace=str(tmp_path))
            bus.port(Role.USER, UuidIds().new()).publish(asked)
            begun.set()
            await asyncio.Event().wait()

    before = asyncio.all_tasks()
    holding = asyncio.create_task(holder())
    await begun.wait()
    await asyncio.sleep(0)
    holding.cancel()
    for task in asyncio.all_tasks() - before - {holding}:
        task.cancel()
    done, _ = await asyncio.wait({holding}, timeout=20)
    holding.cancel()
    assert done
