"""Law 1's question on a terminal: everything is shown, and only a clear yes is one."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TextIO

from artoo.cli.printable import one_line, printable
from artoo.cli.text import Text, in_language
from artoo.contracts.confirmation import ConfirmationRequest, Consent

_ANSWERS: dict[str, Consent] = {
    **dict.fromkeys(("o", "once", "y", "yes", "一次", "一", "是"), Consent.ONCE),
    **dict.fromkeys(("t", "task", "本任务", "任务"), Consent.TASK),
    **dict.fromkeys(("", "n", "no", "否", "不"), Consent.NO),
}
LONGEST_ANSWER = 4_096


class Pausing(Protocol):
    """A display that can make room."""

    def paused(self) -> AbstractContextManager[None]:
        """Nothing is drawn while the block runs."""
        ...


class _Still:
    """Nothing is drawn anyway."""

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()


class Dialogue:
    """Asks on `terminal`, reads from `keyboard`; both are terminals. Implements `ports.confirm.Confirm`."""

    def __init__(self, keyboard: TextIO, terminal: TextIO) -> None:
        self._keyboard = keyboard
        self._terminal = terminal
        self._display: Pausing = _Still()
        self._answer: asyncio.Future[str] | None = None

    @contextmanager
    def over(self, display: Pausing) -> Generator[None]:
        """While the block runs, questions pause this display."""
        self._display = display
        try:
            yield
        finally:
            self._display = _Still()

    def refuse(self) -> None:
        """Answers an open question with no: the person wants to stop."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result("no")

    async def __call__(self, request: ConfirmationRequest) -> Consent:
        """The person's answer; the end of input and an empty line are no."""
        text = in_language(request.language)
        with self._display.paused():
            self._say(question_text(request, text))
            termios.tcflush(self._keyboard, termios.TCIFLUSH)  # what was typed before was no answer to this
            while True:
                self._say(text.ask_prompt)
                said = await self._line()
                consent = _ANSWERS.get(said.strip().casefold()) if said else Consent.NO
                if consent is not None:
                    self._say(("" if said.endswith("\n") else "\n") + text.answered[consent.value] + "\n")
                    return consent

    def _say(self, text: str) -> None:
        encoding = self._terminal.encoding or "ascii"
        self._terminal.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._terminal.flush()

    async def _line(self) -> str:
        """One line from the keyboard, without blocking the loop; empty at the end of input."""
        loop = asyncio.get_running_loop()
        self._answer = answer = loop.create_future()
        descriptor = self._keyboard.fileno()

        def read() -> None:
            loop.remove_reader(descriptor)
            if not answer.done():
                answer.set_result(_read_line(descriptor))

        loop.add_reader(descriptor, read)
        try:
            return await answer
        finally:
            loop.remove_reader(descriptor)
            self._answer = None


def dialogue() -> Dialogue | None:
    """The dialogue on this process's terminal; None without one: then the answer to every question is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return Dialogue(sys.stdin, sys.stderr)


def question_text(request: ConfirmationRequest, text: Text) -> str:
    """The whole question, every line of it: what is asked about is never shortened."""
    lines = [f"? {one_line(request.title)}"]
    if request.source is not None:
        lines.append("  " + text.ask_source.format(source=one_line(request.source)))
    lines += [f"  {printable(line)}" for line in request.details]
    return "\n".join(lines) + "\n"


def _read_line(descriptor: int) -> str:
    """What a terminal in line mode hands over: at most one line."""
    try:
        return os.read(descriptor, LONGEST_ANSWER).decode("utf-8", "replace")
    except OSError:  # the terminal is gone
        return ""
