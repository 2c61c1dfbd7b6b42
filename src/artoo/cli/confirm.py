"""Law 1's question on a terminal: everything is shown, and only a clear yes is one."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TextIO

from artoo.cli.display import is_plain
from artoo.cli.keyboard import Keyboard
from artoo.cli.paint import Paint
from artoo.cli.printable import one_line, printable
from artoo.cli.screen import Screen
from artoo.cli.text import Text, in_language
from artoo.contracts.confirmation import Choice, ConfirmationRequest, Consent
from artoo.ports.desk import Given

_ANSWERS: dict[str, Consent] = {
    **dict.fromkeys(("o", "once", "y", "yes", "一次", "一", "是"), Consent.ONCE),
    **dict.fromkeys(("t", "task", "本任务", "任务"), Consent.TASK),
    **dict.fromkeys(("", "n", "no", "否", "不"), Consent.NO),
}


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
        plain = is_plain(terminal, os.environ)
        redraws = os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown")
        self._keyboard = Keyboard(keyboard)
        self._screen = Screen(terminal, Paint(colours=not plain), redraws=redraws)
        self._display: Pausing = _Still()

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
        self._keyboard.give_up()

    def answered_elsewhere(self, request: ConfirmationRequest, given: Given) -> None:
        """Says under the question that it is settled: another window was quicker."""
        text = in_language(request.language)
        said = given.said.value if isinstance(given.said, Consent) else Consent.ONCE.value
        with self._display.paused():
            self._screen.say(f"\n{text.answered_elsewhere.format(said=text.answered[said], where=given.via)}\n")

    async def __call__(self, request: ConfirmationRequest) -> Consent | Choice:
        """The person's answer; the end of input and an empty line are no, and keep what a review is about."""
        with self._display.paused():
            self._keyboard.begin()
            if request.review is not None:
                return await self._reviewed(request)
            return await self._answered(request)

    async def _reviewed(self, request: ConfirmationRequest) -> Consent | Choice:
        from artoo.cli.places import Here
        from artoo.cli.review.asking import Asking

        assert request.review is not None
        return await Asking(request.review, request.language, self._screen, self._keyboard, Here()).ask()

    async def _answered(self, request: ConfirmationRequest) -> Consent:
        text = in_language(request.language)
        self._screen.say(question_text(request, text))
        self._keyboard.forget()
        while True:
            self._screen.say(text.ask_prompt)
            said = await self._keyboard.read()
            consent = _ANSWERS.get(said.strip().casefold()) if said else Consent.NO
            if consent is not None:
                self._screen.say(("" if said.endswith("\n") else "\n") + text.answered[consent.value] + "\n")
                return consent


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
