"""The input line of a conversation that stays open while a task runs: what is typed steers the task."""

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
from artoo.cli.display.symbols import Marks, cost_line, marks_for
from artoo.cli.display.task_state import TaskView


class TalkDisplay(PlainDisplay):
    """Lines above an input line: what a model says as it comes, then what PlainDisplay prints."""

    def __init__(self, view: TaskView, marks: Marks) -> None:
        super().__init__(sys.stderr, view, marks)
        self._printed = 0
        self._turn = 0

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Take the input line away while the block runs."""
        return in_terminal()

    def update(self) -> None:
        """Print whole lines of the model's words, then the facts that were not printed before."""
        self._stream = sys.stderr  # patched while the line is open
        for line in self._new_lines():
            self._say(line)
        super().update()

    def _new_lines(self) -> Iterator[str]:
        state = self._view.state
        if state.model_calls != self._turn:  # a turn ended, and its words with it
            self._turn, self._printed = state.model_calls, 0
        whole = state.words.rfind("\n") + 1  # the rest of a last line is in the answer that is printed at the end
        new = state.words[max(0, self._printed - state.words_cut) : whole]
        yield from (line for line in printable(new.expandtabs()).splitlines() if line.strip())
        self._printed = max(self._printed, state.words_cut + whole)


class TypedLines:
    """Reads lines with `prompt` while a task runs. Implements steering.InputLine."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._view = TaskView()
        self._marks = marks_for(sys.stdout.encoding)

    def display(self, view: TaskView) -> TalkDisplay:
        """See InputLine."""
        self._view = view
        return TalkDisplay(view, self._marks)

    @asynccontextmanager
    async def listening(self, steering: Steering) -> AsyncGenerator[None]:
        """See InputLine."""
        with patch_stdout(raw=True):
            async with steering.typed(self._read(steering)):
                yield

    async def _read(self, steering: Steering) -> None:
        """Pass lines on. Ctrl-C interrupts the turn; once more, or Ctrl-D, ends the task."""
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
        cost = cost_line(view.cost, self._marks, view.text, rounds=0)
        return f" {doing}{self._marks.dot}{view.text('type to steer; Ctrl-C interrupts')}{self._marks.dot}{cost}"
