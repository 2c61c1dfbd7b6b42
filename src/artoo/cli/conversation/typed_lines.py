"""The input line that stays open while a task runs, and sends each typed line to the task."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.patch_stdout import patch_stdout

from artoo.cli.conversation.prompt import Prompt
from artoo.cli.conversation.steering import Steering
from artoo.cli.display.plain import PlainDisplay
from artoo.cli.display.sanitize import printable
from artoo.cli.display.symbols import DOT, cost_line
from artoo.cli.display.task_state import TaskView


class TalkDisplay(PlainDisplay):
    """A display above the input line, which prints the model's text as it comes, and the lines of PlainDisplay."""

    def __init__(self, view: TaskView) -> None:
        super().__init__(sys.stderr, view)
        self._printed = 0
        self._turn = 0

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Remove the input line during the block."""
        return in_terminal()

    def update(self) -> None:
        """Print complete new lines of the model's text, and then new facts."""
        # `patch_stdout` replaces the stream while the input line is open.
        self._stream = sys.stderr
        for line in self._new_lines():
            self._say(line)
        super().update()

    def _new_lines(self) -> Iterator[str]:
        state = self._view.state
        # A new turn has begun, so its text is printed from the start.
        if state.model_calls != self._turn:
            self._turn, self._printed = state.model_calls, 0
        # The rest of an unfinished line is in the answer that is printed at the end.
        whole = state.words.rfind("\n") + 1
        new = state.words[max(0, self._printed - state.words_cut) : whole]
        yield from (line for line in printable(new.expandtabs()).splitlines() if line.strip())
        self._printed = max(self._printed, state.words_cut + whole)


class TypedLines:
    """A reader of lines from `prompt` during a task."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._view = TaskView()

    def display(self, view: TaskView) -> TalkDisplay:
        """Return the display that works with an open input line."""
        self._view = view
        return TalkDisplay(view)

    @asynccontextmanager
    async def listening(self, steering: Steering) -> AsyncGenerator[None]:
        """Read lines and send them to the task during the block."""
        with patch_stdout(raw=True):
            async with steering.typed(self._read(steering)):
                yield

    async def _read(self, steering: Steering) -> None:
        """Send lines to the task. Ctrl-C or Ctrl-D interrupts the turn, and a second time ends the task."""
        while True:
            line = await self._prompt.read_beside(self._status)
            if line is None:
                if not steering.hold():
                    steering.stop()
                    return
            elif line.strip() or steering.is_held:
                steering.send(line.strip())

    def _status(self) -> str:
        view = self._view
        doing = view.question or view.phase or view.text("choosing a step")
        cost = cost_line(view.cost, view.text, rounds=0)
        return f" {doing}{DOT}{view.text('type to steer; Ctrl-C interrupts')}{DOT}{cost}"
