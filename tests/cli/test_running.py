"""One task between the stream, the display and the person."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator, Sequence

import pytest
from cli_standin import StandIn

from artoo.cli.display.display import Progress
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.run_task import run_task
from artoo.cli.display.side_channel import Aside
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ProtocolError
from artoo.contracts.request import Turn
from artoo.contracts.solution import StoppedBy
from artoo.runtime.app.run_options import RunOptions


class InterruptedEarly(StandIn):
    """Ctrl-C arrives while the task is still being opened."""

    async def stream(
        self, text: str, *, history: Sequence[Turn] = (), options: RunOptions | None = None
    ) -> AsyncIterator[Envelope]:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.01)
        async for envelope in super().stream(text, history=history, options=options):
            yield envelope


async def test_an_interrupt_before_the_task_began_is_not_lost() -> None:
    """The task hears of it as soon as it can."""
    with Interrupts() as interrupts:
        result, view = await run_task(
            InterruptedEarly("endless"),
            "wait",
            interrupts=interrupts,
            aside=Aside(),
            options=RunOptions(),
            progress=Progress.PLAIN,
            stream=io.StringIO(),
        )
    assert result.stopped_by is StoppedBy.INTERRUPTED
    assert view.stopping


async def test_a_stream_without_an_end_is_an_error() -> None:
    """A result is never made up."""
    with Interrupts() as interrupts, pytest.raises(ProtocolError, match="without a result"):
        await run_task(
            StandIn("endings_missing"),
            "wait",
            interrupts=interrupts,
            aside=Aside(),
            options=RunOptions(),
            progress=Progress.NONE,
        )
