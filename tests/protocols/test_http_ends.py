"""A server that is stopped says nothing of it: Ctrl-C is how it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette

from artoo.protocols.http import listening_at, serve_on


def test_a_server_that_is_cancelled_ends_its_application_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The application is told, and ends before the loop does."""
    told: list[str] = []
    begun = asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        told.append("begins")
        begun.set()
        try:
            yield
        finally:
            told.append("ends")

    async def stopped() -> None:
        serving = asyncio.create_task(serve_on(listening_at(0), Starlette(lifespan=lifespan)))
        await begun.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        told.append("stopped")

    with caplog.at_level(logging.WARNING):
        asyncio.run(stopped())
    assert told == ["begins", "ends", "stopped"]
    assert not caplog.records
