"""Law 1's question on a terminal: everything is shown, and only a clear yes is one.

What is longer than the screen is shown page by page, and what it is about stands once more right above the prompt:
the last lines of a long text are whatever its writer wants to be read there.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import Protocol, TextIO

from artoo.cli.display.colors import Paint
from artoo.cli.display.display import is_plain
from artoo.cli.display.keyboard import Keyboard
from artoo.cli.display.sanitize import one_line, printable
from artoo.cli.display.screen import Screen
from artoo.cli.review.pager import fits, page
from artoo.contracts.confirmation import Choice, ConfirmationRequest, Consent, Words
from artoo.runtime.approvals.prompt_store import Given
from artoo.words.catalogue import in_language
from artoo.words.question import parts

SAID = {
    Consent.ONCE: "allowed once",
    Consent.TASK: "allowed for this task",
    Consent.NO: "not allowed",
    Consent.KEEP: "kept for later",
    Consent.DISCARD: "discarded",
}
"""What is shown of an answer."""

_ANSWERS: dict[str, Consent] = {
    **dict.fromkeys(("o", "once", "y", "yes", "一次", "一", "是"), Consent.ONCE),
    **dict.fromkeys(("t", "task", "本任务", "任务"), Consent.TASK),
    **dict.fromkeys(("", "n", "no", "否", "不"), Consent.NO),
}


class Pausing(Protocol):
    """A display that can make room."""

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Nothing is drawn and no line is read while the block runs."""
        ...


class _Still:
    """Nothing is drawn anyway."""

    def paused(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class Dialogue:
    """Asks on `terminal`, reads from `keyboard`; both are terminals. Implements `ports.confirm.Confirm`."""

    def __init__(self, keyboard: TextIO, terminal: TextIO) -> None:
        plain = is_plain(terminal, os.environ)
        redraws = os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown")
        self._keyboard = Keyboard(keyboard)
        self._screen = Screen(terminal, Paint(colours=not plain), redraws=redraws)
        self._display: Pausing = _Still()
        self._turn = asyncio.Lock()

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

    async def message(self, question: str) -> str | None:
        """Return the line that the user types at `question`; None at the end of input or when they want to stop."""
        async with self._turn, self._display.paused():
            self._keyboard.begin()
            self._screen.say(question)
            said = None
            try:
                said = await self._keyboard.read()
            finally:
                if not said:  # no Enter has ended the line of the question
                    self._screen.say("\n")
        return said.strip() if said else None

    def answered_elsewhere(self, request: ConfirmationRequest, given: Given) -> None:
        """Says under the question that it is settled: another window was quicker."""
        text = in_language(request.language)
        if isinstance(given.said, Words):
            said = given.said.text
        else:
            said = text(SAID[given.said if isinstance(given.said, Consent) else Consent.ONCE])
        self._screen.say(f"\n{text('answered in the {where}: {said}', said=said, where=given.via)}\n")

    async def __call__(self, request: ConfirmationRequest) -> Consent | Choice | Words:
        """The person's answer; the end of input and an empty line are no, and keep what a review is about."""
        async with self._turn, self._display.paused():
            self._keyboard.begin()
            if request.wants != "consent":
                return await self._in_words(request)
            if request.review is not None:
                return await self._reviewed(request)
            return await self._answered(request)

    async def _in_words(self, request: ConfirmationRequest) -> Consent | Words:
        """Ask for a line of text. To a plan a clear yes or no is enough; the end of input is no."""
        text = in_language(request.language)
        await page(
            question_lines(request, request.details), self._screen, self._keyboard, in_language(request.language)
        )
        self._keyboard.forget()
        of_plan = "Run it? [y]es, [n]o, or say what must be different: "
        self._screen.say(text(of_plan if request.wants == "plan" else "Your answer: "))
        said = await self._keyboard.read()
        line = said.strip()
        if not said or (request.wants == "plan" and not line):
            return Consent.NO
        known = _ANSWERS.get(line.casefold()) if request.wants == "plan" else None
        return Words(text=line) if known is None else known

    async def _reviewed(self, request: ConfirmationRequest) -> Consent | Choice:
        from artoo.cli.results.relative_paths import Here
        from artoo.cli.review.review_prompt import Asking

        assert request.review is not None
        return await Asking(request.review, request.language, self._screen, self._keyboard, Here()).ask()

    async def _answered(self, request: ConfirmationRequest) -> Consent:
        text, lines = in_language(request.language), question_lines(request, request.details)
        in_sight = fits(lines, self._screen)
        await page(lines, self._screen, self._keyboard, in_language(request.language))
        self._keyboard.forget()  # what was typed while it was shown was no answer to what comes
        beside = "".join(f"{line}\n" for line in question_lines(request, parts(request)))
        ask = text("Allow it? [o]nce, for this [t]ask, [N]o: ")
        while True:
            self._screen.say(ask if in_sight else f"{beside}{ask}")
            said = await self._keyboard.read()
            consent = _ANSWERS.get(said.strip().casefold()) if said else Consent.NO
            if consent is not None:
                self._screen.say(("" if said.endswith("\n") else "\n") + text(SAID[consent]) + "\n")
                return consent


def dialogue() -> Dialogue | None:
    """The dialogue on this process's terminal; None without one: then the answer to every question is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return Dialogue(sys.stdin, sys.stderr)


def question_lines(request: ConfirmationRequest, details: Iterable[str]) -> list[str]:
    """Title, source and these details: all of them, or what stands beside the answer to a long question."""
    lines = [f"? {one_line(request.title)}"]
    if request.source is not None:
        text = in_language(request.language)
        lines.append("  " + text("first named by: {source}", source=one_line(request.source)))
    return [*lines, *(f"  {printable(line)}" for line in details)]
