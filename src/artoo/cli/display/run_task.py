"""Runs one task from the terminal: the stream goes into the view, the view onto the display."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Protocol, TextIO, runtime_checkable

from artoo.cli.conversation.confirm import Dialogue
from artoo.cli.conversation.steering import InputLine, Steering
from artoo.cli.display.display import Progress, display_for
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.side_channel import Aside
from artoo.cli.display.task_state import TaskView
from artoo.contracts.audit import AuditReport
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ProtocolError
from artoo.contracts.request import Turn, UserRequest
from artoo.contracts.solution import FinalResult
from artoo.ports.printing import Printed
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.config.model import Config


class Runtime(Protocol):
    """What the command line needs of a runtime."""

    def stream(
        self, text: str, *, history: Sequence[Turn] = (), options: RunOptions | None = None
    ) -> AsyncIterator[Envelope]:
        """All messages of the task; the last one is its FinalResult."""
        ...

    def interrupt(self) -> None:
        """Asks the running task to stop; it ends with a FinalResult that says so."""
        ...


@runtime_checkable
class AuditedRuntime(Protocol):
    """A runtime with an Auditor."""

    async def audit(self) -> AuditReport:
        """What it has seen since its last report."""
        ...


@runtime_checkable
class DreamingRuntime(Protocol):
    """A runtime with memory."""

    async def dream_briefly(self) -> None:
        """Lets memory tidy up, 200 ms at most."""
        ...


class ResumingRuntime(Runtime, Protocol):
    """A runtime that takes up tasks of other processes."""

    def stream_resumed(self, task_id: str | None = None) -> AsyncIterator[Envelope]:
        """What such a task said before, then all that it says from now on."""
        ...


def open_runtime(
    config: Config, aside: Aside, confirm: Dialogue | None = None
) -> AbstractAsyncContextManager[ResumingRuntime]:
    """The real runtime, which tells `aside` what is no message, and asks with `confirm`."""
    from artoo.runtime.app.artoo import Artoo

    return Artoo(config, on_fetch=aside.fetch, confirm=confirm, on_output=aside.on_output)


@asynccontextmanager
async def _closing(messages: AsyncIterator[Envelope]) -> AsyncGenerator[AsyncIterator[Envelope]]:
    """Ends a stream that is left early here and now, in the task that began it, not when it is collected."""
    try:
        yield messages
    finally:
        if isinstance(messages, AsyncGenerator):
            await messages.aclose()


@contextmanager
def _said_how_to_go_on(view: TaskView) -> Generator[None]:
    """Who leaves a task that has begun is told how to take it up again."""
    try:
        yield
    except asyncio.CancelledError:
        if view.state.task_id and view.state.result is None:
            sys.stderr.write(
                f"artoo: {view.text('To go on with it: artoo resume {task}', task=view.state.task_id)}\n"
            )
        raise


async def run_task(
    runtime: Runtime,
    request: str,
    *,
    interrupts: Interrupts,
    aside: Aside,
    options: RunOptions,
    history: Sequence[Turn] = (),
    progress: Progress = Progress.AUTO,
    on_message: Callable[[Envelope], None] | None = None,
    stream: TextIO | None = None,
    dialogue: Dialogue | None = None,
    numbers: bool = False,
    line: InputLine | None = None,
) -> tuple[FinalResult, TaskView]:
    """Runs a request to its end, shown as in `follow_task`."""
    return await follow_task(
        runtime,
        runtime.stream(request, history=history, options=options),
        request,
        interrupts=interrupts,
        aside=aside,
        progress=progress,
        on_message=on_message,
        stream=stream,
        dialogue=dialogue,
        numbers=numbers,
        line=line,
    )


async def follow_task(
    runtime: Runtime,
    task: AsyncIterator[Envelope],
    title: str,
    *,
    interrupts: Interrupts,
    aside: Aside,
    progress: Progress = Progress.AUTO,
    on_message: Callable[[Envelope], None] | None = None,
    stream: TextIO | None = None,
    dialogue: Dialogue | None = None,
    numbers: bool = False,
    line: InputLine | None = None,
) -> tuple[FinalResult, TaskView]:
    """Shows the messages of a task on `stream` (standard error) to their end, and lets Ctrl-C stop it.

    `title` is shown until the request is known. `dialogue` is what the runtime asks with; questions pause the
    display. `on_message` sees every envelope. `numbers` as in TaskView. `line` is the input line of a conversation,
    which stays open while the task runs; without one, Ctrl-C asks `dialogue` for a message. Raises ProtocolError
    when the stream ends without a result.
    """
    view = TaskView(fetch=aside.fetch, numbers=numbers, answered=dialogue is not None)
    view.begin(title)
    display = display_for(progress, stream or sys.stderr, view) if line is None else line.display(view)
    aside.fetch.changed = display.update

    def printed(said: Printed) -> None:
        view.hear_printed(said)
        display.update()

    aside.printed = printed

    def stop() -> None:
        view.stop()
        display.update()
        if dialogue is not None:
            dialogue.refuse()
        runtime.interrupt()

    steering = Steering(runtime, view, stop)
    hands = steering.asking(dialogue) if line is None else line.listening(steering)
    asking = nullcontext() if dialogue is None else dialogue.over(display)
    with interrupts.during(stop, steering.hold), _said_how_to_go_on(view), display.shown(), asking:
        async with hands, _closing(task) as messages:
            async for envelope in messages:
                view.hear(envelope)
                display.update()
                if view.stopping and isinstance(envelope.payload, UserRequest):
                    runtime.interrupt()  # asked before there was a task that could hear it
                if on_message is not None:
                    on_message(envelope)
    if view.state.result is None:
        raise ProtocolError("the task ended without a result; its log tells where: artoo log list")
    return view.state.result, view
