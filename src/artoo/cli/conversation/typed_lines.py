"""The input line that stays open while a task runs, and sends each typed line to the task."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.patch_stdout import patch_stdout

from artoo.cli.conversation.prompt import Prompt
from artoo.cli.conversation.steering import INTERRUPTED, Steering
from artoo.cli.display.colors import is_plain
from artoo.cli.display.line_wrap import fold_text
from artoo.cli.display.markdown import split_complete
from artoo.cli.display.plain import PlainDisplay
from artoo.cli.display.sanitize import printable
from artoo.cli.display.symbols import DOT, cost_line
from artoo.cli.display.task_state import TaskView

GROWING_LINES = 4
"""The last lines of an incomplete block that are shown above the input line."""


class TalkDisplay(PlainDisplay):
    """A display above the input line. It prints the model's text as it arrives, and the same lines as PlainDisplay.

    A block of the text (a paragraph, an item of a list, a table) is printed when it is complete, because its layout
    cannot change any more. `growing` is the block after it, which TypedLines shows as it is.
    """

    _tells_questions = False  # the dialogue on this terminal asks them

    def __init__(self, view: TaskView) -> None:
        super().__init__(sys.stderr, view)
        self._colours = not is_plain(sys.stdout, os.environ)
        self._turn: int = 0
        self._heard = ""
        self._printed = 0

    @property
    def growing(self) -> str:
        """Return the text of this turn that is not printed yet."""
        return self._heard[self._printed :]

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Remove the input line while the block runs."""
        return in_terminal()

    def echo(self, line: str) -> None:
        """Print a line that the user typed, because the input line is erased."""
        if line.strip():
            self._write(fold_text(f"› {printable(line.strip())}", self._columns()))

    def update(self) -> None:
        """Print complete new blocks of the model's text, and then new facts."""
        # while the input line is open, `patch_stdout` replaces the stream
        self._stream = sys.stderr
        self._hear()
        super().update()

    def _hear(self) -> None:
        """Print the model's text so far. The text of parallel subtasks would be mixed, so it is not printed."""
        state = self._view.state
        if state.model_calls != self._turn:
            self._print(self.growing)
            self._view.answer_shown = self._heard or self._view.answer_shown
            self._turn, self._heard, self._printed = state.model_calls, "", 0
        present = state.round
        if present is not None and sum(one.at_work for one in present.subtasks.values()) > 1:
            return
        self._heard += state.words[max(0, len(self._heard) - state.words_cut) :]
        complete, _ = split_complete(self.growing)
        self._print(complete)
        self._printed += len(complete)

    def _print(self, text: str) -> None:
        if text.strip():
            # A blank line after the last block separates it from the next one.
            apart = "\n" if not text.rpartition("\n")[0].rpartition("\n")[2].strip() and "\n" in text else ""
            self._write(self._view.laid_out(text, self._columns(), colours=self._colours) + apart)


class TypedLines:
    """Reads lines from `prompt` while a task runs."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._view = TaskView()
        self._display = TalkDisplay(self._view)
        self._is_held: Callable[[], bool] = lambda: False

    def display(self, view: TaskView) -> TalkDisplay:
        """Return the display that is used while the input line is open."""
        self._view, self._display = view, TalkDisplay(view)
        return self._display

    @asynccontextmanager
    async def listening(self, steering: Steering) -> AsyncGenerator[None]:
        """While the block runs, read lines and send them to the task."""
        with patch_stdout(raw=True):
            async with steering.typed(self._read(steering)):
                yield

    async def _read(self, steering: Steering) -> None:
        """Read lines and send them to the task. Ctrl-C or Ctrl-D interrupts the current turn. A second one ends the
        task."""
        self._is_held = lambda: steering.is_held
        while True:
            line = await self._prompt.read_beside(self._growing, self._status)
            if line is None:
                if not steering.hold():
                    steering.stop()
                    return
            elif line.strip() or steering.is_held:
                self._display.echo(line)
                steering.send(line.strip())

    def _growing(self) -> list[str]:
        """Return the last lines of the block that the model is writing."""
        return printable(self._display.growing.expandtabs()).splitlines()[-GROWING_LINES:]

    def _status(self) -> str:
        view = self._view
        if self._is_held():
            return f" {view.text(INTERRUPTED)}"
        doing = view.question or view.phase or view.text("checking" if view.checking else "choosing a step")
        cost = cost_line(view.cost, view.text, rounds=0)
        return f" {doing}{DOT}{view.text('type to steer; Ctrl-C interrupts')}{DOT}{cost}"
