"""Tasks that are begun from the page: as many as may run at once, and none keeps the page from closing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.request import Turn
from artoo.runtime.app.run_options import RunOptions
from artoo.web.starting import MOST_AT_ONCE, Open, Starter


class Silent:
    """A runtime whose tasks end at once and without a word."""

    async def stream(
        self, text: str, *, history: Sequence[Turn] = (), options: RunOptions | None = None
    ) -> AsyncIterator[Envelope]:
        """Nothing."""
        for _ in ():
            yield _

    def interrupt(self) -> None:
        """Nothing runs."""


async def test_no_more_tasks_begin_than_may_run(caplog: pytest.LogCaptureFixture) -> None:
    """Those that wait for the runtime to be opened count; a task that never began is an error and no broken page;
    and a runtime that cannot be closed is named and does not keep the page open."""
    opening = asyncio.Event()

    @asynccontextmanager
    async def runtime(heard: object) -> AsyncGenerator[Silent]:
        await opening.wait()
        yield Silent()
        raise OSError("no room left")

    starter = Starter(cast("Open", runtime))
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(starter.run())
        begun = [asyncio.ensure_future(starter.start(f"{number}", RunOptions())) for number in range(MOST_AT_ONCE)]
        await asyncio.sleep(0)
        with pytest.raises(ConfigurationError, match="run already"):
            await starter.start("one too many", RunOptions())
        opening.set()
        ended = await asyncio.gather(*begun, return_exceptions=True)
        assert all(isinstance(each, ConfigurationError) for each in ended), ended
        starter.close()
        with pytest.raises(ConfigurationError, match="is being closed"):
            await starter.start("too late", RunOptions())
    assert "could not be closed: no room left" in caplog.text
