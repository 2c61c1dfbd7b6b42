"""One task between the stream, the display and the person."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from typing import cast

import pytest
from cli_standin import StandIn

from artoo.cli.display.display import Progress
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.run_task import Terminal, follow_task
from artoo.cli.display.side_channel import Aside
from artoo.cli.display.task_state import TaskView
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ProtocolError
from artoo.contracts.request import Turn
from artoo.contracts.solution import FinalResult, StoppedBy
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.app.run_options import RunOptions


class InterruptedEarly(StandIn):
    """Ctrl-C arrives while the task is still being opened."""

    async def stream(
        self, text: str, *, history: Sequence[Turn] = (), options: RunOptions | None = None
    ) -> AsyncGenerator[Envelope]:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.01)
        async for envelope in super().stream(text, history=history, options=options):
            yield envelope


async def follow(runtime: StandIn, progress: Progress) -> tuple[FinalResult, TaskView]:
    """Play the stand-in's story as a command does."""
    with Interrupts() as interrupts:
        terminal = Terminal(cast("Artoo", runtime), interrupts, Aside())
        return await follow_task(terminal, runtime.stream("wait"), "wait", progress=progress, stream=io.StringIO())


async def test_an_interrupt_before_the_task_began_is_not_lost() -> None:
    """The task hears of it as soon as it can."""
    result, view = await follow(InterruptedEarly("endless"), Progress.PLAIN)
    assert result.stopped_by is StoppedBy.INTERRUPTED
    assert view.stopping


async def test_a_stream_without_an_end_is_an_error() -> None:
    """A result is never made up."""
    with pytest.raises(ProtocolError, match="without a result"):
        await follow(StandIn("endings_missing"), Progress.NONE)
