"""Renew the lease of a claim during work, and cancel the work if the claim is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from artoo.agents.storage.monotonic_clock import RENEW_SECONDS
from artoo.contracts.errors import ArtooError
from artoo.ports.clock import Clock

T = TypeVar("T")


async def held(work: Coroutine[Any, Any, T], renew: Callable[[], Awaitable[None]], clock: Clock) -> T:
    """Run `work`, and renew its claim meanwhile. Returns the result of the work, or raises its error.

    If `renew` raises (ClaimLost), the work is cancelled and that error is raised.
    """
    results: list[T] = []
    errors: list[Exception] = []

    async def do() -> None:
        try:
            results.append(await work)
        except Exception as error:  # noqa: BLE001 - raised again below, outside of the group that would wrap it
            errors.append(error)

    async def keep(working: asyncio.Task[None]) -> None:
        try:
            while True:
                await clock.sleep(RENEW_SECONDS)
                await renew()
        except ArtooError as error:
            errors.append(error)
            working.cancel()

    async with asyncio.TaskGroup() as group:
        working = group.create_task(do())
        keeping = group.create_task(keep(working))
        await asyncio.wait([working])
        keeping.cancel()
    if errors:
        raise errors[0]
    return results[0]
