"""The display without a terminal: a sparse line on standard error whenever something was settled."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import TextIO

from artoo.cli.display.line_wrap import fold_text
from artoo.cli.display.sanitize import one_line
from artoo.cli.display.symbols import Marks, round_line
from artoo.cli.display.task_state import TaskView, command_of
from artoo.contracts.shortened import shortened
from artoo.tasklog.state import Stage, Subtask

LONGEST = 160
"""Characters of a line; a reason may be long, and the whole of it is in the result."""

_INTENT = 80
"""Of these, what names a subtask: a small model's is the whole request, and what became of it stands behind."""


class PlainDisplay:
    """Prints each settled fact once: rounds, outcomes, corrections, decisions, trouble."""

    def __init__(self, stream: TextIO, view: TaskView, marks: Marks) -> None:
        self._stream = stream
        self._view = view
        self._marks = marks
        self._said: set[str] = set()
        self._last = ""
        self._full = False

    @contextmanager
    def shown(self) -> Generator[None]:
        """Nothing needs to be restored."""
        yield

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Lines that come meanwhile do no harm."""
        return nullcontext()

    def update(self) -> None:
        """Says what was not said before."""
        for key, line in self._facts():
            if key not in self._said:
                self._said.add(key)
                short = shortened(line, LONGEST)
                if short == self._last:  # the same command once more: nothing that a reader could tell apart
                    continue
                self._last = short
                self._say(short)

    def _say(self, line: str) -> None:
        if self._full:
            return
        encoding = self._stream.encoding or "ascii"
        safe = line.encode(encoding, "replace").decode(encoding)
        try:
            self._stream.write(fold_text(f"artoo: {safe}", self._columns()) + "\n")
            self._stream.flush()
        except BrokenPipeError:  # whoever asked has gone
            raise
        except OSError:  # the disk under `2> FILE` is full: nobody can be told how far the task is, but it goes on
            self._full = True

    def _columns(self) -> int:
        """Of a terminal; what reads from a pipe wants whole lines."""
        return shutil.get_terminal_size().columns if self._stream.isatty() else LONGEST + len("artoo: ")

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Everything that is settled so far, each with a key of its own."""
        view, text = self._view, self._view.text
        if view.fetch.running:
            yield view.fetch.line, view.fetch.line
        for present in view.rounds:
            where = text("round {number}", number=present.number)
            if present.subtasks:
                begun = text.count("{count} subtask", "{count} subtasks", len(present.subtasks))
                yield f"{where} begin", f"{where}: {begun}"
            yield from self._subtask_facts(where, present.subtasks.values())
            if present.decided is not None:
                said = round_line(present.decided, self._marks, text, numbers=view.numbers)
                yield f"{where} decided", f"{where}: {said}"
        if view.trouble:
            yield view.trouble, view.trouble
        if view.question:
            yield view.question, view.question
        if view.stopping:
            yield "stopping", text("stopping; what was reached is being put together")

    def _subtask_facts(self, where: str, subtasks: Iterable[Subtask]) -> Iterator[tuple[str, str]]:
        text = self._view.text
        for subtask in subtasks:
            head = f"{where} [{subtask.number}] {shortened(one_line(subtask.intent), _INTENT)}"
            if subtask.running is not None:
                yield (
                    f"{where} {subtask.number} call {subtask.started}",
                    f"{head}: {text('runs {command}', command=command_of(subtask))}",
                )
            if subtask.attempt > 1 and subtask.at_work:
                yield (
                    f"{where} {subtask.number} {subtask.attempt}",
                    f"{head}: {text('corrected: {reason}', reason=one_line(subtask.reason))}",
                )
            elif subtask.stage is Stage.MATCHED:
                yield f"{where} {subtask.number} end", f"{head}: {self._answered(subtask)}"
            elif subtask.stage is Stage.FAILED:
                failed = text("failed: {reason}", reason=one_line(subtask.reason))
                yield f"{where} {subtask.number} end", f"{head}: {self._marks.failed} {failed}"

    def _answered(self, subtask: Subtask) -> str:
        """What is known of a part that ended well: one without criteria of its own is judged with the whole."""
        text = self._view.text
        if not subtask.judged:
            return f"{self._marks.waiting} {text('an answer')}"
        if subtask.open or not subtask.passed:
            return f"{self._marks.waiting} {text('an answer, not confirmed')}"
        return f"{self._marks.matched} {text('its criteria hold')}"
