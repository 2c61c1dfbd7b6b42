"""Start a task from the terminal, show its messages in a display, and ask its questions.

The messages of the task update a `TaskView`, which the display shows.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from artoo.cli.conversation.confirm import Dialogue
from artoo.cli.conversation.model_download import ask_to_download
from artoo.cli.conversation.steering import Steering
from artoo.cli.display.display import Progress, display_for
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.side_channel import Aside
from artoo.cli.display.task_state import TaskView
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ProtocolError
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import FinalResult
from artoo.ports.confirm import Confirm
from artoo.ports.printing import Printed
from artoo.runtime.config.model import Config

if TYPE_CHECKING:  # not imported above, because the module loads every role
    from artoo.cli.conversation.typed_lines import TypedLines
    from artoo.runtime.app.artoo import Artoo


@asynccontextmanager
async def open_runtime(config: Config, aside: Aside, confirm: Confirm | None = None) -> AsyncGenerator[Artoo]:
    """Open the runtime. It reports downloads and output to `aside`, and asks for approval by `confirm`.

    Raises ModelUnreachable if no model server is configured and the user refuses to download the local model.
    """
    from artoo.runtime.app.artoo import Artoo

    await ask_to_download(config)
    async with Artoo(config, on_fetch=aside.fetch, confirm=confirm, on_output=aside.on_output) as runtime:
        yield runtime


@contextmanager
def _said_how_to_go_on(view: TaskView) -> Generator[None]:
    """If the command is cancelled before the task has ended, print how to resume the task."""
    try:
        yield
    except asyncio.CancelledError:
        if view.state.task_id and view.state.result is None:
            sys.stderr.write(f"artoo: {view.text('To resume it: artoo resume {task}', task=view.state.task_id)}\n")
        raise


@dataclass(frozen=True, slots=True)
class Terminal:
    """The objects with which tasks are run on a terminal. `on_message` is called with every message."""

    runtime: Artoo
    interrupts: Interrupts
    aside: Aside
    dialogue: Dialogue | None = None
    on_message: Callable[[Envelope], None] | None = None


async def follow_task(
    terminal: Terminal,
    task: AsyncGenerator[Envelope],
    title: str,
    *,
    progress: Progress = Progress.AUTO,
    stream: TextIO | None = None,
    numbers: bool = False,
    line: TypedLines | None = None,
    on_message: Callable[[Envelope], None] | None = None,
) -> tuple[FinalResult, TaskView]:
    """Show the messages of a task on `stream` (by default standard error) until the task ends. Ctrl-C stops the
    task.

    `title` is shown until the text of the request is known. The display is paused for questions. `on_message`
    replaces the callback in `terminal`. `numbers` has the same meaning as in TaskView. `line` is the input line of
    a conversation, which stays open while the task runs. Without it, the dialogue asks for a message after Ctrl-C.
    Raises ProtocolError if the stream has no result.
    """
    aside, dialogue, on_message = terminal.aside, terminal.dialogue, on_message or terminal.on_message
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
        terminal.runtime.interrupt()

    steering = Steering(terminal.runtime, view, stop)
    hands = steering.asking(dialogue) if line is None else line.listening(steering)
    asking = nullcontext() if dialogue is None else dialogue.over(display, view.show_answer)
    with terminal.interrupts.during(stop, steering.hold), _said_how_to_go_on(view), display.shown(), asking:
        async with hands, aclosing(task) as messages:
            async for envelope in messages:
                view.hear(envelope)
                display.update()
                if view.stopping and isinstance(envelope.payload, UserRequest):
                    # the user asked to stop before the task began, so the task is interrupted now
                    terminal.runtime.interrupt()
                if on_message is not None:
                    on_message(envelope)
    if view.state.result is None:
        raise ProtocolError("the task ended without a result; its log tells where: artoo log list")
    return view.state.result, view
