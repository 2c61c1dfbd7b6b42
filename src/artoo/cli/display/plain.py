"""The progress without a terminal, as one line on standard error for each completed step."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from typing import TextIO

from artoo.cli.display.display import Display
from artoo.cli.display.line_wrap import fold_text
from artoo.cli.display.sanitize import one_line
from artoo.cli.display.symbols import FAILED, MATCHED, WAITING, round_line
from artoo.cli.display.task_state import TaskView, command_of
from artoo.contracts.text import shortened
from artoo.tasklog.state import Stage, Subtask

LONGEST = 160
"""Maximum number of characters of a line. A long reason is shortened here, because the result contains all of
it."""

_INTENT = 80
"""Maximum number of characters of a subtask's intent, so that its outcome fits into the same line. An intent may be
a whole request."""


class PlainDisplay(Display):
    """A display that prints each fact once. Facts are rounds, outcomes, corrections, decisions and problems."""

    _tells_questions = True

    def __init__(self, stream: TextIO, view: TaskView) -> None:
        self._stream = stream
        self._view = view
        self._said: set[str] = set()
        self._last = ""
        self._full = False

    def update(self) -> None:
        """Print the facts that were not printed before."""
        for key, line in self._facts():
            if key not in self._said:
                self._said.add(key)
                short = shortened(line, LONGEST)
                # A line that equals the last one is not printed, because it would tell the reader nothing.
                if short == self._last:
                    continue
                self._last = short
                self._say(short)

    def _say(self, line: str) -> None:
        self._write(fold_text(f"artoo: {line}", self._columns()))

    def _write(self, rows: str) -> None:
        if self._full:
            return
        # An encoding error must not stop the task, so characters that the encoding lacks become `?`.
        encoding = self._stream.encoding or "utf-8"
        try:
            self._stream.write(rows.encode(encoding, "replace").decode(encoding) + "\n")
            self._stream.flush()
        except BrokenPipeError:
            # The reader of standard error has ended, which ends the command too.
            raise
        except OSError:
            # If the disk is full (in `2> FILE`), the progress cannot be shown, but the task continues.
            self._full = True

    def _columns(self) -> int:
        """Return the number of columns of the terminal. For a pipe, return a number that is enough for every
        line."""
        return shutil.get_terminal_size().columns if self._stream.isatty() else LONGEST + len("artoo: ")

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Yield every fact so far, each with a unique key."""
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
                said = round_line(present.decided, text, numbers=view.numbers)
                yield f"{where} decided", f"{where}: {said}"
        if view.trouble:
            yield view.trouble, view.trouble
        if view.question and self._tells_questions:
            yield view.question, view.question
        if view.stopping:
            yield "stopping", text("stopping; collecting the results so far")

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
                yield f"{where} {subtask.number} end", f"{head}: {FAILED} {failed}"

    def _answered(self, subtask: Subtask) -> str:
        """Describe a subtask that has ended. A subtask without criteria is judged only together with the whole
        task."""
        text = self._view.text
        if not subtask.judged:
            return f"{WAITING} {text('an answer')}"
        if subtask.open or not subtask.passed:
            return f"{WAITING} {text('an answer, not confirmed')}"
        return f"{MATCHED} {text('its criteria hold')}"
